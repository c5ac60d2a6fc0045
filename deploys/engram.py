"""Make or top up the local copies of Engram shards that a recipe needs:

pyinfra inventory/gb10.py deploys/engram.py --data recipe=r37
"""

from pyinfra_vllm.deploys import engram

engram()
