"""What a recipe says is what the engine's process gets, byte for byte, through the real chain."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm import agent_archive, cluster
from pyinfra_vllm.lab import ssh, state
from pyinfra_vllm.recipe import load
from pyinfra_vllm.release import Content, Release, release_of

from .commands import pyinfra
from .conftest import Lab
from .fidelity_cases import LARGE, NASTY, case, recipe

pytestmark = pytest.mark.lab

HERE = Path(__file__).parent
CASES = 300
SEED = int(os.environ.get("FIDELITY_SEED", "20260913"))
FOLDER = "/var/tmp/fidelity"
MODEL = "tiny-random/llama-tp4"
KEPT = "/var/cache/pyinfra-vllm/fidelity_1/dump.json"
OURS = ["--tensor-parallel-size", "1", "--pipeline-parallel-size", "1"]
DOCKERS = {"HOSTNAME", "HOME"}
"""Variables that docker gives every process."""

_DOCKERFILE = """\
FROM pyinfra-vllm-lab/debian:bookworm
COPY dump serve /usr/local/bin/
ENTRYPOINT []
"""
_DUMP = """\
#!/bin/sh
base64 -w0 < /proc/$$/cmdline; echo
base64 -w0 < /proc/$$/environ; echo
"""


@pytest.fixture(scope="module")
def engine(lab: Lab) -> Iterator[Lab]:
    """Rank 0 has the image of two engines that tell what they got."""
    put(lab, f"{FOLDER}/Dockerfile", _DOCKERFILE)
    put(lab, f"{FOLDER}/dump", _DUMP)
    put(lab, f"{FOLDER}/serve", (HERE / "dump_engine.py").read_text())
    lab.ask(0, f"chmod 755 {FOLDER}/*; DOCKER_BUILDKIT=1 docker build -qt fidelity:1 {FOLDER}")
    yield lab
    stop = "systemctl disable --now vllm-main; rm -rf /var/lib/pyinfra-vllm/main"
    lab.ask(0, f"{stop}; docker rm -f vllm-main; docker rmi -f fidelity:1; rm -rf {FOLDER}")


def put(lab: Lab, path: str, text: str) -> None:
    folder = path.rpartition("/")[0]
    ssh.ask(lab.layout, lab.machines[0], f"mkdir -p {folder}; cat > {path}", text)


def expected(args: Sequence[str], env: Mapping[str, str], lab: Lab) -> tuple[list[str], Any]:
    node = {"VLLM_HOST_IP": lab.machines[0].address}
    node |= dict.fromkeys(("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"), "host0")
    return [MODEL, *args, *OURS], {**image_environ(lab.name), **env, **node}


@cache
def image_environ(lab: str) -> dict[str, str]:
    layout = state.require(lab)
    ask = "docker image inspect -f '{{json .Config.Env}}' fidelity:1"
    words = json.loads(ssh.ask(layout, layout.machines[0], ask))
    return dict(word.split("=", 1) for word in words)


def environ(words: Sequence[bytes]) -> dict[str, str]:
    found = dict(word.decode().split("=", 1) for word in words)
    return {name: value for name, value in found.items() if name not in DOCKERS}


def release(lab: Lab, path: Path) -> Release:
    machine = lab.machines[0]
    data = {
        "vllm_rank": 0,
        "vllm_fabric_address": machine.address,
        "vllm_interfaces": ["host0"],
        "vllm_gpus": False,
        "vllm_hf_cache": "/mnt/nas/hub",
    }
    gang = cluster.gang_of({machine.name: data}, 1)
    return release_of(Content("fidelity", load(path), gang, None, {MODEL: "0" * 40}))


def through_docker(lab: Lab, releases: Sequence[Release]) -> list[dict[str, Any]]:
    """What the processes got: the agent's own code makes the command lines on the node."""
    head = [one.files(one.content.gang.head) for one in releases]
    archive = base64.b64encode(agent_archive.archive()).decode()
    ssh.ask(lab.layout, lab.machines[0], f"base64 -d > {FOLDER}/agent.pyz", archive)
    put(lab, f"{FOLDER}/seccomp.json", head[0]["seccomp.json"])
    put(lab, f"{FOLDER}/run_cases.py", (HERE / "run_cases.py").read_text())
    given = {
        "archive": f"{FOLDER}/agent.pyz",
        "image": "fidelity:1",
        "seccomp": f"{FOLDER}/seccomp.json",
        "launches": [json.loads(files["launch.json"]) for files in head],
    }
    command = f"python3 {FOLDER}/run_cases.py"
    found: list[dict[str, Any]] = json.loads(
        ssh.ask(lab.layout, lab.machines[0], command, json.dumps(given))
    )
    return found


def test_random_recipes_arrive_unchanged(engine: Lab, tmp_path: Path) -> None:
    source = random.Random(SEED)
    cases = [case(source) for _ in range(CASES)]
    cases += [(["--first", one], {"X": one}) for one in NASTY]
    cases += [(["--first", LARGE], {"X": LARGE})]
    releases = []
    for args, env in cases:
        (tmp_path / "recipe.toml").write_text(recipe(args, env, "dump"), encoding="utf-8")
        releases.append(release(engine, tmp_path / "recipe.toml"))
    for (args, env), found in zip(cases, through_docker(engine, releases), strict=True):
        assert "error" not in found, (SEED, args, env, found)
        # The first two words are the shell that runs the engine, and its file.
        argv = base64.b64decode(found["argv"]).split(b"\0")[2:-1]
        variables = base64.b64decode(found["environ"]).split(b"\0")[:-1]
        wanted_argv, wanted_environ = expected(args, env, engine)
        assert [word.decode() for word in argv] == wanted_argv, SEED
        assert environ(variables) == wanted_environ, SEED


def served(lab: Lab, folder: Path, args: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    path = folder / "recipe.toml"
    path.write_text(recipe(args, env, "serve"), encoding="utf-8")
    done = pyinfra("-y", "--data", f"recipe={path}", lab=lab.name)
    assert done.code == 0, done.text[-6000:]
    found: dict[str, Any] = json.loads(
        lab.ask(0, "cat /var/cache/pyinfra-vllm/fidelity_1/dump.json")
    )
    return found


def test_nasty_words_arrive_through_files_unit_agent_and_docker(
    engine: Lab, tmp_path: Path
) -> None:
    source = random.Random(SEED + 1)
    env = {f"X_{number}": one for number, one in enumerate(NASTY)}
    cases = [(["--first", *NASTY, LARGE], {**env, "X_LARGE": LARGE})]
    cases += [case(source) for _ in range(2)]
    for args, variables in cases:
        found = served(engine, tmp_path, args, variables)
        wanted_argv, wanted_environ = expected(args, variables, engine)
        assert [base64.b64decode(word).decode() for word in found["argv"]] == wanted_argv
        words = [base64.b64decode(word) for word in found["environ"]]
        assert environ(words) == wanted_environ
