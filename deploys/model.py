"""Fetch a recipe's model to the Hugging Face cache of its nodes:

pyinfra inventory/gb10.py deploys/model.py --data recipe=r37
"""

from pyinfra_vllm.deploys import model

model()
