"""The GB10 image's own Dockerfile, built from small sources; a lie in the lock is refused."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import tarfile
from pathlib import Path

import pytest

from pyinfra_vllm.image import build_command, build_of, context_tar
from pyinfra_vllm.lab import ssh
from pyinfra_vllm.lab.layout import BASE_IMAGE
from toy_image import DEVEL, DIRECTORY, Toy, make

from .conftest import Lab

pytestmark = pytest.mark.lab

APT = ("git", "patch", "liburing-dev", "pkg-config")
SECONDS = 600


def docker(lab: Lab, command: list[str], context: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run a docker command on the head with ``context`` as its input."""
    line = f"DOCKER_BUILDKIT=1 {shlex.join(command)}"
    argv = ssh.argv(lab.layout, lab.machines[0], line)
    return subprocess.run(argv, input=context, capture_output=True, timeout=SECONDS)


def packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(folder, ".", filter=as_root)
    return buffer.getvalue()


def as_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """git refuses repositories of somebody else."""
    info.uid = info.gid = 0
    return info


@pytest.fixture(scope="module")
def toy(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Toy:
    ask = f"apt-get update -qq && apt-cache policy {' '.join(APT)}"
    said = lab.ask(0, f"docker run --rm --network host {BASE_IMAGE} sh -c '{ask}'")
    versions = dict(re.findall(r"^(\S+):\n.*\n\s+Candidate: (\S+)", said, re.MULTILINE))
    toy = make(tmp_path_factory.mktemp("toy"), BASE_IMAGE, versions)
    made = docker(lab, ["docker", "build", "--tag", DEVEL, "-"], packed(toy.folder / "devel"))
    assert made.returncode == 0, made.stderr.decode()
    return toy


@pytest.fixture(autouse=True)
def there(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(toy.folder)


def build(lab: Lab, profile: str) -> tuple[int, str]:
    found = build_of(DIRECTORY, profile, f"toy/{profile}:1")
    done = docker(lab, build_command(found), context_tar(found))
    return done.returncode, (done.stdout + done.stderr).decode()


def test_the_template_builds_an_image_with_every_component(lab: Lab, toy: Toy) -> None:
    toy.lay("right")
    code, said = build(lab, "right")
    assert code == 0, said[-6000:]
    assert "jobs:" in said  # as many as the memory allows
    image = "toy/right:1"
    site = "/opt/vllm/lib/python3.11/site-packages"
    run = f"docker run --rm {image}"
    assert lab.ask(0, f"{run} cat {site}/torch/notes.txt {site}/cutlass/notes.txt") == "three\ntwo"
    assert "--port" in lab.ask(0, f"{run} vllm serve --help")
    assert '"--port"' in lab.ask(0, f"{run} cat /usr/share/pyinfra-vllm/flags.json")
    assert lab.ask(0, f"{run} ls {site}/torch/__pycache__") != ""
    shown = "docker image inspect --format '{{json .Config.Entrypoint}} {{.Config.Labels}}'"
    config = lab.ask(0, f"{shown} {image}")
    assert config.startswith(("null", "[]"))
    assert build_of(DIRECTORY, "right", image).digest in config
    absent = "sh -c 'command -v git patch uv cuobjdump; ls -d /src /repos /locked 2>/dev/null'"
    assert lab.ask(0, f"{run} {absent} || true") == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("commit", "not our ref"),
        ("tree", "tree is .*, the profile says 1{40}"),
        ("patch", "FAILED"),
        ("version", "vllm is 1.0, wanted 1.1"),
        ("import", "import b13x: ModuleNotFoundError"),
        ("cuda", "torch was built for CUDA 13.2, wanted 13.3"),
        ("machine", "wanted pdp11"),
        ("liburing", "liburing is .*, wanted 9.9"),
        ("gpu", "vllm: _C.abi3.so has no code for sm_100a, only: sm_121a"),
        ("no-gpu-code", "b12x: none of its 0 shared libraries holds GPU code"),
        ("declared", "vllm needs flashinfer-python==0.6.16: 0.6.17 is installed"),
    ],
)
def test_a_lie_in_the_lock_stops_the_build(lab: Lab, toy: Toy, name: str, expected: str) -> None:
    lies = {
        "commit": (toy.commits["vllm"], "1" * 40),
        "tree": (toy.trees["lmcache"], "1" * 40),
        "patch": (toy.patches[1], "1" * 64),
        "version": ('vllm = "1.0"', 'vllm = "1.1"'),
        "import": ('"b12x"', '"b13x"'),
        "cuda": ('cuda = "13.2"', 'cuda = "13.3"'),
        "machine": ('machine = "', 'machine = "pdp11'),
        "liburing": ('[libraries]\nliburing = "', '[libraries]\nliburing = "9.9'),
        "gpu": ('"12.1a"', '"10.0a"'),
        "no-gpu-code": ('compiled = ["vllm"', 'compiled = ["b12x"'),
        "declared": ('waived = ["vllm:flashinfer-python"]', ""),
    }
    toy.lay(name, *lies[name])
    code, said = build(lab, name)
    assert code != 0
    assert re.search(expected, said), said[-3000:]
    assert lab.ask(0, f"docker image ls -q toy/{name}") == ""
