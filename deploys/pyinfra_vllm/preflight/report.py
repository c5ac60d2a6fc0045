"""Findings as lines for a person: equal ones of several nodes together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from pyinfra_vllm.preflight.finding import Finding, Status

_ORDER: tuple[Status, ...] = ("fail", "warn", "waived", "unknown", "ok")


def summary(findings: Iterable[Finding]) -> str:
    """``preflight: 92 ok, 4 warn``, the worst first."""
    counts = Counter(finding.status for finding in findings)
    shown = [f"{counts[status]} {status}" for status in _ORDER if counts[status]]
    return f"preflight: {', '.join(shown)}"


def lines(findings: Iterable[Finding], *statuses: Status) -> list[str]:
    """One line for each finding of the given statuses (none given: of all)."""
    wanted = statuses or _ORDER
    nodes: dict[Finding, list[str]] = {}
    for finding in findings:
        if finding.status in wanted:
            nodes.setdefault(replace(finding, node=""), []).append(finding.node)
    together = [replace(finding, node=", ".join(names)) for finding, names in nodes.items()]
    together.sort(key=lambda finding: _ORDER.index(finding.status))
    return [
        f"{finding.status:8}{finding.check:19}{finding.sentence}"
        + (f" [{finding.source}]" if finding.status != "ok" else "")
        for finding in together
    ]
