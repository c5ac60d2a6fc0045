"""Make a cluster serve a recipe:

pyinfra inventory/gb10.py deploys/recipe.py --data recipe=r37
"""

from pyinfra_vllm.deploys import serve

serve()
