"""``pyinfra-vllm render``: the files of every node without a node."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyinfra_vllm import catalog, cli, flag_cache, image, render
from pyinfra_vllm.errors import UserError
from unit.gangs import REVISION, sparks

ROOT = Path(__file__).parents[2]
INVENTORY = ROOT / "inventory" / "gb10.py"
FLAGS = Path(__file__).parent / "data" / "flags_vllm_0.32.json"
R37 = ROOT / "recipes" / "dsv41-flash-jovian-r37-4x" / "recipe.toml"
SOURCE = 'repo = "deepseek-ai/DeepSeek-V4.1-Flash"'


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """r37 with the commit of its model."""
    path = tmp_path / "recipes" / "pinned-4x" / "recipe.toml"
    path.parent.mkdir(parents=True)
    path.write_text(R37.read_text().replace(SOURCE, f'{SOURCE}\nrevision = "{REVISION}"'))
    return path


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run(*words: str) -> tuple[int, str]:
    """In a process of its own: reading an inventory patches the standard library."""
    code = "import sys; from pyinfra_vllm.cli import main; sys.exit(main(sys.argv[1:]))"
    argv = [sys.executable, "-c", code, "render", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_all_files_of_every_node_are_written_and_equal_in_every_process(pinned: Path) -> None:
    found = []
    for seed, out in (("1", "a"), ("2", "b/c")):
        os.environ["PYTHONHASHSEED"] = seed
        code, said = run("pinned", "--inventory", str(INVENTORY), "--out", out)
        assert code == 0, said
        found.append(contents(Path(out)))
    os.environ.pop("PYTHONHASHSEED")
    assert found[0] == found[1]
    per_node = {
        "etc/systemd/system/vllm-main.service",
        "etc/tmpfiles.d/pyinfra-vllm.conf",
        "usr/local/lib/pyinfra-vllm/agent.pyz",
        "var/lib/pyinfra-vllm/main/gang.json",
        *(
            f"var/lib/pyinfra-vllm/main/current/{name}"
            for name in (
                "launch.json", "command.txt", "model.manifest", "release.json", "seccomp.json",
            )
        ),
    }  # fmt: skip
    for rank in range(4):
        mine = {path for path in found[0] if path.startswith(f"spark-{rank}/")}
        assert mine == {f"spark-{rank}/{name}" for name in per_node}
    assert {"image/Dockerfile", "SHA256SUMS"} <= set(found[0])
    sums = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd="a", check=False)
    assert sums.returncode == 0


def test_an_unpinned_model_needs_saved_states_and_says_so() -> None:
    code, said = run("r37", "--inventory", str(INVENTORY), "--out", "out")
    assert code == 1
    assert "pins no commit of deepseek-ai/DeepSeek-V4.1-Flash" in said
    assert "--facts DIR" in said
    assert "Traceback" not in said
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts = [1 / 0]", "ZeroDivisionError: division by zero"),
        ("hosts = [", "was never closed (inv.py, line 1)"),
        ('hosts = [("a", {"vllm_rnak": 0})]', "a: vllm_rnak: unknown key of the inventory"),
    ],
)
def test_a_broken_inventory_is_one_message(text: str, said: str, pinned: Path) -> None:
    Path("inv.py").write_text(text)
    code, output = run("pinned", "--inventory", "inv.py", "--out", "out")
    assert code == 1
    assert said in output
    assert "Traceback" not in output


def test_a_missing_inventory_is_one_message() -> None:
    assert run("r37", "--inventory", "none.py", "--out", "out") == (
        1,
        "pyinfra-vllm: inventory none.py: there is no such file\n",
    )


def test_saved_states_answer_what_the_recipe_leaves_open(tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    facts.mkdir()
    gang = sparks(4)
    with pytest.raises(UserError, match=r"--facts .*/none: there is no such folder"):
        render.saved_states(tmp_path / "none", gang)
    state = (Path(__file__).parent / "data" / "node_state_head_serving.json").read_text()
    for node in gang.nodes[:3]:
        (facts / f"{node.name}.json").write_text(state)
    tiny = catalog.find("tiny-cpu-4x")
    with pytest.raises(UserError, match="there are none of spark-3;"):
        render.release(tiny, gang, render.saved_states(facts, gang))
    (facts / "spark-3.json").write_text("{")
    with pytest.raises(UserError, match=r"spark-3\.json: the node's state is cut off"):
        render.saved_states(facts, gang)
    (facts / "spark-3.json").write_text(state)
    release, _ = render.release(tiny, gang, render.saved_states(facts, gang))
    revision = release.content.revisions["tiny-random/llama-tp4"]
    assert len(revision) == 40
    assert revision in state


def made(pinned: Path) -> dict[str, bytes]:
    release, build = render.release(catalog.find(str(pinned)), sparks(4), {})
    return render.files(release, build)


def test_rendering_again_changes_nothing_and_removes_what_is_no_longer_there(
    pinned: Path, tmp_path: Path
) -> None:
    files = made(pinned)
    out = tmp_path / "out"
    assert set(render.write(out, files)) == set(files)
    assert render.write(out, files) == []
    (out / "notes.txt").write_text("mine")
    gone = {name: data for name, data in files.items() if not name.startswith("spark-3/")}
    assert set(render.write(out, gone)) == set(files) - set(gone)
    assert not (out / "spark-3").exists()
    assert (out / "notes.txt").read_text() == "mine"


def test_a_folder_with_other_files_is_left_alone(pinned: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with pytest.raises(UserError, match="isn't empty"):
        render.write(tmp_path / "out", made(pinned))
    (tmp_path / "out" / "SHA256SUMS").write_text(f"{'0' * 64}  ../precious\n")
    with pytest.raises(UserError, match="is not what a rendering writes"):
        render.write(tmp_path / "out", made(pinned))


def test_four_nodes_are_rendered_in_a_second(pinned: Path, tmp_path: Path) -> None:
    began = time.process_time()
    render.write(tmp_path / "out", made(pinned))
    assert time.process_time() - began < 1


def test_a_secret_is_rendered_as_its_name_only(pinned: Path) -> None:
    text = pinned.read_text().replace("\nargs = [", '\nsecrets = ["VLLM_API_KEY"]\nargs = [', 1)
    pinned.write_text(text)
    files = made(pinned)
    launch = files["spark-0/var/lib/pyinfra-vllm/main/current/launch.json"].decode()
    assert '"secrets": [\n    "VLLM_API_KEY"\n  ]' in launch
    command = files["spark-0/var/lib/pyinfra-vllm/main/current/command.txt"].decode()
    assert "--env VLLM_API_KEY \\\n" in command


def test_diff_needs_no_inventory(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["render", "--diff", "r36", "r37"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("dsv41-flash-jovian-r36-4x -> dsv41-flash-jovian-r37-4x\n")
    assert "docker_image: jovian-r36-ds41:local -> jovian-r37-ds41:local" in said


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ([], "RECIPE"),
        (["r37"], "--inventory"),
        (["r37", "--out", "x"], "--inventory"),
        (["r37", "--inventory", "x"], "--out"),
    ],
)
def test_what_is_missing_on_the_command_line_is_named_as_it_is_written(
    words: list[str], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["render", *words]) == 1
    assert f"render: {missing} is missing" in capsys.readouterr().err


def test_what_a_deploy_refuses_is_said_and_rendered_for_the_review(
    pinned: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    recipe = catalog.find(str(pinned)).recipe
    build = image.build_of(recipe.docker_image_dir or "", recipe.build_profile, recipe.docker_image)
    flag_cache.keep(build.digest, FLAGS.read_text())
    pinned.write_text(pinned.read_text().replace("\nargs = [", '\nargs = ["--max-modle-len=1",', 1))
    out = str(tmp_path / "out")
    assert cli.main(["render", str(pinned), "--inventory", str(INVENTORY), "--out", out]) == 0
    assert "a deploy refuses this: " in (said := capsys.readouterr().err)
    assert "did you mean --max-model-len?" in said
