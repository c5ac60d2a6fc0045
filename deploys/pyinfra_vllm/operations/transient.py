"""Long work on a node as a transient unit: it outlives the connection, and is followed again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pyinfra.api import Host, StringCommand

from pyinfra_vllm.operations.common import run

_FOLLOW = """\
follow() {
    journalctl --quiet --follow --output cat --identifier $unit --since "@$since" &
    follower=$!
    while systemctl is-active --quiet $unit; do sleep 0.5; done
    sleep 1
    kill $follower
}
since=$(date +%s)
if systemctl is-active --quiet $unit; then
    echo "another run of it goes on here, and is waited for"
    follow
    since=$(date +%s)
fi
systemctl reset-failed $unit 2>/dev/null
systemd-run --quiet --unit $unit --description "$unit" --service-type exec \
    --property SyslogIdentifier=$unit --property Nice=10 --property IOSchedulingClass=idle \
    "$@" || exit 1
follow
! systemctl is-failed --quiet $unit
"""


def work(host: Host, unit: str, argv: Sequence[str]) -> bool:
    """Run ``argv`` as ``unit`` and show what it says, until it ends; whether it ended well.

    For a step of an operation on ``host``. A run of the same unit that goes on is
    waited for first.
    """
    script = f"unit={unit}\n{_FOLLOW}"
    command = shlex.join(["bash", "-c", script, "bash", *argv])
    ok, _ = run(host, host, StringCommand(command), print_output=True)
    return ok
