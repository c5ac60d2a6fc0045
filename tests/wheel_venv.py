"""The wheel of this project in a venv of its own, as another repository would have it."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def installed_wheel(folder: Path) -> Path:
    """Build the wheel, install it below ``folder``; the folder of the venv's programs."""
    home = folder / "venv"
    uv = shutil.which("uv")
    venv.create(home, with_pip=not uv)
    python = home / "bin" / "python"
    if uv:
        run(uv, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT)
    else:
        run(python, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    install = (uv, "pip", "install", "--python", python) if uv else (python, "-m", "pip", "install")
    run(*install, "--quiet", wheel)
    return home / "bin"


def run(*argv: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={**environ, "PYINFRA_PROGRESS": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
