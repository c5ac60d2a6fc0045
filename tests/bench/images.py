"""How long an image takes to three nodes at once, and to one by ``docker save | docker load``.

    python tests/bench/images.py [MIB]

On the lab that PYINFRA_VLLM_LAB names, with an image of random data made for it and removed
in the end. Both ways run in turn, so that they see the same machine. The nodes of a lab share
processors and disk: three loads at once cost three times the work there, which they don't on
nodes of their own. Also printed: how long a build digest takes.
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import sys
import time

from pyinfra_vllm import image_scripts
from pyinfra_vllm.image import LABEL, build_of
from pyinfra_vllm.lab import ssh, state
from pyinfra_vllm.lab.layout import BASE_IMAGE, DEFAULT_NAME, Layout

TAG = "bench/image:1"
DIGEST = "b" * 64
LAYERS = 6
TOKEN = "bench"
UNIT = "bench-share"


def make(lab: Layout, mib: int) -> str:
    """The image on the head; its Id."""
    piece = mib // LAYERS
    steps = [f"RUN head -c {piece}M /dev/urandom > /data{n}" for n in range(LAYERS)]
    text = "\n".join([f"FROM {BASE_IMAGE}", *steps]) + "\n"
    build = f"docker build --quiet --label {LABEL}={DIGEST} --tag {TAG} -"
    return ask(lab, 0, f"printf %s {shlex.quote(text)} | DOCKER_BUILDKIT=1 {build}")


def by_pipe(lab: Layout) -> float:
    """Seconds of one save and load, from the head to the next node."""
    argv = [ssh.argv(lab, lab.machines[0], f"docker save {TAG}")]
    argv += [ssh.argv(lab, lab.machines[1], "docker load --quiet")]
    began = time.monotonic()
    with subprocess.Popen(argv[0], stdout=subprocess.PIPE) as save:
        subprocess.run(argv[1], stdin=save.stdout, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def to_three(lab: Layout, image: str) -> float:
    """Seconds until three nodes have it, proved and tagged."""
    address = lab.machines[0].address
    began = time.monotonic()
    path = f"/run/{UNIT}.py"
    run = f"systemd-run --quiet --collect --unit {UNIT} python3 {path}"
    script = image_scripts.sharing(image, address, TOKEN, 3)
    ask(lab, 0, f"cat > {path} <<'END'\n{script}\nEND\n{run}")
    layers: list[str] = []
    receive = image_scripts.receiving(TAG, DIGEST, layers, 1, address, TOKEN)
    nodes = []
    for machine in lab.machines[1:]:
        node = subprocess.Popen(
            ssh.argv(lab, machine, "python3 -"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert node.stdin is not None
        node.stdin.write(receive.encode())
        node.stdin.close()
        nodes.append(node)
    failed = [node for node in nodes if node.wait()]
    ask(lab, 0, f"systemctl stop {UNIT}; rm -f {path}")
    if failed:
        sys.exit("a node didn't get the image; see above")
    return time.monotonic() - began


def ask(lab: Layout, rank: int, command: str) -> str:
    return ssh.ask(lab, lab.machines[rank], command).strip()


def remove(lab: Layout, ranks: range) -> None:
    for rank in ranks:
        ask(lab, rank, f"docker image rm -f {TAG} >/dev/null 2>&1; true")


def digest_seconds() -> float:
    times = []
    for _ in range(5):
        began = time.monotonic()
        build_of("glm53-jovian-r27", "jovian-r37-ds41", "x:1")
        times.append(time.monotonic() - began)
    return statistics.median(times)


def main() -> None:
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    lab = state.require(os.environ.get("PYINFRA_VLLM_LAB", DEFAULT_NAME))
    print(f"build digest: {digest_seconds():.3f} s (wanted: 0.1)")
    image = make(lab, mib)
    try:
        pipes, threes = [], []
        for _ in range(2):
            remove(lab, range(1, 4))
            pipes.append(by_pipe(lab))
            remove(lab, range(1, 4))
            threes.append(to_three(lab, image))
            print(f"save | load: {pipes[-1]:.1f} s; to three nodes: {threes[-1]:.1f} s", flush=True)
        ratio = min(threes) / min(pipes)
        print(f"{mib} MiB to three nodes at once: {ratio:.2f} x of one save | load (wanted: 2)")
    finally:
        remove(lab, range(4))


if __name__ == "__main__":
    main()
