"""What the nodes borrow from this machine to reach package mirrors exactly as it does."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path

from pyinfra_vllm.lab.shell import attempt

SUITE = "bookworm"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
LOCAL_CAS = Path("/usr/local/share/ca-certificates")
_RESOLV_CONFS = (
    Path("/etc/resolv.conf"),
    Path("/run/systemd/resolve/resolv.conf"),
    Path("/run/NetworkManager/no-stub-resolv.conf"),
)
_APT_OPTIONS = re.compile(
    r'^Acquire::(?:(?:https?|ftp)::(?:[\w.-]+::)?Proxy|Check-Valid-Until|Check-Date) ".+";$'
)


def resolv_conf(texts: Iterable[str] | None = None) -> str | None:
    """The first resolver configuration whose servers a node can reach, or None.

    A stub on a loopback address answers this machine only, so the file with the
    stub's own upstream servers is taken instead.
    """
    if texts is None:
        texts = [path.read_text() for path in _RESOLV_CONFS if path.is_file()]
    for text in texts:
        servers = re.findall(r"^nameserver\s+(\S+)", text, re.MULTILINE)
        if any(not _is_loopback(server) for server in servers):
            kept = [line for line in text.splitlines() if not _names_loopback(line)]
            return "\n".join(kept) + "\n"
    return None


def apt_sources(texts: Iterable[str] | None = None) -> str:
    """One-line apt sources: this machine's own mirrors, empty where none is for bookworm."""
    if texts is None:
        folder = Path("/etc/apt/sources.list.d")
        paths = [Path("/etc/apt/sources.list"), *folder.glob("*.list"), *folder.glob("*.sources")]
        texts = [path.read_text() for path in sorted(paths) if path.is_file()]
    lines: list[str] = []
    for text in texts:
        lines += _deb822(text) if re.search(r"^Types:", text, re.MULTILINE) else _one_line(text)
    suites = {line.split()[-2] for line in lines}
    return "\n".join(lines) + "\n" if SUITE in suites else ""


def apt_options(dump: str | None = None) -> str:
    """The proxies and clock checks of this machine's apt, as an apt.conf."""
    text = attempt(["apt-config", "dump"]).stdout if dump is None else dump
    return "".join(f"{line}\n" for line in text.splitlines() if _APT_OPTIONS.match(line))


def local_cas() -> list[Path]:
    """Certificates that were added on this machine."""
    return sorted(LOCAL_CAS.glob("*.crt"))


def _is_loopback(server: str) -> bool:
    try:
        return ipaddress.ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return True


def _names_loopback(line: str) -> bool:
    words = line.split()
    return words[:1] == ["nameserver"] and len(words) > 1 and _is_loopback(words[1])


def _is_debian_suite(suite: str) -> bool:
    return suite in (SUITE, f"{SUITE}-updates", f"{SUITE}-security")


def _one_line(text: str) -> list[str]:
    found = []
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)", line.strip())
        if match and _is_debian_suite(match[2]) and "main" in match[3].split():
            found.append(f"deb {match[1]} {match[2]} main")
    return found


def _deb822(text: str) -> list[str]:
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", paragraph, re.MULTILINE))
        wanted = "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes") != "no"
        if not wanted or "main" not in fields.get("Components", "").split():
            continue
        for uri in fields.get("URIs", "").split():
            suites = filter(_is_debian_suite, fields.get("Suites", "").split())
            found += [f"deb {uri} {suite} main" for suite in suites]
    return found
