"""Stop a gang from serving until it is resumed; over reboots too:

pyinfra inventory/gb10.py deploys/pause.py --data why="new cables"
"""

from pyinfra_vllm.deploys import pause

pause()
