"""dockerd, our images, our containers and the foreign ones that are in the way."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyinfra_vllm.node.collect import options
from pyinfra_vllm.node.collect.engine import Missing, ask, encoded
from pyinfra_vllm.node.collect.files import read_text
from pyinfra_vllm.node.collect.listeners import processes
from pyinfra_vllm.node.collect.parts import Document
from pyinfra_vllm.node.collect.secrets import masked
from pyinfra_vllm.node.collect.system import disk

_CAP_SYS_RESOURCE = 1 << 24  # include/uapi/linux/capability.h


def docker() -> Document:
    """The daemon itself."""
    info = ask("/info")
    return {
        "version": info["ServerVersion"],
        "data_root": info["DockerRootDir"],
        "data_root_disk": disk(info["DockerRootDir"]),
        "storage_driver": info["Driver"],
        "runtimes": sorted(info.get("Runtimes") or {}),
        "default_runtime": info.get("DefaultRuntime", ""),
        "cgroup_driver": info.get("CgroupDriver", ""),
        "cgroup_version": info.get("CgroupVersion", ""),
        "live_restore": bool(info.get("LiveRestoreEnabled")),
        "security": info.get("SecurityOptions") or [],
        "raises_limits": raises_limits(),
    }


def raises_limits(pid_file: str = "/var/run/docker.pid") -> bool | None:
    """Whether dockerd has CAP_SYS_RESOURCE, by its process; None when that can't be read."""
    pid = read_text(pid_file).strip()
    status = read_text(f"/proc/{pid}/status") if pid.isdigit() else ""
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) & _CAP_SYS_RESOURCE)
    return None


def images(label: str, tags: Iterable[str]) -> list[Document]:
    """Images whose ``label`` names a build digest, and those with the tags asked for."""
    labelled = encoded(json.dumps({"label": [label]}))
    names = [item["Id"] for item in ask(f"/images/json?filters={labelled}") or []]
    found: dict[str, Document] = {}
    for name in [*names, *tags]:
        try:
            shown = ask(f"/images/{encoded(name)}/json")
        except Missing:
            continue
        found[shown["Id"]] = image_state(shown, label)
    return list(found.values())


def image_state(shown: Mapping[str, Any], label: str) -> Document:
    """What matters of ``docker image inspect``; layers name the content, Ids may differ."""
    labels = (shown.get("Config") or {}).get("Labels") or {}
    return {
        "id": shown["Id"],
        "tags": shown.get("RepoTags") or [],
        "build": labels.get(label),
        "layers": (shown.get("RootFS") or {}).get("Layers") or [],
        "size": shown.get("Size", 0),
        "architecture": shown.get("Architecture", ""),
        "created": shown.get("Created", ""),
        "environ": sorted(_pairs((shown.get("Config") or {}).get("Env"))),
    }


def _pairs(environ: Iterable[str] | None) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in environ or [])}


def containers(label: str, api_port: int | None, environ: Iterable[str] = ()) -> list[Document]:
    """Our containers, and foreign ones that run and have a GPU or the API port.

    ``label`` is the key that names the gang; ``environ`` the variables whose values are told.
    """
    listening = {item["container_id"] for item in processes(api_port)}
    found = []
    for item in ask("/containers/json?all=1"):
        if label not in (item.get("Labels") or {}) and item["State"] != "running":
            continue
        try:
            shown = ask(f"/containers/{item['Id']}/json")
        except Missing:
            continue
        state = container_state(shown, label, api_port)
        if state["ours"]:
            state.update(started_with(shown["Config"], set(environ)))
            state["options"] = options.options(shown["HostConfig"])
            state["layers"] = _layers(shown["Image"])
        state["uses_api_port"] |= item["Id"] in listening
        if state["ours"] or state["gpu"] or state["uses_api_port"]:
            found.append(state)
    return found


def _layers(image: str) -> list[str] | None:
    """Of the image that a container was made of; it may have lost its tag and be in no list."""
    try:
        shown = ask(f"/images/{encoded(image)}/json")
    except Missing:
        return None
    return list((shown.get("RootFS") or {}).get("Layers") or [])


def container_state(shown: Mapping[str, Any], label: str, api_port: int | None) -> Document:
    """What matters of ``docker inspect`` of any container: no environment and no command."""
    state, config, host = shown["State"], shown["Config"], shown["HostConfig"]
    labels = config.get("Labels") or {}
    prefix = label.partition(".")[0] + "."
    return {
        "id": shown["Id"],
        "name": shown["Name"].lstrip("/"),
        "image": shown["Image"],
        "image_name": config.get("Image", ""),
        "labels": {key: value for key, value in labels.items() if key.startswith(prefix)},
        "ours": label in labels,
        "state": state["Status"],
        "exit_code": state["ExitCode"],
        "oom_killed": bool(state.get("OOMKilled")),
        "error": state.get("Error", ""),
        "pid": state["Pid"],
        "started_at": state.get("StartedAt", ""),
        "finished_at": state.get("FinishedAt", ""),
        "network": host.get("NetworkMode", ""),
        "gpu": has_gpu(host),
        "restart_policy": (host.get("RestartPolicy") or {}).get("Name") or "no",
        "uses_api_port": api_port in published_ports(host),
        "mounts": [
            {
                "source": mount.get("Source", ""),
                "target": mount.get("Destination", ""),
                "read_only": not mount.get("RW", True),
            }
            for mount in shown.get("Mounts") or []
        ],
    }


def started_with(config: Mapping[str, Any], wanted: Collection[str]) -> Document:
    """Command and environment of a container of ours; of variables not ``wanted`` the name only."""
    words = [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]
    pairs = _pairs(config.get("Env"))
    return {
        "argv": masked(words),
        "environ": {name: value if name in wanted else None for name, value in pairs.items()},
    }


def has_gpu(host: Mapping[str, Any]) -> bool:
    """Whether a HostConfig gives the container a GPU: by request, runtime or device node."""
    requests = host.get("DeviceRequests") or []
    devices = [device.get("PathOnHost", "") for device in host.get("Devices") or []]
    return (
        bool(requests)
        or host.get("Runtime") == "nvidia"
        or any(path.startswith(("/dev/nvidia", "/dev/dri")) for path in devices)
    )


def published_ports(host: Mapping[str, Any]) -> set[int]:
    """Host ports that dockerd forwards to the container."""
    bindings = (host.get("PortBindings") or {}).values()
    return {
        int(binding["HostPort"])
        for several in bindings
        for binding in several or []
        if binding.get("HostPort")
    }
