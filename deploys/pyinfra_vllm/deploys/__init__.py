"""Deploys for your own deploy files: ``from pyinfra_vllm.deploys import serve``."""

from pyinfra_vllm.deploys.serve import serve

__all__ = ["serve"]
