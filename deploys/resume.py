"""Let a gang serve again that was paused, or that its head gave up on:

pyinfra inventory/gb10.py deploys/resume.py
"""

from pyinfra_vllm.deploys import resume

resume()
