"""Commands of the agent."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

from . import paths
from .errors import EXIT_UNMET, Unmet

# The code of a command is imported by it alone: between two starts of a gang `remove` runs
# (ExecStopPost), and an archive has no compiled code.


def _digest() -> str:
    """sha256 of the archive that runs, or nothing when it isn't an archive."""
    archive = Path(sys.argv[0])
    return hashlib.sha256(archive.read_bytes()).hexdigest() if archive.is_file() else ""


def _run(gang: str) -> int:
    from .report import Report
    from .run import Agent

    return Agent(gang, Report(gang, paths.here(paths.status_file(gang)), _digest())).run()


def _compose(release: str) -> int:
    from . import compose

    print(compose.compose(Path(release)))
    return 0


def _prove(release: str) -> int:
    from . import compose

    manifest = compose.manifest_of(Path(release))
    proven = compose.prove(manifest, compose.plan_of(manifest))
    print("\n".join(proven) or "there is no local shard to prove")
    return 0


def _engram(plan: str) -> int:
    from . import document, engram_job

    engram_job.run(
        engram_job.parse(document.read(Path(plan))), lambda text: print(text, flush=True)
    )
    return 0


def _remove(gang: str) -> int:
    from . import docker

    removed = docker.remove_own(gang)
    if removed:
        print(f"removed {removed} container(s) of gang {gang}")
    return 0


def _status(gang: str) -> int:
    from . import status

    known = status.read(paths.here(paths.status_file(gang)))
    if known is None:
        known = {"schema": 1, "gang": gang, "phase": None, "detail": "the agent has not run yet"}
        known |= {"running": False}
    else:
        known["running"] = status.runs(known)
    print(json.dumps(known, indent=1))
    return 0


def _back(gang: str, release: str, why: str, who: str) -> int:
    """Only from this release: whoever asked for another one meanwhile has it."""
    from . import trial
    from .wish import Wishes

    wishes = Wishes(gang)
    wish = wishes.look()
    if wish.release != release or wish.terms is None or not wish.terms.previous:
        print(json.dumps({"wanted": wish.release, "back": False}))
        return 0
    document = trial.wish_to_go_back(wish.whole, why, time.time())
    wishes.replace({**document, "by": {"who": who}})
    print(json.dumps({"wanted": wish.terms.previous, "back": True}))
    return 0


def _selftest() -> int:
    from . import selftest

    return selftest.main()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agent.pyz", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="main process of vllm-GANG.service")
    run.add_argument("gang", metavar="GANG")
    build = commands.add_parser("compose", help="bring a composed model to its manifest")
    build.add_argument("release", metavar="RELEASE_DIR")
    proof = commands.add_parser("prove", help="look whether local shards hold this rank's rows")
    proof.add_argument("release", metavar="RELEASE_DIR")
    copies = commands.add_parser("engram", help="make or top up local copies of Engram shards")
    copies.add_argument("plan", metavar="PLAN_FILE")
    remove = commands.add_parser("remove", help="kill and remove the gang's containers")
    remove.add_argument("gang", metavar="GANG")
    back = commands.add_parser("back", help="want again what served before this release")
    back.add_argument("gang", metavar="GANG")
    back.add_argument("release", metavar="RELEASE")
    back.add_argument("--why", required=True, metavar="TEXT")
    back.add_argument("--who", required=True, metavar="WHO")
    state = commands.add_parser("status", help="what the agent says of itself, as JSON")
    state.add_argument("gang", metavar="GANG")
    commands.add_parser("selftest", help="exit 0 when the agent is usable on this node")
    return parser


def main() -> int:
    """Exit code of the command that the words of the command line ask for."""
    words = _parser().parse_args()
    try:
        if words.command == "run":
            return _run(paths.checked_gang(words.gang))
        if words.command == "compose":
            return _compose(words.release)
        if words.command == "prove":
            return _prove(words.release)
        if words.command == "engram":
            return _engram(words.plan)
        if words.command == "remove":
            return _remove(paths.checked_gang(words.gang))
        if words.command == "back":
            gang = paths.checked_gang(words.gang)
            return _back(gang, words.release, words.why, words.who)
        if words.command == "status":
            return _status(paths.checked_gang(words.gang))
        return _selftest()
    except Unmet as unmet:
        print(unmet, file=sys.stderr)
        return EXIT_UNMET


if __name__ == "__main__":
    sys.exit(main())
