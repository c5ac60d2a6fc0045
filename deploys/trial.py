"""Try a recipe with a command of your own, and go back to what was served before:

pyinfra inventory/gb10.py deploys/trial.py --data recipe=r37 --data command='./bench.sh'

The command gets PYINFRA_VLLM_URL, PYINFRA_VLLM_MODEL and PYINFRA_VLLM_RELEASE.
"""

from pyinfra_vllm.deploys import trial

trial()
