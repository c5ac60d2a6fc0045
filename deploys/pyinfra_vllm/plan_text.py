"""A plan as text for a terminal, and as Markdown for a pull request. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pyinfra_vllm.consequences import TITLES, Consequence
from pyinfra_vllm.plan import Change, Found, GangPlan, Outage, Plan, said

LIMIT = 60_000
"""Characters of the Markdown: a comment on GitHub may have 65,536."""

_SHOWN = ("fail", "warn", "waived", "unknown")
_DIFF_LINES = 80


def text(plan: Plan) -> str:
    """For a person at a terminal; the last line is the verdict."""
    lines = [line for gang in plan.gangs for line in _gang(gang)]
    lines += [f"{node}: not known: {why}" for node, why in plan.unknown.items()]
    return "\n".join([*lines, plan.verdict]) + "\n"


def _gang(gang: GangPlan) -> Iterator[str]:
    yield _headline(gang)
    yield f"planned for {_nodes(gang)}"
    for consequence, title in TITLES.items():
        changes = gang.of(consequence)
        if changes:
            yield f"{title}{_price(gang, consequence)}:"
        for change in changes:
            yield f"  {change.operation} ({', '.join(change.nodes)})"
            for line in change.lines:
                yield from (f"      {part}" for part in _cut(line.text.splitlines(), _DIFF_LINES))
    shown = [found for found in gang.findings if found.status in _SHOWN]
    yield f"preflight: {counts(gang)}"
    yield from (f"  {line}" for line in _found(shown))
    if gang.error:
        yield from gang.error.splitlines()


def _headline(gang: GangPlan) -> str:
    now = f", {gang.state}" if gang.state else ""
    if gang.release is None:
        return f"gang {gang.gang}{now}: what the recipe would make of it can't be told"
    if gang.wanted == gang.release:
        return f"gang {gang.gang}: {gang.recipe}, release {gang.release[:12]}{now}"
    before = gang.wanted[:12] if gang.wanted else "nothing"
    return f"gang {gang.gang}: {gang.recipe}, release {before} -> {gang.release[:12]}{now}"


def _nodes(gang: GangPlan) -> str:
    return ", ".join(gang.nodes) or "no node"


def _price(gang: GangPlan, consequence: Consequence) -> str:
    if consequence != "restart":
        return ""
    return f", {outage(gang.outage)}"


def outage(expected: Outage | None) -> str:
    """The expected time without service in words."""
    if expected is None:
        return "time without service not known"
    return f"about {expected.seconds:.0f} s without service ({expected.source})"


def counts(gang: GangPlan) -> str:
    """``92 ok, 4 warn``."""
    found: dict[str, int] = {}
    for finding in gang.findings:
        found[finding.status] = found.get(finding.status, 0) + 1
    order = ("ok", *_SHOWN)
    return ", ".join(f"{found[key]} {key}" for key in order if key in found) or "not made"


def _found(findings: list[Found]) -> Iterator[str]:
    """Findings with the same words on several nodes in one line."""
    for (status, check, sentence), same in groupby(
        sorted(findings, key=lambda found: (_SHOWN.index(found.status), found.check, _bare(found))),
        key=lambda found: (found.status, found.check, _bare(found)),
    ):
        nodes = ", ".join(found.node for found in same if found.node)
        yield f"{status:8}{check:19}{nodes + ': ' if nodes else ''}{sentence}"


def _bare(found: Found) -> str:
    return found.sentence.removeprefix(f"{found.node}: ") if found.node else found.sentence


def markdown(plan: Plan) -> str:
    """For a comment on a pull request: never longer than :data:`LIMIT`, diffs are cut first."""
    for diff_lines in (_DIFF_LINES, 20, 0):
        found = "\n".join(_markdown(plan, diff_lines)) + "\n"
        if len(found) <= LIMIT:
            return found
    return found[: LIMIT - 40] + "\n\n… (cut: the whole plan is longer)\n"


def _markdown(plan: Plan, diff_lines: int) -> Iterator[str]:
    yield f"### {plan.recipe}: {plan.verdict}"
    for gang in plan.gangs:
        yield from ("", f"{_headline(gang)}; planned for {_nodes(gang)}")
        for consequence, title in TITLES.items():
            if changes := gang.of(consequence):
                yield from ("", f"**{title[0].upper()}{title[1:]}**{_price(gang, consequence)}", "")
            for change in changes:
                yield from _markdown_change(change, diff_lines)
        shown = [found for found in gang.findings if found.status in _SHOWN]
        yield from ("", f"Preflight: {counts(gang)}")
        if shown:
            yield from _fenced(list(_found(shown)))
        if gang.error:
            yield from ("", "**A deploy refuses:**", *_fenced(gang.error.splitlines()))
    for node, why in plan.unknown.items():
        yield from ("", f"`{node}` is **unknown**: {why}")


def _markdown_change(change: Change, diff_lines: int) -> Iterator[str]:
    nodes = ", ".join(f"`{node}`" for node in change.nodes)
    yield f"- {change.operation} ({nodes})"
    yield from (f"  - {sentence}" for sentence in said(change.lines, "text"))
    for diff in said(change.lines, "diff"):
        lines = diff.splitlines()
        if len(lines) == 1:
            yield f"  - {lines[0].removeprefix('--- ')}"
            continue
        yield from ("", f"  <details><summary>{lines[0].removeprefix('--- ')}</summary>", "")
        yield "  ```diff"
        yield from (f"  {_defused(line)}" for line in _cut(lines, diff_lines))
        yield from ("  ```", "", "  </details>", "")


def _cut(lines: list[str], longest: int) -> list[str]:
    if len(lines) <= longest:
        return lines
    return [*lines[:longest], f"… {len(lines) - longest} lines more (--json has them all)"]


def _fenced(lines: list[str]) -> list[str]:
    return ["", "```", *map(_defused, lines), "```"]


def _defused(line: str) -> str:
    """No line of a file may end the fence that it is shown in."""
    return line.replace("```", "'''")
