"""How fast time passes for the agent: tests and labs set its waits shorter, all by one factor."""

from __future__ import annotations

import os

VARIABLE = "PYINFRA_VLLM_PACE"


def seconds(usual: float) -> float:
    """``usual`` seconds, times the factor in ``PYINFRA_VLLM_PACE`` (1 when it says nothing)."""
    try:
        return usual * float(os.environ.get(VARIABLE, "1"))
    except ValueError:
        return usual
