"""Deploys for your own deploy files: ``from pyinfra_vllm.deploys import serve``."""

from pyinfra_vllm.deploys.engram import engram
from pyinfra_vllm.deploys.model import model
from pyinfra_vllm.deploys.pause import pause
from pyinfra_vllm.deploys.resume import resume
from pyinfra_vllm.deploys.rollback import rollback
from pyinfra_vllm.deploys.serve import serve
from pyinfra_vllm.deploys.teardown import teardown
from pyinfra_vllm.deploys.trial import trial

__all__ = [
    "engram",
    "model",
    "pause",
    "resume",
    "rollback",
    "serve",
    "teardown",
    "trial",
]
