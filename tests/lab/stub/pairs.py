"""The lab as two gangs of two nodes each."""

import importlib.util as _util
from pathlib import Path as _Path

_spec = _util.spec_from_file_location("_lab", _Path(__file__).parents[3] / "inventory" / "lab.py")
assert _spec is not None and _spec.loader is not None
_module = _util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

pairs = [
    (name, {**data, "vllm_gang": "ab"[number // 2], "vllm_rank": number % 2})
    for number, (name, data) in enumerate(_module.lab)
]
