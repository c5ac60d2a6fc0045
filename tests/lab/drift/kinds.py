"""Kinds of drift: how each is planted on a node, and how the plan names it."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra_vllm.agent import paths

UNIT = "/etc/systemd/system/vllm-main.service"
ROOT = "/var/lib/pyinfra-vllm/main"
MODEL = "/tmp/composed-models/main/$R"
SHARD = "model-00002-of-00002.safetensors"
FILES = f"{ROOT}/releases/$R"
GONE = "f" * 64


@dataclass(frozen=True)
class Kind:
    """``plant`` is shell; ``$R`` in it is the wanted release. ``operation`` ``says`` it.

    ``of``: what is broken; of one thing only one kind can be planted at a time.
    """

    of: str
    plant: str
    operation: str
    says: str


def _file(name: str) -> dict[str, Kind]:
    path = f"{FILES}/{name}"
    change = f"{name} (changed)"
    return {f"{name} edited": Kind(name, f"echo x >> {path}", "release.staged", change)}


_RELEASE = {
    kind: found
    for name in ("launch.json", "command.txt", "release.json", "seccomp.json", "model.manifest")
    for kind, found in _file(name).items()
} | {
    "launch.json missing": Kind("launch.json", f"rm {FILES}/launch.json", "release.staged", "new"),
    "launch.json writable for all": Kind(
        "launch.json", f"chmod 0666 {FILES}/launch.json", "release.staged", "Will set mode 644"
    ),
    "command.txt of another owner": Kind(
        "command.txt", f"chown nobody {FILES}/command.txt", "release.staged", "Will set mode 644"
    ),
    "release.json closed to others": Kind(
        "release.json", f"chmod 0600 {FILES}/release.json", "release.staged", "Will set mode 644"
    ),
    "seccomp.json a link": Kind(
        "seccomp.json", f"ln -sf /dev/null {FILES}/seccomp.json", "release.staged", "it is a link"
    ),
    "model.manifest a directory": Kind(
        "model.manifest",
        f"rm {FILES}/model.manifest && mkdir {FILES}/model.manifest",
        "release.staged",
        "it is a directory",
    ),
    "stranger in the release": Kind(
        "stranger", f"touch {FILES}/notes", "release.staged", "notes: it is no part of the release"
    ),
    "release folder closed": Kind(
        "folder", f"chmod 0700 {FILES}", "release.staged", "Will set mode 0755"
    ),
    "release folder of another owner": Kind(
        "folder", f"chown nobody {FILES}", "release.staged", "Will set mode 0755"
    ),
    "current missing": Kind("current", f"rm {ROOT}/current", "release.named", "current name"),
    "current elsewhere": Kind(
        "current", f"ln -sfn releases/{GONE} {ROOT}/current", "release.named", "current name"
    ),
}


def _model(of: str, plant: str, says: str) -> Kind:
    return Kind(of, f"cd {MODEL} && {plant}", "composed_model.linked", says)


_MODEL = {
    "link missing": _model("config.json", "rm config.json", "config.json: is missing"),
    "link elsewhere": _model(
        "config.json", "ln -sf /etc/hostname config.json", "config.json: links to /etc/hostname"
    ),
    "file for a link": _model(
        "config.json", "rm config.json && echo {} > config.json", "config.json: is a file"
    ),
    "directory for a link": _model(
        "config.json", "rm config.json && mkdir config.json", "config.json"
    ),
    "stranger in the model": _model("model", "touch extra.bin", "extra.bin: is not of this model"),
    "shard is a copy": _model(
        SHARD, f"cp {SHARD} c && mv c {SHARD}", f"{SHARD}: is not the inode of"
    ),
    "shard missing": _model(SHARD, f"rm {SHARD}", f"{SHARD}: is missing"),
    "shard a link": _model(
        SHARD, f"ln -sf /var/tmp/engram-local/llama-tp4/{SHARD} {SHARD}", f"{SHARD}: is not the"
    ),
}

_SYSTEMD = {
    "unit disabled": Kind("enabled", "systemctl disable -q vllm-main", "unit.installed", "enable"),
    "unit enabled until the next boot": Kind(
        "enabled",
        "systemctl disable -q vllm-main && systemctl enable -q --runtime vllm-main",
        "unit.installed",
        "Will enable",
    ),
    "unit edited": Kind("unit", f"echo '# x' >> {UNIT}", "unit.installed", "vllm-main.service (ch"),
    "unit missing": Kind("unit", f"rm {UNIT}", "unit.installed", "vllm-main.service (new"),
    "unit masked": Kind("unit", f"ln -sf /dev/null {UNIT}", "unit.installed", "it is a link"),
    "unit writable for all": Kind("unit", f"chmod 0666 {UNIT}", "unit.installed", "Will set mode"),
    "unit of another owner": Kind(
        "unit", f"chown nobody {UNIT}", "unit.installed", "Will set mode"
    ),
    "drop-in that overrides Restart": Kind(
        "drop-in",
        f"printf '[Service]\\nRestart=no\\n' > {UNIT}.d/x.conf",
        "unit.installed",
        "x.conf aside: it overrides Restart",
    ),
    "drop-in that overrides ExecStart": Kind(
        "drop-in",
        "mkdir -p /run/systemd/system/vllm-main.service.d && printf "
        "'[Service]\\nExecStart=\\nExecStart=/bin/false\\n' > "
        "/run/systemd/system/vllm-main.service.d/y.conf",
        "unit.installed",
        "y.conf aside: it overrides ExecStart",
    ),
    "tmpfiles rules edited": Kind(
        "tmpfiles",
        f"echo '# x' >> {paths.TMPFILES}",
        "unit.installed",
        "pyinfra-vllm.conf (changed",
    ),
    "tmpfiles rules missing": Kind(
        "tmpfiles", f"rm {paths.TMPFILES}", "unit.installed", "pyinfra-vllm.conf (new"
    ),
    "tmpfiles rules closed to others": Kind(
        "tmpfiles", f"chmod 0600 {paths.TMPFILES}", "unit.installed", "Will set mode 644"
    ),
}

_OURS = {
    "agent edited": Kind("agent", f"echo x >> {paths.AGENT}", "agent.installed", "Will install"),
    "agent missing": Kind("agent", f"rm {paths.AGENT}", "agent.installed", "(is: nothing)"),
    "agent not executable": Kind(
        "agent", f"chmod 0644 {paths.AGENT}", "agent.installed", "mode 0644"
    ),
    "agent of another owner": Kind(
        "agent", f"chown nobody {paths.AGENT}", "agent.installed", "owner nobody"
    ),
    "members edited": Kind(
        "members", f"echo >> {ROOT}/gang.json", "members.known", "gang.json (changed"
    ),
    "members missing": Kind("members", f"rm {ROOT}/gang.json", "members.known", "gang.json (new"),
    "members writable for all": Kind(
        "members", f"chmod 0666 {ROOT}/gang.json", "members.known", "Will set mode 644"
    ),
    "secret readable for all": Kind(
        "secret", f"chmod 0644 {ROOT}/secret", "secret.shared", "Will copy the secret"
    ),
    "secret of another gang": Kind(
        "secret", f"head -c 32 /dev/urandom > {ROOT}/secret", "secret.shared", "Will copy the sec"
    ),
    "secret missing": Kind("secret", f"rm {ROOT}/secret", "secret.shared", "Will copy the secret"),
    "restart policy by hand": Kind(
        "policy",
        "docker update --restart always vllm-main >/dev/null",
        "container.unrestarted",
        "restart policy always",
    ),
    "image with other content": Kind(
        "image",
        "C=$(docker create --entrypoint true vllm-stub:lab) && docker cp /etc/hostname $C:/other "
        "&& docker commit $C vllm-stub:lab >/dev/null && docker rm $C >/dev/null",
        "image.present",
        "Will load vllm-stub:lab from",
    ),
    "ended container with our label": Kind(
        "container",
        "docker create --name left --label pyinfra-vllm.gang=main vllm-stub:lab true >/dev/null",
        "leftovers.removed",
        "container left: it is created",
    ),
    "composed model of no release": Kind(
        "composed", f"mkdir /tmp/composed-models/main/{GONE}", "leftovers.removed", GONE
    ),
    "stranger among the releases": Kind(
        "releases", f"mkdir {ROOT}/releases/mine", "leftovers.removed", "releases/mine"
    ),
    "half a release": Kind(
        "half", f"mkdir {ROOT}/releases/.{GONE}.partial", "leftovers.removed", ".partial"
    ),
}

_LAST = {
    "unit not read again": Kind(
        "unit", f"systemctl daemon-reload; sleep 1; touch {UNIT}", "unit.installed", "Will reload"
    ),
}

QUIET = {**_RELEASE, **_MODEL, **_SYSTEMD, **_OURS, **_LAST}
"""Kinds that are repaired while the gang serves on, in the order in which they can be planted."""

_SWAP = (
    "import json, sys; p = sys.argv[1]; d = json.load(open(p)); {change}; "
    "json.dump(d, open(p, 'w'))"
)


def _engine(of: str, change: str, says: str) -> Kind:
    """A changed ``launch.json`` that the engine is started from."""
    script = _SWAP.format(change=change)
    return Kind(of, f'python3 -c "{script}" {FILES}/launch.json', "gang.started", says)


STALE = {
    "engine with another argv": _engine(
        "argv", "d['argv'] += ['--seed', '7']", "argv is with --seed 7"
    ),
    "engine with another environ": _engine(
        "environ", "d['environ']['STUB_PACE'] = '0.2'", "environ has STUB_PACE=0.2, not 0.1"
    ),
    "engine with one variable more": _engine(
        "variable", "d['environ']['EXTRA'] = 'x'", "environ has EXTRA"
    ),
    "engine with another mount": _engine(
        "mount",
        "d['mounts'] += [dict(source='/etc', target='/x', read_only=True, create=False)]",
        "has the mount /etc -> /x (read-only)",
    ),
    "engine with another shm size": _engine(
        "shm", "d['options'] += ['--shm-size', '64m']", "container has --shm-size 67108864"
    ),
    "engine with another limit": _engine(
        "ulimit",
        "d['options'] += ['--ulimit', 'stack=8388608']",
        "container lacks --ulimit stack=67108864:67108864",
    ),
    "engine without a limit": _engine(
        "memlock",
        "i = d['options'].index('memlock=-1'); del d['options'][i - 1:i + 1]",
        "container lacks --ulimit memlock=-1:-1",
    ),
    "engine without the seccomp profile": _engine(
        "seccomp",
        "d['options'] = [['seccomp=unconfined', w][w[:8] != 'seccomp='] for w in d['options']]",
        "container has --security-opt seccomp=unconfined",
    ),
    "engine with the node's IPC": _engine(
        "ipc", "d['options'] += ['--ipc', 'host']", "container has --ipc host"
    ),
    "engine without init": _engine(
        "init", "d['options'].remove('--init')", "container lacks --init true"
    ),
    "engine with one capability more": _engine(
        "capability",
        "d['options'] += ['--cap-add', 'SYS_NICE']",
        "container has --cap-add SYS_NICE",
    ),
    "engine that memory pressure spares": _engine(
        "oom", "d['options'] += ['--oom-score-adj', '0']", "container lacks --oom-score-adj 500"
    ),
    "engine with a limit of memory": _engine(
        "memory", "d['options'] += ['--memory', '4g']", "container has --memory 4294967296"
    ),
    "engine with another label": _engine(
        "label", "d['labels']['pyinfra-vllm.recipe'] = 'y'", "label pyinfra-vllm.recipe is y"
    ),
}
"""Kinds in which the files are mended and the engine is of another time."""

STOPPED = {
    "unit stopped": Kind("stop", "systemctl stop vllm-main", "gang.joined", "Will start vllm-main"),
    "nothing wanted": Kind("wanted", f"rm {ROOT}/wanted.json", "gang.started", "nothing is wanted"),
}
"""Kinds that end the service by themselves."""
