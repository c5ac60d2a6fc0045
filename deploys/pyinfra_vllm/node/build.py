"""Script for a node: build an image in a unit of systemd, or watch the build that already runs.

It is sent on standard input and needs the standard library only. The unit is named after the
build digest and outlives whoever started it: a lost connection or ^C leaves it running, and
the next run, or a second operator's, finds it and shows it from its first step on.
"""

from __future__ import annotations

import base64
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REQUEST: dict[str, Any] = {}

_LOOK_EVERY = 1.0
_SAY_EVERY = 15.0
_FAILED_LINES = 40
_GIB = 1 << 30
# The window in which a gang is paused for this ends soon after the build, whoever has gone.
_RENEWING = ("/bin/sh", "-c", 'while touch -c "$0"; do sleep 10; done & exec "$@"')
_PASSED_ON = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


class Progress:
    """What BuildKit's plain output tells: ``#7 [stage 2/5] RUN …``, ``#7 1.2 text``, ``#7 DONE``.

    ``steps``: how many there are, nothing cached.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.names: dict[str, str] = {}
        self.lines: dict[str, list[str]] = {}
        self.finished: set[str] = set()
        self.failed: str | None = None
        self.current: str | None = None
        self.all: list[str] = []

    def feed(self, line: str) -> str | None:
        """Take one line; the name of a step when it begins."""
        self.all.append(line)
        found = re.match(r"#(\d+) (.*)", line)
        if not found:
            return None
        number, text = found[1], found[2]
        if re.match(r"\[.*\d+/\d+\] ", text):
            new = number not in self.names
            self.names[number] = text
            self.current = number
            return text if new else None
        if number not in self.names:
            return None
        if text.startswith(("DONE", "CACHED")):
            self.finished.add(number)
        elif text.startswith("ERROR"):
            self.failed = number
        elif not text.startswith("sha256:"):
            self.current = number
            self.lines.setdefault(number, []).append(re.sub(r"^\d+\.\d+ ", "", text))
        return None

    def shown(self, seconds: float) -> str:
        """``step 3/21, 1 min 05 s: [vllm 2/2] RUN …: its last line``."""
        step = min(len(self.finished) + 1, self.steps)
        text = f"step {step}/{self.steps}, {_minutes(seconds)}"
        if self.current is not None:
            said = self.lines.get(self.current, [""])[-1]
            text += f": {self.names[self.current][:60]}" + (f": {said[:100]}" if said else "")
        return text

    def failure(self) -> str:
        """The step that failed and its last lines; of everything, when no step says it failed."""
        if self.failed is None:
            return f"its last {_FAILED_LINES} lines:\n" + "\n".join(self.all[-_FAILED_LINES:])
        lines = self.lines.get(self.failed, [])[-_FAILED_LINES:]
        return f"the step {self.names[self.failed]}\nfailed; its last lines:\n" + "\n".join(lines)


def main(request: dict[str, Any]) -> int:
    """Exit code; what went wrong is on standard error."""
    unit = request["unit"]
    try:
        if _image(request):
            return 0
        found = _ensure_started(request)
        return _watch(request, found)
    except BrokenPipeError:
        os._exit(1)  # who watched has gone; the unit goes on
    except (RuntimeError, OSError) as error:
        print(f"{unit}: {error}", file=sys.stderr)
        return 1


def _ensure_started(request: dict[str, Any]) -> str:
    """Invocation of the unit that builds. RuntimeError when there is no room."""
    unit = request["unit"]
    folder = Path(request["folder"])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _show(unit, "ActiveState") in ("active", "activating"):
            _say("another run builds it already; its progress from the first step on:")
        else:
            _check_room(request)
            _start(request, folder)
        return _show(unit, "InvocationID")


def _check_room(request: dict[str, Any]) -> None:
    root = _output("docker", "info", "--format", "{{.DockerRootDir}}")
    free = shutil.disk_usage(root).free
    if free < request["disk_gib"] * _GIB:
        raise RuntimeError(
            f"{root} has {free / _GIB:.1f} GiB free, the build needs {request['disk_gib']} GiB; "
            "make room (docker system df shows what docker holds)"
        )


def _start(request: dict[str, Any], folder: Path) -> None:
    unit = request["unit"]
    folder.mkdir(mode=0o700, exist_ok=True)
    context = folder / "context.tar"
    context.write_bytes(base64.b64decode(request["context"]))
    subprocess.run(["systemctl", "reset-failed", unit], stderr=subprocess.DEVNULL)
    environ = {"DOCKER_BUILDKIT": "1", "HOME": os.environ.get("HOME", "/root")}
    environ.update({name: os.environ[name] for name in _PASSED_ON if name in os.environ})
    argv = [
        "systemd-run", "--quiet",
        "--unit", unit,
        "--description", f"Build of {request['tag']}",
        "--property", f"StandardInput=file:{context}",
        "--property", "LogRateLimitIntervalSec=0",
        "--property", f"ExecStopPost=-/bin/rm -rf {folder}",
        *(word for pair in environ.items() for word in ("--setenv", "=".join(pair))),
        *_RENEWING, request["lease"],
        *request["argv"],
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"can't be started: {done.stderr.strip()}")


def _watch(request: dict[str, Any], invocation: str) -> int:
    """Show the unit's journal until it ends."""
    unit, began, said = request["unit"], time.monotonic(), time.monotonic()
    progress = Progress(request["steps"])
    with tempfile.NamedTemporaryFile() as cursor:
        ended = False
        while not ended:
            ended = _show(unit, "ActiveState") not in ("active", "activating", "deactivating")
            if ended:
                subprocess.run(["journalctl", "--sync"], stderr=subprocess.DEVNULL)
            for line in _journal(invocation, cursor.name):
                progress.feed(line)
            if not ended:
                if time.monotonic() - said >= request.get("say_every", _SAY_EVERY):
                    said = time.monotonic()
                    _say(progress.shown(said - began))
                time.sleep(_LOOK_EVERY)
    image = _image(request)
    if image:
        _say(f"built {image[:19]} in {_minutes(time.monotonic() - began)}")
        return 0
    print(f"The build of {request['tag']} failed: {progress.failure()}", file=sys.stderr)
    print(f"All of it: journalctl _SYSTEMD_INVOCATION_ID={invocation}", file=sys.stderr)
    return 1


def _journal(invocation: str, cursor: str) -> list[str]:
    """Lines since the last call with this cursor file."""
    empty = not Path(cursor).stat().st_size
    argv = ["journalctl", "--output", "cat", "--no-pager", "--quiet", "--all"]
    argv += ["--lines", "all"] if empty else []
    argv += ["--cursor-file", cursor, f"_SYSTEMD_INVOCATION_ID={invocation}"]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace")
    return done.stdout.splitlines()


def _image(request: dict[str, Any]) -> str:
    """Id of an image with the build digest; empty when there is none."""
    label = f"label={request['label']}={request['digest']}"
    argv = ("docker", "image", "ls", "--quiet", "--no-trunc", "--filter", label)
    return next(iter(_output(*argv).splitlines()), "")


def _show(unit: str, name: str) -> str:
    return _output("systemctl", "show", unit, "--property", name, "--value")


def _output(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[:3])}: {done.stderr.strip()}")
    return done.stdout.strip()


def _minutes(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__" and REQUEST:
    sys.exit(main(REQUEST))
