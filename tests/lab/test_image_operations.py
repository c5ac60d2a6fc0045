"""The image operations through pyinfra: from every source that the inventory can name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_vllm import image_scripts
from pyinfra_vllm.agent import paths
from pyinfra_vllm.image import LABEL, Build, build_of
from pyinfra_vllm.lab.layout import BASE_IMAGE

from .conftest import Lab

pytestmark = pytest.mark.lab

PYINFRA = Path(sys.executable).with_name("pyinfra")
DEPLOY = Path(__file__).with_name("images_only.py")
INVENTORY = Path(__file__).parents[2] / "inventory" / "lab.py"
TAG = "toy/engine:1"
RECIPE = f"""
engine = "vllm"
name = "Only an image"
docker_image = "{TAG}"
docker_image_dir = "toy"
model = "tiny-random/llama-tp4"
required_nodes = 4
tensor_parallel_size = 4
args = []
[env]
"""


class Site:
    """A working directory with a recipe, its image and an inventory of the lab's nodes."""

    def __init__(self, lab: Lab, root: Path) -> None:
        self.lab, self.root = lab, root
        (root / "recipes" / "toy").mkdir(parents=True)
        (root / "recipes" / "toy" / "recipe.toml").write_text(RECIPE)
        (root / "templates" / "images" / "toy").mkdir(parents=True)
        self.image()
        self.inventory()

    def image(self, *steps: str) -> Build:
        lines = [f"FROM {BASE_IMAGE}", f"RUN echo {self.root} > /unique", *steps]
        path = self.root / "templates" / "images" / "toy" / "Dockerfile"
        path.write_text("\n".join(lines) + "\n")
        return build_of("toy", None, TAG)

    def inventory(self, change: str = "pass") -> None:
        """``change``: a statement for each host's ``data`` and its rank ``n``."""
        (self.root / "inventory.py").write_text(
            f"from importlib.machinery import SourceFileLoader as _Loader\n"
            f"_all = _Loader('_lab', {str(INVENTORY)!r}).load_module().lab\n"
            f"nodes = []\n"
            f"for _name, data in _all:\n"
            f"    n = data['vllm_rank']\n"
            f"    {change}\n"
            f"    nodes.append((_name, data))\n"
            f"del data, n\n"
        )

    def begin(self, *options: str) -> subprocess.Popen[str]:
        argv = [str(PYINFRA), "-y", "inventory.py", str(DEPLOY), "--data", "recipe=toy", *options]
        return subprocess.Popen(
            argv,
            cwd=self.root,
            env={**os.environ, "PYINFRA_VLLM_LAB": self.lab.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *options: str) -> tuple[int, str]:
        started = self.begin(*options)
        out, _ = started.communicate(timeout=240)
        return started.returncode, out

    def layers(self) -> list[str]:
        """The layers of the image on each node, empty where it isn't."""
        show = f"docker image inspect --format '{{{{json .RootFS.Layers}}}}' {TAG} || true"
        return [self.lab.ask(rank, show) for rank in range(4)]


@pytest.fixture
def site(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.chdir(tmp_path)
    yield Site(lab, tmp_path)
    for rank in range(4):
        ours = f"docker image ls -q --filter label={LABEL} | sort -u"
        lab.ask(rank, f'images=$({ours}); [ -z "$images" ] || docker image rm -f $images')


def test_it_is_built_on_the_head_and_sent_to_all_then_nothing_changes(site: Site) -> None:
    code, out = site.run()
    assert code == 0, out
    layers = site.layers()
    assert len(set(layers)) == 1
    assert layers[0]
    code, out = site.run("--diff")
    assert code == 0, out
    assert "Will " not in out
    assert site.lab.ask(0, "systemctl is-active pyinfra-vllm-share || true") == "inactive"
    assert site.lab.ask(0, "ls /var/lib/pyinfra-vllm") in ("", "builds")


def test_a_tag_with_another_digest_is_not_ours(site: Site) -> None:
    site.lab.ask(0, f"docker tag {BASE_IMAGE} {TAG}")
    code, out = site.run()
    assert code == 0, out
    before = site.layers()
    build = site.image("RUN echo changed > /changed")
    code, out = site.run()
    assert code == 0, out
    assert site.layers() != before
    labels = site.lab.ask(3, f"docker image inspect --format '{{{{json .Config.Labels}}}}' {TAG}")
    assert json.loads(labels)[LABEL] == build.digest
    ours = f"docker image ls -q --filter label={LABEL} | sort -u | wc -l"
    assert site.lab.ask(0, ours) == "1"  # the old one is gone


def test_one_node_with_other_content_gets_it_anew(site: Site) -> None:
    assert site.run()[0] == 0
    label = f"LABEL {LABEL}={build_of('toy', None, TAG).digest}"
    odd = f"tar c odd | docker import --change '{label}' - {TAG}"
    site.lab.ask(2, f"docker image rm -f {TAG}; echo odd > odd; {odd}")
    code, out = site.run("--diff")
    assert code == 0, out
    assert "Will load" in out
    assert len(set(site.layers())) == 1


def test_an_interrupted_run_leaves_the_build_to_the_next_one(site: Site) -> None:
    build = site.image("RUN sleep 15")
    unit = image_scripts.build_unit(build)
    first = site.begin()
    deadline = time.monotonic() + 30
    while site.lab.ask(0, f"systemctl is-active {unit} || true") != "active":
        assert time.monotonic() < deadline
        time.sleep(0.3)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=30)
    assert site.lab.ask(0, f"systemctl is-active {unit} || true") == "active"
    code, out = site.run()
    assert code == 0, out
    assert "another run builds it already" in out
    assert len(set(site.layers())) == 1


def test_a_build_that_fails_ends_the_run_with_the_reason(site: Site) -> None:
    site.image("RUN echo the reason; exit 3")
    code, out = site.run()
    assert code == 1
    assert "the reason" in out
    assert "Traceback" not in out


@pytest.fixture
def head_before(lab: Lab) -> Iterator[None]:
    """The gang's other nodes know the lab's first machine as their head."""
    path = paths.members("main")
    addresses = [str(node.address) for node in lab.machines]
    for node in lab.machines[1:]:
        text = json.dumps({"rank": node.rank, "addresses": addresses})
        make = f"mkdir -p {Path(path).parent} && echo '{text}' > {path} && touch {path}.planted"
        lab.ask(node.rank, f"[ -e {path} ] || {{ {make}; }}")
    yield
    for node in lab.machines[1:]:
        planted = f"[ ! -e {path}.planted ] || rm -r {path} {path}.planted"
        lab.ask(node.rank, f"{planted}; rmdir -p {Path(path).parent} 2>/dev/null || true")


@pytest.mark.usefixtures("head_before")
def test_a_builder_outside_the_gang_builds_and_sends(site: Site) -> None:
    """The lab's first machine has the base image: it is the builder, and was the head until now."""
    path = site.root / "recipes" / "toy" / "recipe.toml"
    text = path.read_text().replace("required_nodes = 4", "required_nodes = 3")
    path.write_text(text.replace("tensor_parallel_size = 4", "tensor_parallel_size = 3"))
    share = "systemctl is-active pyinfra-vllm-share || true"
    source = f"builder:{site.lab.machines[0].name}"
    gang = f"data.update(vllm_rank=n - 1, vllm_image_source={source!r})"
    site.inventory(f"{gang} if n else data.pop('vllm_rank')")
    code, out = site.run()
    assert code == 0, out
    assert site.lab.ask(0, share) in ("inactive", "unknown")
    layers = site.layers()
    assert layers[0]
    assert len(set(layers)) == 1
    code, out = site.run("--diff")
    assert (code, "Will " in out) == (0, False), out


def test_an_archive_is_loaded_by_each_node(site: Site) -> None:
    assert site.run()[0] == 0
    wanted = site.layers()
    nas = site.lab.layout.nas / "toy.tar"
    nas.write_bytes(b"")
    site.lab.ask(0, f"docker save -o /var/tmp/toy.tar {TAG}")
    nas.write_bytes((site.lab.layout.root(site.lab.machines[0]) / "var/tmp/toy.tar").read_bytes())
    try:
        for rank in range(4):
            site.lab.ask(rank, f"docker image rm -f {TAG}; rm -f /var/tmp/toy.tar")
        site.inventory("data['vllm_image_source'] = 'archive:/mnt/nas/toy.tar'")
        code, out = site.run()
        assert code == 0, out
        assert site.layers() == wanted
    finally:
        nas.unlink()


def test_what_is_to_be_present_and_is_not_stops_the_run(site: Site) -> None:
    site.inventory("data['vllm_image_source'] = 'present'")
    code, out = site.run()
    assert code == 1
    assert 'vllm_image_source says "present"' in out
    assert site.layers() == [""] * 4


def test_a_build_beside_an_engine_is_refused_with_the_choices(site: Site) -> None:
    serve = "docker run --detach --name vllm-main --label pyinfra-vllm.gang=main"
    site.lab.ask(0, f"{serve} {BASE_IMAGE} sleep 300")
    try:
        code, out = site.run()
        assert code == 1
        assert "GiB of memory are available" in out
        assert 'vllm_image_source = "builder:HOST"' in out
        assert site.layers() == [""] * 4
    finally:
        site.lab.ask(0, "docker rm --force vllm-main")
