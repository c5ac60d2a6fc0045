"""Images from a registry: Debian's docker-registry, which each node reaches as 127.0.0.1:5000.

A dockerd trusts its own host without TLS. So a registry on one node serves all, each through a
socket of its own that systemd forwards.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_vllm.lab import ssh

from .conftest import Lab
from .test_image_operations import TAG, Site, site

__all__ = ["site"]

pytestmark = pytest.mark.lab

PORT = 5000
NAME = f"127.0.0.1:{PORT}/toy/engine"
PROXY = "/lib/systemd/systemd-socket-proxyd"
CONFIG = "version: 0.1\nstorage: {filesystem: {rootdirectory: /var/tmp/toy-registry}}\n"


@pytest.fixture(scope="module")
def registry(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab whose nodes all reach one registry."""
    folder = tmp_path_factory.mktemp("registry")
    folder.chmod(0o755)
    for argv in (["apt-get", "download", "docker-registry"], ["sh", "-c", "dpkg-deb -x *.deb ."]):
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    head, program = lab.machines[0], Path(folder / "usr/bin/docker-registry")
    with program.open("rb") as stream:
        place = "cat > /run/toy-registry && chmod 0755 /run/toy-registry"
        ssh.ask(lab.layout, head, place, stream)
    ssh.ask(lab.layout, head, "cat > /run/toy-registry.yml", CONFIG)
    serve = (
        f"systemd-run --quiet --collect --unit toy-registry --setenv REGISTRY_HTTP_ADDR=:{PORT} "
        "/run/toy-registry serve /run/toy-registry.yml"
    )
    lab.ask(0, serve)
    for rank in (1, 2, 3):
        lab.ask(
            rank,
            f"systemd-run --quiet --collect --unit toy-registry --socket-property "
            f"ListenStream=127.0.0.1:{PORT} {PROXY} {head.address}:{PORT}",
        )
    yield lab
    for rank in range(4):
        lab.ask(rank, "systemctl stop toy-registry.socket toy-registry.service 2>/dev/null; true")
    lab.ask(0, "rm -rf /run/toy-registry /run/toy-registry.yml /var/tmp/toy-registry")


def test_every_node_pulls_the_digest_that_the_inventory_names(registry: Lab, site: Site) -> None:
    code, out = site.run()
    assert code == 0, out
    layers = site.layers()
    registry.ask(0, f"docker tag {TAG} {NAME}:1 && docker push --quiet {NAME}:1")
    digest = registry.ask(0, f"docker inspect -f '{{{{index .RepoDigests 0}}}}' {NAME}:1")
    for rank in range(4):
        registry.ask(rank, f"docker image rm --force $(docker image ls -q {TAG} | head -n 1)")
    assert site.layers() == ["", "", "", ""]

    source = f"data['vllm_image_source'] = 'registry:{digest}'"
    site.inventory(source)
    code, out = site.run()
    assert code == 0, out
    assert site.layers() == layers
    code, out = site.run("--diff")
    assert code == 0 and "Will " not in out, out

    # The same name holds what another source lock describes.
    site.image("RUN echo another")
    code, out = site.run()
    assert code == 1
    assert f"{digest} holds the image of another build" in out
    assert "Traceback" not in out

    # Nobody has it, and the registry is away.
    site.inventory(source.replace("toy/engine", "toy/missing"))
    code, out = site.run()
    assert code == 1 and "docker pull" in out and "toy/missing" in out
