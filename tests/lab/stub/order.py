"""Machines of the lab as one gang, in the order that PYINFRA_VLLM_ORDER gives: ``2,0,1,3``."""

import importlib.util as _util
import os as _os
from pathlib import Path as _Path

_spec = _util.spec_from_file_location("_lab", _Path(__file__).parents[3] / "inventory" / "lab.py")
assert _spec is not None and _spec.loader is not None
_module = _util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
_machines = [int(_number) for _number in _os.environ["PYINFRA_VLLM_ORDER"].split(",")]

moved = [
    (_module.lab[_number][0], {**_module.lab[_number][1], "vllm_rank": _rank})
    for _rank, _number in enumerate(_machines)
]
