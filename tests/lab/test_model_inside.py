"""The model as the container sees it: looked at from inside, before the gang counts as ready."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pyinfra_vllm.agent import paths

from .stub.gang import UNIT, Gang

pytestmark = pytest.mark.lab

HUB = "/mnt/nas/hub"
MODEL = f"{HUB}/models--tiny-random--llama-tp4"
DROP_IN = f"/etc/systemd/system/{UNIT}.service.d/hidden.conf"
HIDDEN = f"""
cp -a {HUB} /root/hub && mv /root/hub/models--tiny-random--llama-tp4/blobs /root/blobs
mkdir /root/hub/models--tiny-random--llama-tp4/blobs
mount --bind /root/hub {HUB}
printf '[Service]\\nBindReadOnlyPaths=/root/blobs:{MODEL}/blobs\\n' > {DROP_IN}
systemctl daemon-reload
"""
"""The agent sees the blobs in its own namespace, and docker mounts a cache without them."""
SHOWN = f"rm {DROP_IN}; systemctl daemon-reload; umount -l {HUB}; rm -rf /root/hub /root/blobs"


def serving(gang: Gang) -> int:
    """Number of the start, once the gang serves."""
    gang.each(f"systemctl start {UNIT}")
    start = int(gang.wait_serving(0, 60)["start"])
    gang.forget_starts()
    return start


def log(gang: Gang, rank: int) -> str:
    return gang.look(rank, f"journalctl -q -o cat -n 200 -u {UNIT}")


def wait_for(gang: Gang, rank: int, what: str) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        detail = str(gang.status(rank).get("detail"))
        if what in detail or what in log(gang, rank):
            return detail
        time.sleep(0.2)
    raise AssertionError(f"rank {rank} doesn't say {what!r}:\n{log(gang, rank)}")


def test_every_rank_opens_all_files_inside_its_container_at_every_start(gang: Gang) -> None:
    before = serving(gang)
    gang.kill_engine(1)
    gang.wait_serving(before, 60)
    for rank in range(4):
        said = log(gang, rank).rpartition("start ")[2]
        assert "files of the model open inside the container, read-only" in said, said
        mounts = gang.ask(rank, "docker inspect -f '{{json .Mounts}}' vllm-main")
        writable = [mount["Destination"] for mount in json.loads(mounts) if mount["RW"]]
        assert writable == ["/root/.cache"]


def test_files_that_do_not_open_inside_are_named_and_nothing_serves(gang: Gang) -> None:
    before = serving(gang)
    gang.ask(2, HIDDEN)
    try:
        gang.ask(2, f"systemctl restart {UNIT}")
        wait_for(gang, 2, "/model/config.json (a link to ")
        assert gang.status(0)["phase"] != "serving"
        with pytest.raises(OSError):
            gang.complete()
    finally:
        gang.ask(2, SHOWN)
    gang.forget_starts()
    gang.wait_serving(before + 1, 90)


def test_link_out_of_the_mounts_stops_a_deploy_and_nothing_that_serves(gang: Gang) -> None:
    before = serving(gang)
    (snapshot,) = (gang.layout.nas / "hub" / Path(MODEL).name / "snapshots").iterdir()
    link, far = snapshot / "far.txt", gang.layout.nas / "far.txt"
    far.write_text("far")
    link.symlink_to("/mnt/nas/far.txt")
    try:
        with pytest.raises(AssertionError, match=r"far\.txt links to /mnt/nas/far\.txt, out of"):
            gang.deploy("stub-4x")
        release = gang.ask(1, f"readlink -f {paths.current('main')}")
        said = gang.look(1, f"python3 {paths.AGENT} compose {release} 2>&1")
        assert "the container can't open far.txt (it leads to /mnt/nas/far.txt)" in said
        assert gang.status()["start"] == before and gang.complete()
    finally:
        link.unlink()
        far.unlink()
