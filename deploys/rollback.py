"""Serve again what was served before, or a release that is named:

pyinfra inventory/gb10.py deploys/rollback.py [--data release=4aa52b7be910]
"""

from pyinfra_vllm.deploys import rollback

rollback()
