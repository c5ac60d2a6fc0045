"""An image goes from one node to the others at once, is proved there, and goes when unused."""

from __future__ import annotations

import json
import shlex
import socket
import time
from collections.abc import Iterator

import pytest

from pyinfra_vllm import image_scripts
from pyinfra_vllm.image import LABEL
from pyinfra_vllm.lab.layout import BASE_IMAGE

from .conftest import Lab
from .scripts import begin, ran

pytestmark = pytest.mark.lab

TAG = "toy/travels:1"
TOKEN = "a-token-that-nobody-guesses"
DIGEST = "d" * 64


def make(lab: Lab, tag: str = TAG, digest: str = DIGEST) -> str:
    """An image of ours on the head; its Id."""
    lines = f"FROM {BASE_IMAGE}\nRUN echo {digest} > /which\n"
    build = f"docker build --quiet --label {LABEL}={digest} --tag {tag} -"
    return lab.ask(0, f"printf {shlex.quote(lines)} | DOCKER_BUILDKIT=1 {build}")


def layers(lab: Lab, rank: int, image: str = TAG) -> list[str]:
    shown = lab.ask(rank, f"docker image inspect --format '{{{{json .RootFS.Layers}}}}' {image}")
    found: list[str] = json.loads(shown)
    return found


def share(lab: Lab, image: str, receivers: int) -> None:
    script = image_scripts.sharing(image, lab.machines[0].address, TOKEN, receivers)
    path = "/run/toy-share.py"
    run = f"systemd-run --quiet --unit toy-share python3 {path}"
    lab.ask(0, f"cat > {path} <<'END'\n{script}\nEND\n{run}")


def receive(lab: Lab, wanted: list[str], digest: str = DIGEST, token: str = TOKEN) -> str:
    address = lab.machines[0].address
    return image_scripts.receiving(TAG, digest, wanted, 200 << 20, address, token)


def connected(lab: Lab) -> socket.socket:
    deadline = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection((lab.machines[0].address, image_scripts.SHARE_PORT))
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> Iterator[None]:
    yield
    lab.ask(0, "systemctl stop toy-share 2>/dev/null; true")
    for rank in range(4):
        ours = f"docker image ls -q --filter label={LABEL}"
        lab.ask(rank, f'images=$({ours}); [ -z "$images" ] || docker image rm -f $images')


def test_three_nodes_get_one_image_at_once(lab: Lab) -> None:
    image = make(lab)
    wanted = layers(lab, 0)
    share(lab, image, 3)
    script = receive(lab, wanted)
    nodes = [begin(lab, script, rank) for rank in (1, 2, 3)]
    for node in nodes:
        out, err = node.communicate(timeout=300)
        assert node.returncode == 0, err
        assert f"{TAG} is here" in out
    for rank in (1, 2, 3):
        assert layers(lab, rank) == wanted
    assert lab.ask(0, "ls /var/lib/docker/tmp") == ""


def test_a_receiver_that_dies_does_not_hold_up_the_others(lab: Lab) -> None:
    image = make(lab)
    share(lab, image, 2)
    script = receive(lab, layers(lab, 0))
    stays = begin(lab, script, 2)
    with connected(lab) as dies:
        dies.sendall(f"{TOKEN}\n".encode())
        assert dies.recv(1 << 16)
    _, err = stays.communicate(timeout=300)
    assert stays.returncode == 0, err
    assert ran(lab, script, 1)[0] == 0  # the next round, for who was lost or late


def test_without_the_token_nothing_is_sent(lab: Lab) -> None:
    share(lab, make(lab), 1)
    code, _, err = ran(lab, receive(lab, [], token="wrong"), 1)
    assert code == 1
    assert "stopped sending" in err


def test_an_image_with_other_layers_gets_no_tag(lab: Lab) -> None:
    image = make(lab)
    share(lab, image, 1)
    code, _, err = ran(lab, receive(lab, ["sha256:" + "0" * 64]), 1)
    assert code == 1
    assert "other layers" in err
    assert lab.ask(1, f"docker image ls -q {TAG}") == ""


def test_an_archive_of_another_build_gets_no_tag(lab: Lab) -> None:
    make(lab)
    lab.ask(0, f"docker save -o /var/tmp/toy.tar {TAG} && docker image rm {TAG}")
    other = image_scripts.loading("toy/other:1", "e" * 64, "archive", "/var/tmp/toy.tar")
    code, _, err = ran(lab, other)
    assert code == 1
    assert "wanted eeeeeeeeeeee" in err
    assert lab.ask(0, "docker image ls -q toy/other") == ""
    right = image_scripts.loading("toy/right:1", DIGEST, "archive", "/var/tmp/toy.tar")
    assert ran(lab, right)[0] == 0
    assert lab.ask(0, "docker image ls -q toy/right") != ""
    gone = image_scripts.loading("toy/right:1", DIGEST, "archive", "/var/tmp/nothing.tar")
    assert "mount it, or correct vllm_image_source" in ran(lab, gone)[2]
    lab.ask(0, "rm /var/tmp/toy.tar")


def test_prune_removes_our_unused_images_and_nothing_else(lab: Lab) -> None:
    kinds = ("unused", "released", "running", "asked")
    builds = {name: f"{number}" * 64 for number, name in enumerate(kinds)}
    for name, digest in builds.items():
        make(lab, f"toy/{name}:1", digest)
    lab.ask(0, f"docker tag {BASE_IMAGE} toy/foreign:1")
    folder = f"/var/lib/pyinfra-vllm/toy/releases/{'a' * 64}"
    launch = json.dumps({"image": {"build": builds["released"], "tag": "toy/released:1"}})
    lab.ask(0, f"mkdir -p {folder} && echo {shlex.quote(launch)} > {folder}/launch.json")
    lab.ask(0, "docker create --name toy-user toy/running:1 true")
    try:
        code, out, err = ran(lab, image_scripts.pruning([builds["asked"]]))
        assert code == 0, err
        assert out.startswith("removed toy/unused:1 (build 000000000000): up to ")
        assert len(out.splitlines()) == 1
        left = lab.ask(0, "docker image ls --format '{{.Repository}}'").split()
        assert {"toy/released", "toy/running", "toy/asked", "toy/foreign"} <= set(left)
        lab.ask(0, f"echo broken > {folder}/launch.json")
        code, out, err = ran(lab, image_scripts.pruning([]))
        assert (code, out) == (1, "")
        assert "no image is removed" in err
    finally:
        lab.ask(0, "docker rm toy-user; docker image rm toy/foreign:1")
        lab.ask(0, "rm -r /var/lib/pyinfra-vllm/toy")
