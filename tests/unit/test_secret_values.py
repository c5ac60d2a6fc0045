"""Secret variables: where values come from, what nodes say of them, and where they never are."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyinfra_vllm import placement, secret_values
from pyinfra_vllm.agent import container
from pyinfra_vllm.agent import secret_values as on_node
from pyinfra_vllm.agent.document import Document
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.launch import parse
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.collect import secret_file
from pyinfra_vllm.node.models import SecretFile
from pyinfra_vllm.release import Release, release_of
from pyinfra_vllm.secret_values import Secrets
from unit.gangs import content_of

PLANTED = "planted-κλειδί-$(x) 'q'\"\n%s"
NAMES = ("VLLM_API_KEY", "HF_TOKEN")


@pytest.fixture(autouse=True)
def node_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYINFRA_VLLM_ROOT", str(tmp_path / "node"))
    return tmp_path / "node"


def place(node_root: Path, values: dict[str, str]) -> Path:
    """Runs the script that the deploy sends."""
    path = node_root / on_node.file("main").lstrip("/")
    script = placement.script([placement.secrets(str(path), values)])
    subprocess.run([sys.executable, "-"], input=script, text=True, check=True)
    return path


def look(node_root: Path) -> SecretFile:
    root, status = f"{node_root}/var/lib/pyinfra-vllm", f"{node_root}/run/pyinfra-vllm/main/s.json"
    return SecretFile.model_validate(secret_file.secrets(root, "main", status))


def release(values: dict[str, str]) -> Release:
    content = content_of("tiny-cpu-4x")
    recipe = content.recipe.model_copy(update={"secrets": NAMES})
    return release_of(replace(content, recipe=recipe, secrets=Secrets(values)))


def test_a_value_comes_from_the_file_else_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("# keys\n\nexport VLLM_API_KEY='a=b c'\nOTHER=x\n")
    file.chmod(0o600)
    environ = {"VLLM_API_KEY": "from environment", "HF_TOKEN": "token"}
    found = secret_values.read((*NAMES, "NONE"), str(file), environ)
    assert found.values == {"VLLM_API_KEY": "a=b c", "HF_TOKEN": "token"}
    assert found.unknown == ("NONE",)
    assert secret_values.read(NAMES, None, environ).values == environ
    assert secret_values.read((), "/none", {}).values == {}


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("A=planted\n", 0o644, "others can read it; chmod 600"),
        ("A\nplanted\n", 0o600, ":1: expected NAME=value"),
        ("VLLM_API_KEY=\n", 0o600, "VLLM_API_KEY: the value is empty"),
        (None, 0o600, "can't be read: No such file"),
    ],
)
def test_a_file_that_is_no_good_is_refused_without_its_content(
    tmp_path: Path, text: str | None, mode: int, said: str
) -> None:
    file = tmp_path / "secrets"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(UserError, match=said) as caught:
        secret_values.read(NAMES, str(file), {})
    assert "planted" not in str(caught.value)


def test_values_are_placed_for_root_only_and_others_stay(node_root: Path) -> None:
    path = place(node_root, {"VLLM_API_KEY": PLANTED})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    salt = look(node_root).salt
    place(node_root, {"HF_TOKEN": "t"})
    assert on_node.check("main", NAMES) == {"VLLM_API_KEY": PLANTED, "HF_TOKEN": "t"}
    assert look(node_root).salt == salt
    assert len(salt) == 32


def test_a_broken_file_is_written_anew(node_root: Path) -> None:
    path = place(node_root, {"VLLM_API_KEY": PLANTED})
    path.write_text('{"planted')
    assert look(node_root).digests == {}
    with pytest.raises(Unmet) as caught:
        on_node.check("main", NAMES)
    assert "planted" not in str(caught.value)
    place(node_root, {"VLLM_API_KEY": PLANTED})
    assert on_node.check("main", ["VLLM_API_KEY"]) == {"VLLM_API_KEY": PLANTED}


def test_a_node_tells_which_values_differ_and_which_the_engine_has(node_root: Path) -> None:
    known = Secrets({"VLLM_API_KEY": PLANTED}, ("HF_TOKEN",))
    assert secret_values.differing(known, look(node_root)) == ["VLLM_API_KEY"]
    assert secret_values.lacking(known, look(node_root)) == ["HF_TOKEN"]
    place(node_root, {"VLLM_API_KEY": PLANTED, "HF_TOKEN": "t"})
    found = look(node_root)
    assert secret_values.differing(known, found) == []
    assert secret_values.lacking(known, found) == []
    assert secret_values.not_in_use(NAMES, found) == list(NAMES)
    on_node.environ("main", ["docker", "run", "--env", "VLLM_API_KEY", "--entrypoint", "x"])
    assert secret_values.not_in_use(NAMES, look(node_root)) == ["HF_TOKEN"]
    place(node_root, {"VLLM_API_KEY": "new"})
    assert secret_values.not_in_use(NAMES, look(node_root)) == list(NAMES)
    assert "planted" not in look(node_root).model_dump_json()


def test_all_nodes_that_lack_a_value_are_named_in_one_line() -> None:
    known, there = Secrets({}, ("HF_TOKEN",)), SecretFile(digests={"HF_TOKEN": "x"})
    lines = secret_values.lacking_lines(
        known, {"spark-0": there, "spark-1": SecretFile(), "spark-2": SecretFile()}
    )
    (line,) = lines
    assert line.startswith("secret HF_TOKEN: spark-1, spark-2 have no value, and neither has this")
    (line,) = secret_values.lacking_lines(known, {"spark-1": SecretFile()})
    assert line.startswith("secret HF_TOKEN: spark-1 has no value, and")
    assert secret_values.lacking_lines(known, {"spark-0": there}) == []


def test_docker_gets_the_values_of_these_names_only(node_root: Path) -> None:
    place(node_root, {"VLLM_API_KEY": PLANTED, "HF_TOKEN": "t"})
    made = release({})
    launch = parse(Document("x", json.loads(made.files(made.content.gang.head)["launch.json"])))
    argv = container.run(launch, "image")
    environ = on_node.environ("main", argv)
    assert {k: environ[k] for k in NAMES} == {"VLLM_API_KEY": PLANTED, "HF_TOKEN": "t"}
    assert set(environ) == {*os.environ, *NAMES}
    words = ["docker", "run", "--env", "A=1", "--entrypoint", "vllm", "image", "--env", "HF_TOKEN"]
    assert on_node.environ("main", words) == dict(os.environ)


def test_a_start_without_a_value_is_refused_by_name() -> None:
    with pytest.raises(Unmet, match=r"secrets\.json has no VLLM_API_KEY, HF_TOKEN, which this"):
        on_node.check("main", NAMES)


def test_values_change_no_file_no_digest_and_no_text_of_a_release() -> None:
    with_values, without = release(dict.fromkeys(NAMES, PLANTED)), release({})
    assert with_values.digest == without.digest
    assert with_values.ranks == without.ranks
    assert "planted" not in repr(with_values)
    assert with_values.digest != release_of(content_of("tiny-cpu-4x")).digest
