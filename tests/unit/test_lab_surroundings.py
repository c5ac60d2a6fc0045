from __future__ import annotations

from pathlib import Path

import pytest

from pyinfra_vllm.lab import root, surroundings, variables

STUB = "nameserver 127.0.0.53\noptions edns0\n"
DEB822 = """Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: https://other.example/repo
Suites: nodistro
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""


def test_a_resolver_that_nodes_can_reach_is_taken_as_it_is() -> None:
    text = "search example\nnameserver 192.0.2.53\n"
    assert surroundings.resolv_conf([text, "nameserver 192.0.2.1\n"]) == text


def test_behind_a_loopback_stub_its_upstream_is_taken() -> None:
    assert surroundings.resolv_conf([STUB, "nameserver 192.0.2.1\n"]) == "nameserver 192.0.2.1\n"


def test_loopback_servers_beside_real_ones_are_left_out() -> None:
    text = "nameserver ::1\nnameserver 2001:db8::1\nnameserver 127.0.0.1\n"
    assert surroundings.resolv_conf([text]) == "nameserver 2001:db8::1\n"


def test_without_any_reachable_resolver_there_is_none() -> None:
    assert surroundings.resolv_conf([STUB]) is None


def test_mirrors_of_this_machine_are_used_and_foreign_suites_are_not() -> None:
    assert surroundings.apt_sources([DEB822]).splitlines() == [
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm-updates main",
    ]


def test_one_line_sources_with_options_are_understood() -> None:
    text = (
        "# deb http://commented.example bookworm main\n"
        "deb [arch=amd64 signed-by=/x.gpg] http://mirror.example/debian bookworm main non-free\n"
        "deb-src http://mirror.example/debian bookworm main\n"
    )
    assert surroundings.apt_sources([text]) == "deb http://mirror.example/debian bookworm main\n"


def test_another_distribution_has_no_mirror_for_the_nodes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "deb http://archive.example/ubuntu noble main\n"
    assert surroundings.apt_sources([text]) == ""
    made: list[list[str]] = []
    monkeypatch.setattr(root, "CACHE", tmp_path)
    monkeypatch.setattr(root, "run", lambda argv: made.append([str(word) for word in argv]))
    for own in ("", "deb http://mirror.example/debian bookworm main\n"):
        monkeypatch.setattr(surroundings, "apt_sources", lambda own=own: own)
        root.bootstrap(("python3",), tmp_path / "root")
    plain, mirrored = made
    assert plain[-2:] == ["bookworm", str(tmp_path / "root")], "mmdebstrap's own mirrors"
    assert mirrored == [*plain, str(tmp_path / "root.list")]


def test_only_proxies_and_clock_checks_of_apt_are_borrowed() -> None:
    dump = (
        'Acquire::http::Proxy "http://proxy.example:3128";\n'
        'Acquire::https::host.example::Proxy "DIRECT";\n'
        'Acquire::Check-Valid-Until "false";\n'
        'Acquire::http::User-Agent "x";\n'
        'Dir::Cache "";\n'
    )
    assert surroundings.apt_options(dump).splitlines() == dump.splitlines()[:3]


@pytest.fixture
def no_local_cas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "local_cas", list)


@pytest.mark.usefixtures("no_local_cas")
def test_nothing_is_set_where_nothing_is_set() -> None:
    assert variables.installers({}, []) == {}
    assert variables.proxies({"http_proxy": ""}) == {}


@pytest.mark.usefixtures("no_local_cas")
def test_a_ca_bundle_of_this_machine_becomes_the_one_of_the_image() -> None:
    environ = {"SSL_CERT_FILE": "/home/me/ca.pem", "PIP_DEFAULT_TIMEOUT": "60"}
    assert variables.installers(environ, []) == {
        "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
        "PIP_DEFAULT_TIMEOUT": "60",
    }


@pytest.mark.usefixtures("no_local_cas")
def test_indexes_on_this_machines_disk_are_left_out() -> None:
    environ = {"PIP_EXTRA_INDEX_URL": "file:///x/simple https://index.example/simple /y"}
    assert variables.installers(environ, []) == {
        "PIP_EXTRA_INDEX_URL": "https://index.example/simple"
    }


@pytest.mark.usefixtures("no_local_cas")
def test_pips_own_files_count_and_the_environment_wins() -> None:
    files = ["[global]\nindex-url = https://a.example/\ntrusted-host = a.example\n"]
    environ = {"PIP_INDEX_URL": "https://b.example/"}
    assert variables.installers(environ, files) == {
        "PIP_INDEX_URL": "https://b.example/",
        "PIP_TRUSTED_HOST": "a.example",
    }


def test_added_certificates_make_every_client_use_the_bundle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(variables, "local_cas", lambda: ["/x.crt"])
    assert variables.installers({}, [])["PIP_CERT"] == "/etc/ssl/certs/ca-certificates.crt"
