"""Fetching a model to the cache of nodes, from a hub on this machine, over bad connections."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hub_server import Hub
from pyinfra_vllm.lab.layout import BASE_IMAGE
from pyinfra_vllm.operations.model_fetch import UNIT

from . import hf_program
from .commands import ROOT, Ran, pyinfra
from .conftest import Lab

pytestmark = pytest.mark.lab

REPO = "tiny-random/fetched"
CACHE = "/var/lib/fetched-hub"
IMAGE = "fetched/hf:1"
OLD, NEW = "a" * 40, "b" * 40
BIG = "model-00001-of-00001.safetensors"
# hf keeps what it has in pieces of 10 MB, so a file must be longer to be gone on with.
HEADER = b'{"x":{"dtype":"U8","shape":[25165824],"data_offsets":[0,25165824]}}'
SHARD = len(HEADER).to_bytes(8, "little") + HEADER + os.urandom(24 << 20)
FILES = {"config.json": b'{"model_type": "x"}', "sub/notes.txt": b"n", BIG: SHARD}
SNAPSHOT = f"{CACHE}/models--tiny-random--fetched/snapshots/{OLD}"


class Site:
    """Two nodes with ``hf`` and a cache of their own, a recipe that pins a revision, a hub."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.hub = Hub(REPO, {OLD: FILES, NEW: {**FILES, "config.json": b"{}"}})
        self.server = self.hub.serve(lab.layout.gateway)
        self.recipe = folder / "recipe.toml"
        self.recipe.write_text(
            'engine = "vllm"\nname = "Fetched"\n'
            f'docker_image = "{IMAGE}"\n'
            f'model = "{REPO}"\nrequired_nodes = 2\ntensor_parallel_size = 2\n'
            '[composed_model]\nmount = "/model"\n'
            f'[[composed_model.sources]]\nrepo = "{REPO}"\nrevision = "{OLD}"\n'
        )
        self.inventory = folder / "inventory.py"
        self.inventory.write_text(
            f"{(ROOT / 'inventory' / 'lab.py').read_text()}\n"
            f"lab = [(name, {{**data, 'vllm_hf_cache': {CACHE!r}}}) for name, data in lab][:2]\n"
        )
        for rank in (0, 1):
            hf_program.give(lab.layout, rank)

    @property
    def words(self) -> tuple[str, ...]:
        endpoint = "http://{}:{}".format(*self.server.server_address)
        return ("-y", "--data", f"recipe={self.recipe}", "--data", f"endpoint={endpoint}")

    def run(self) -> Ran:
        return pyinfra(
            *self.words,
            lab=self.lab.name,
            inventory=self.inventory,
            deploy=ROOT / "deploys" / "model.py",
        )

    def fetch(self) -> dict[str, str]:
        """Operation -> what became of it on how many nodes: success, error, no change."""
        done = self.run()
        assert done.code == 0, done.text[-4000:]
        rows = re.findall(r"^    Model \| Model: (.+?) {2,}\d+ +(.+?) *$", done.text, re.M)
        return {name: " ".join(cells.split()) for name, cells in rows}

    def begin(self, output: Path) -> subprocess.Popen[bytes]:
        """The same in the background, told to a file."""
        program = Path(sys.executable).with_name("pyinfra")
        first, *others = self.words
        with output.open("wb") as file:
            return subprocess.Popen(
                [program, first, self.inventory, ROOT / "deploys" / "model.py", *others],
                cwd=ROOT,
                env={**os.environ, "PYINFRA_VLLM_LAB": self.lab.name, "PYINFRA_PROGRESS": "off"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def forget(self) -> None:
        for rank in (0, 1):
            self.lab.ask(rank, f"systemctl stop {UNIT} 2>/dev/null; rm -rf {CACHE}")
            self.lab.ask(rank, f"systemctl reset-failed {UNIT} 2>/dev/null || true")
        self.hub.asked.clear()
        self.hub.sent = 0

    def is_whole(self, rank: int) -> bool:
        found = self.lab.ask(rank, f"cd {SNAPSHOT} && find . -type l -printf '%P\\n' | sort")
        digest = self.lab.ask(rank, f"sha256sum < {SNAPSHOT}/{BIG}").split()[0]
        blob = self.lab.ask(rank, f"readlink {SNAPSHOT}/{BIG}").rpartition("/")[2]
        return found.split() == sorted(FILES) and digest == blob


@pytest.fixture(scope="module")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    found = Site(lab, tmp_path_factory.mktemp("fetch"))
    yield found
    found.forget()
    found.server.shutdown()
    for rank in (0, 1):
        hf_program.take(lab.layout, rank)


def test_pinned_revision_is_fetched_once_and_a_second_run_does_nothing(site: Site) -> None:
    site.forget()
    assert set(site.fetch()) == {"fetched once", "in the cache of every node"}
    assert site.is_whole(0) and site.is_whole(1)
    assert {commit for commit, _, _ in site.hub.asked} == {OLD}
    asked = len(site.hub.asked)
    again = site.fetch()
    assert all(cells.split()[:2] == ["-", "-"] for cells in again.values()), again
    assert len(site.hub.asked) == asked


def test_file_that_breaks_off_is_gone_on_with(site: Site) -> None:
    site.forget()
    site.hub.breaks += [BIG]
    site.fetch()
    assert site.is_whole(0) and site.is_whole(1)
    ranges = [asked for _, name, asked in site.hub.asked if name == BIG and asked]
    assert any(int(asked.removeprefix("bytes=").partition("-")[0]) > 0 for asked in ranges)


def test_controller_that_is_lost_stops_no_download_and_is_followed_again(
    site: Site, tmp_path: Path
) -> None:
    site.forget()
    site.hub.rate = 1e5
    lost = site.begin(tmp_path / "lost")
    wait_for(lambda: site.hub.sent > 1 << 17)
    os.killpg(lost.pid, signal.SIGKILL)
    lost.wait()
    assert site.lab.ask(0, f"systemctl is-active {UNIT}") == "active"
    second = site.begin(tmp_path / "second")
    wait_for(lambda: b"another run of it goes on here" in (tmp_path / "second").read_bytes())
    site.hub.rate = 0.0
    assert second.wait(240) == 0, (tmp_path / "second").read_text()
    assert site.is_whole(0) and site.is_whole(1)
    # From start to end by the first run, then once more for the other node.
    assert [name for _, name, _ in site.hub.asked].count(BIG) == 2


def test_node_without_hf_takes_that_of_the_image_else_says_what_is_missing(site: Site) -> None:
    program = "/usr/local/bin/hf"
    site.forget()
    site.lab.ask(0, f"mv {program} {program}-away")
    try:
        done = site.run()
        assert done.code == 1
        assert f"there is neither hf nor image {IMAGE} here" in done.text
        site.lab.ask(0, f"docker create --name hf {BASE_IMAGE} true")
        site.lab.ask(0, f"docker cp /opt/hf hf:/opt/ && docker cp {program}-away hf:{program}")
        site.lab.ask(0, f"docker commit hf {IMAGE}")
        site.fetch()
        assert site.is_whole(0) and site.is_whole(1)
        assert site.lab.ask(0, f"docker ps -aq --filter ancestor={IMAGE} --filter name=-") == ""
    finally:
        site.lab.ask(0, f"mv {program}-away {program}; docker rm -f hf; docker rmi -f {IMAGE}")


def wait_for(holds: Callable[[], bool], seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
