"""When something is wrong: what is seen, where to look, why it is so, what to do. Pure.

The page that people read is made from this table and from that of the preflight.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra_vllm.preflight.table import FIRST, GANG, NODE

FILE = "deploys/WHEN_SOMETHING_IS_WRONG.md"


@dataclass(frozen=True)
class Symptom:
    """A fact of the field. ``check`` is a command, or what to look at; texts are Markdown."""

    seen: str
    check: str
    cause: str
    remedy: str


SYMPTOMS = (
    Symptom(
        "Requests fail or hang while `/health` is 200",
        "`pyinfra-vllm status INVENTORY`",
        "the engine is dead behind its API server; `/health` doesn't notice",
        "nothing: the head asks for a completion, and the gang starts anew",
    ),
    Symptom(
        "The gang waits and serves nothing",
        "`pyinfra-vllm status INVENTORY`: the phase says whom or what it waits for",
        "a node is away, or a precondition is missing on one",
        "bring back what is named; the start follows by itself",
    ),
    Symptom(
        "The gang starts again and again",
        "`pyinfra-vllm logs INVENTORY --first-failure`",
        "the engine of one rank dies; all others only follow it",
        "mend what its last lines say, then deploy again",
    ),
    Symptom(
        "The head says that it gave up",
        "`pyinfra-vllm status INVENTORY`",
        "five engines died before a first completion",
        "deploy what is mended, or run `deploys/resume.py` to try the same again",
    ),
    Symptom(
        "The engine is killed without a word",
        "`dmesg` on the node; exit code 137",
        "memory ran out: engine, builds and page cache share 121.7 GiB on a GB10",
        "lower `--gpu-memory-utilization`; build elsewhere (`vllm_image_source`)",
    ),
    Symptom(
        "Answers are slow, and nothing fails",
        "`journalctl -u vllm-main | grep NET/`",
        "NCCL has fallen back to sockets: no device, no `IPC_LOCK`, or no memlock",
        "run the deploy: it proves RDMA after each start, and says what is missing",
    ),
    Symptom(
        "A long prompt shows no tokens for minutes",
        "`pyinfra-vllm status INVENTORY`: the KV cache moves",
        "prompt tokens are counted when the whole prefill is done",
        "nothing: movement of the KV cache counts as life",
    ),
    Symptom(
        "The text is wrong, and nothing fails",
        "`pyinfra-vllm facts INVENTORY --recipe NAME`: check `local-files`",
        "a copy of an Engram shard has a hole, or rows of another rank: both read as zeros",
        "run `deploys/engram.py`, then deploy",
    ),
    Symptom(
        "A composed model can't be linked (EXDEV)",
        "`findmnt /tmp /var/tmp` on the node",
        "a hard link can't cross file systems or bind mounts",
        "put both on one disk, or set `copy = true` for the file in the recipe",
    ),
    Symptom(
        "The GPU is gone after `systemctl daemon-reload`",
        "`nvidia-smi` inside the container",
        "a reload can take devices from running containers (nvidia-container-toolkit #48)",
        "restart the unit on the head; deploys reload only when a unit file changed",
    ),
    Symptom(
        "A start hangs after one that was fine",
        "`pyinfra-vllm logs INVENTORY`",
        "only some ranks found FlashInfer's autotune cache (vllm #57423)",
        "nothing: agents clear it on all ranks before each start",
    ),
    Symptom(
        "A request for structured output kills the engine",
        "`pyinfra-vllm logs INVENTORY --first-failure`: the last request",
        "`--jit-monitor-mode error` raises when a kernel was not warmed",
        "write `warn` in the recipe",
    ),
    Symptom(
        "The plan names changes that nobody has made here",
        "`pyinfra-vllm plan INVENTORY RECIPE`: the diff",
        "somebody has changed a node by hand, or another operator deploys",
        "run the deploy: it repairs what the plan names and nothing else",
    ),
    Symptom(
        "A file is as it should be and the engine isn't",
        "`pyinfra-vllm plan INVENTORY RECIPE`: `what runs is not the release`",
        "the engine was started from the file while it was changed",
        "run the deploy: it starts the gang anew",
    ),
)


def text() -> str:
    """The page."""
    rows = [_row(s.seen, s.check, s.cause, s.remedy) for s in SYMPTOMS]
    checks = [_row(f"`{check.name}`", check.source) for check in (*FIRST, *NODE, *GANG)]
    return "\n".join(
        [
            "# When something is wrong",
            "",
            "This page is made from the tables in the code; a test says when it is old.",
            "",
            "| what is seen | where to look | why | what to do |",
            "|---|---|---|---|",
            *rows,
            "",
            "## What a deploy checks before it changes anything",
            "",
            "`pyinfra-vllm plan INVENTORY RECIPE` makes the same checks. A finding says what was",
            "measured, what is needed, and what to do. A check that is wrong about a machine is",
            "waived by its name: `vllm_waive` in [the inventory](../inventory/README.md).",
            "",
            "| check | why it is made |",
            "|---|---|",
            *checks,
            "",
        ]
    )


def _row(*cells: str) -> str:
    """A line of a table in Markdown, where a bar begins the next cell, in code as well."""
    return f"| {' | '.join(_in_cell(cell) for cell in cells)} |"


def _in_cell(text: str) -> str:
    return text.replace("|", r"\|")
