"""What a gang has left on a node, which a teardown takes away. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra_vllm.agent import paths
from pyinfra_vllm.node.query import Query
from pyinfra_vllm.node.state import NodeState


@dataclass(frozen=True)
class Remains:
    """``containers``: ids by name. ``paths``: files and folders; ``kept`` says what stays, why."""

    unit: bool
    is_loaded: bool
    containers: dict[str, str]
    paths: tuple[str, ...]
    kept: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.unit or self.is_loaded or self.containers or self.paths)


def query_of(gang: str) -> Query:
    """What must be known of a node for that."""
    return Query(
        gang=gang,
        state_root=paths.STATE_ROOT,
        agent_path=paths.AGENT,
        unit_root=paths.UNIT_ROOT,
        composed_root=paths.COMPOSED_ROOT,
        files=(
            _unit_file(gang),
            paths.TMPFILES,
            paths.AGENT,
            paths.ENGRAM_PLAN,
            *_folders(gang),
        ),
        local_files=(paths.ENGRAM_ROOT, paths.CACHE_ROOT),
    )


def other_gangs(gang: str, state: NodeState) -> list[str]:
    """Names of the gangs that have releases on the node, but for one."""
    return [name for name in state.leftovers.required.gangs if name != gang]


def has(gang: str, state: NodeState) -> bool:
    """Whether anything on the node is this gang's: unit, container, folder."""
    unit = state.unit.required
    return (
        gang in state.leftovers.required.gangs
        or unit.exists
        or unit.active not in ("inactive", "")
        or any(state.file(path) for path in _folders(gang))
        or bool(_containers(gang, state))
    )


def remains(gang: str, state: NodeState, images: bool = False) -> Remains:
    """Everything of the gang that is ours on the node; ``images``: they are to go as well."""
    owned = [_unit_file(gang), *_folders(gang)]
    others, kept = other_gangs(gang, state), []
    if others:
        kept.append(f"{paths.AGENT} and {paths.TMPFILES}: gang {', '.join(others)} needs them")
    else:
        owned += [paths.AGENT, paths.ENGRAM_PLAN]
        if state.local_file(paths.ENGRAM_ROOT):
            kept.append(f"{paths.TMPFILES}: it keeps ageing away from {paths.ENGRAM_ROOT}")
        else:
            owned.append(paths.TMPFILES)
    found = [path for path in owned if state.file(path)]
    if images and not others and state.local_file(paths.CACHE_ROOT):
        found.append(paths.CACHE_ROOT)
    unit = state.unit.required
    return Remains(
        unit=unit.exists,
        is_loaded=unit.active not in ("inactive", ""),
        containers=_containers(gang, state),
        paths=tuple(found),
        kept=tuple(kept) if found or unit.exists else (),
    )


def _unit_file(gang: str) -> str:
    return f"{paths.UNIT_ROOT}/{paths.unit(gang)}"


def _folders(gang: str) -> tuple[str, ...]:
    return paths.gang_root(gang), paths.composed_root(gang), f"{paths.RUN_ROOT}/{gang}"


def _containers(gang: str, state: NodeState) -> dict[str, str]:
    return {
        one.name: one.id
        for one in state.containers.required
        if one.labels.get(paths.LABEL_GANG) == gang
    }
