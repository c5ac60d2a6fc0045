"""pyinfra's command line, cut off: ``cut.py OPERATION SECONDS SIGNAL WORDS…``.

SIGNAL comes SECONDS after the operation with that number, or whose name ends so, has begun.
"cut in NAME" goes to standard error; exit 3: there is no such operation.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pyinfra.api.operations as operations
from pyinfra_cli.main import cli

_run = operations._run_single_op
_begun = 0
_cut: list[str] = []


def _counted(state: Any, op_hash: str) -> None:
    global _begun
    name = sorted(state.get_op_meta(op_hash).names)[0]
    if str(_begun) == operation or name.endswith(operation):
        _cut.append(name)
        print(f"cut in {name}", file=sys.stderr, flush=True)
        if seconds:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:
            os.kill(os.getpid(), wanted)
    _begun += 1
    _run(state, op_hash)


operation, seconds = sys.argv[1], float(sys.argv[2])
wanted = signal.Signals[sys.argv[3]]
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), wanted))
operations._run_single_op = _counted
sys.argv = ["pyinfra", *sys.argv[4:]]
try:
    cli()
except SystemExit as end:
    sys.exit(end.code if _cut else 3)
