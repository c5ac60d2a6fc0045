"""Take a gang off its nodes; the model and the copies of its tables stay:

pyinfra inventory/gb10.py deploys/teardown.py
"""

from pyinfra_vllm.deploys import teardown

teardown()
