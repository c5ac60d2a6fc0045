"""Several gangs in one inventory, and gangs that go away."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from pyinfra_vllm.agent import paths

from .stub.gang import HERE, Gang

pytestmark = pytest.mark.lab

PAIRS = str(HERE / "pairs.py")
OURS = (
    "ls -d /var/lib/pyinfra-vllm /tmp/composed-models /usr/local/lib/pyinfra-vllm "
    "/etc/systemd/system/vllm-*.service /run/pyinfra-vllm/*/ 2>/dev/null; "
    "docker ps --all --format '{{.Names}}'"
)
FOREIGN = (
    "docker run --detach --name chat-old --restart always --network host "
    "vllm-stub:lab python3 -m http.server 8001 --bind 127.0.0.2"
)
IN_UNIT = "systemd-run --quiet --unit chat python3 -m http.server 8001 --bind 127.0.0.3"
IN_NONE = (
    "setsid python3 -m http.server 8001 --bind 127.0.0.4 </dev/null >/dev/null 2>&1 & "
    "sleep 1; pgrep -f 127[.]0[.]0[.]4"
)
POLICY = "docker inspect -f '{{.HostConfig.RestartPolicy.Name}} {{.State.Status}}' chat-old"
NOT_OURS = "cd / && ls -d mnt/nas/hub/models--tiny-random--llama-tp4 var/tmp/engram-local/*"


@pytest.fixture
def empty(gang: Gang) -> Iterator[Gang]:
    """The lab without a gang; the one of the other tests is back in the end."""
    gang.apply("teardown.py")
    yield gang
    gang.look(2, "docker rm --force chat-old; systemctl stop chat; pkill -f 127[.]0[.]0[.]4")
    gang.apply("teardown.py", "gang=a", inventory=PAIRS)
    gang.apply("teardown.py", "gang=b", inventory=PAIRS)
    gang.deploy("stub-4x")


def completion(gang: Gang, rank: int, port: int) -> str:
    request = urllib.request.Request(
        f"http://{gang.layout.machines[rank].address}:{port}/v1/completions",
        json.dumps({"model": "tiny", "prompt": "x", "max_tokens": 4}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(json.load(answer)["choices"][0]["text"])


def test_two_gangs_come_up_with_one_command_and_one_goes_alone(empty: Gang) -> None:
    for rank in range(4):
        assert empty.look(rank, OURS) == ""
        assert len(empty.ask(rank, NOT_OURS).split()) >= 2
    assert "] Success" not in empty.apply("teardown.py"), "the second time changes nothing"

    both = "recipe=a:stub-2x,b:stub-2y"
    for start in (FOREIGN, IN_UNIT):
        empty.ask(2, start)
    process = f"{empty.ask(2, IN_NONE)}@{empty.layout.machines[2].name}"
    refused = empty.fails("recipe.py", both, inventory=PAIRS)
    assert "port 8001 is taken by container chat-old" in refused
    assert "--data stop_foreign=chat-old" in refused
    for name in ("chat.service", process):
        assert f"--data stop_foreign={name}" in refused
    assert empty.ask(2, "docker ps --format '{{.Names}}'") == "chat-old"
    foreign = f"stop_foreign=chat-old,chat.service,{process}"
    stopped = empty.apply("recipe.py", both, foreign, inventory=PAIRS)
    assert "chat.service is stopped; to have it back: systemd-run" in stopped
    assert empty.ask(2, POLICY) == "no exited"
    empty.ask(2, "docker rm chat-old")
    assert completion(empty, 0, 8000) and completion(empty, 2, 8001)
    assert empty.look(1, "ls /var/lib/pyinfra-vllm").split() == ["a"]
    assert empty.look(3, "ls /var/lib/pyinfra-vllm").split() == ["b"]
    started = empty.ask(0, "systemctl show --value -p ActiveEnterTimestamp vllm-a")

    refused = empty.fails("teardown.py", inventory=PAIRS)
    assert "several gangs, a, b; say which: --data gang=NAME" in refused
    empty.power_cut(3)
    lost = empty.fails("teardown.py", "gang=b", inventory=PAIRS)
    name = empty.layout.machines[3].name
    assert f"{name}: can't be reached, nothing is removed there" in lost
    assert empty.look(2, OURS) == ""
    empty.power_on()
    empty.apply("teardown.py", "gang=b", inventory=PAIRS)
    assert empty.look(2, OURS) == empty.look(3, OURS) == ""
    assert completion(empty, 0, 8000)
    output = empty.apply("recipe.py", "recipe=a:stub-2x", inventory=PAIRS)
    assert "left alone: no recipe is said for gang b" in output
    assert empty.ask(0, "systemctl show --value -p ActiveEnterTimestamp vllm-a") == started
    # A node that still belongs to another gang gets no second engine.
    refused = empty.fails("recipe.py", "recipe=stub-4x")
    assert "is still of gang a" in refused and "deploys/teardown.py --data gang=a" in refused


@pytest.mark.soak
def test_our_images_go_with_the_gang_when_that_is_asked_for(gang: Gang) -> None:
    """Those of others, the Hugging Face cache and the Engram copies stay."""
    built = f"docker images --quiet --filter label={paths.LABEL_BUILD}"
    others = f"docker images --quiet | grep -vxF -e none $({built} | sed 's/^/-e /')"
    before = [(gang.look(rank, others), gang.ask(rank, NOT_OURS)) for rank in range(4)]
    assert all(gang.ask(rank, built) for rank in range(4))
    try:
        gang.apply("teardown.py", "images=true")
        assert [gang.look(rank, built) for rank in range(4)] == [""] * 4
        assert [gang.look(rank, OURS) for rank in range(4)] == [""] * 4
        assert [gang.look(rank, "ls -d /var/cache/pyinfra-vllm") for rank in range(4)] == [""] * 4
        after = [(gang.look(rank, others), gang.ask(rank, NOT_OURS)) for rank in range(4)]
        assert after == before
        again = gang.apply("teardown.py", "images=true")
        assert "] Success" not in again, "the second time changes nothing"
    finally:
        gang.deploy("stub-4x")
    assert gang.complete()
