"""How docker confines a container, as the options of ``docker run`` that would make it so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Options = dict[str, list[str]]
"""Option -> its values, sorted; those that say nothing are left out."""


def options(host: Mapping[str, Any]) -> Options:
    """Those of a HostConfig that a container can't do without, or mustn't have."""
    log = host.get("LogConfig") or {}
    found: dict[str, list[object]] = {
        "--network": [host.get("NetworkMode")],
        "--ipc": [host.get("IpcMode")],
        "--pid": [host.get("PidMode")],
        "--init": ["true" if host.get("Init") else None],
        "--privileged": ["true" if host.get("Privileged") else None],
        "--shm-size": [host.get("ShmSize")],
        "--ulimit": [f"{u['Name']}={u['Soft']}:{u['Hard']}" for u in host.get("Ulimits") or []],
        "--cap-add": [capability(name) for name in host.get("CapAdd") or []],
        "--cap-drop": [capability(name) for name in host.get("CapDrop") or []],
        "--device": [device.get("PathOnHost") for device in host.get("Devices") or []],
        "--oom-score-adj": [host.get("OomScoreAdj")],
        "--security-opt": [security(text) for text in host.get("SecurityOpt") or []],
        "--log-driver": [log.get("Type")],
        "--memory": [host.get("Memory")],
        "--cpuset-cpus": [host.get("CpusetCpus")],
        "--cpu-quota": [host.get("CpuQuota")],
        "--cpus": [host.get("NanoCpus")],
        "--pids-limit": [max(0, host.get("PidsLimit") or 0)],
    }
    said = {name: sorted(str(v) for v in values if v) for name, values in found.items()}
    return {name: values for name, values in said.items() if values}


def capability(name: str) -> str:
    """Without the prefix that newer daemons add."""
    return name.upper().removeprefix("CAP_")


def security(text: str) -> str:
    """An option of security, with the digest of a seccomp profile in its place."""
    name, _, value = text.partition("=")
    return f"{name}={profile(value)}" if name == "seccomp" and value[:1] == "{" else text


def profile(text: str) -> str:
    """Digest of a profile, however its JSON is laid out."""
    canonical = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
