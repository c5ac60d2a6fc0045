"""Compare what the installed distributions say they need with what is installed.

Runs as a step of an image's build: a lock that pins past a declared requirement installs
without a word, and fails when someone first uses it. ``--waive DISTRIBUTION:REQUIREMENT``
names one that is broken on purpose; a waiver that nothing needs is a finding too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waive", action="append", default=[], metavar="DISTRIBUTION:REQUIREMENT")
    options = parser.parse_args()
    waived = {_pair(*text.partition(":")[::2]) for text in options.waive}
    broken = dict(_broken())
    findings = [text for pair, text in broken.items() if pair not in waived]
    findings += [f"{one}: waived, and holds" for one in sorted(waived - set(broken))]
    for finding in findings:
        print(f"declared: {finding}", file=sys.stderr)
    return 1 if findings else 0


def _broken() -> Iterator[tuple[str, str]]:
    """``distribution:requirement`` and a sentence, for each requirement that doesn't hold."""
    versions = {canonicalize_name(one.name): one.version for one in metadata.distributions()}
    for one in metadata.distributions():
        for text in one.requires or ():
            try:
                wanted = Requirement(text)
            except InvalidRequirement as error:
                yield _pair(one.name, text), f"{one.name} declares {text!r}: {error}"
                continue
            if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
                continue
            found = versions.get(canonicalize_name(wanted.name))
            if found is None:
                yield _pair(one.name, wanted.name), f"{one.name} needs {text}: not installed"
            elif not wanted.specifier.contains(found, prereleases=True):
                yield _pair(one.name, wanted.name), f"{one.name} needs {text}: {found} is installed"


def _pair(distribution: str, requirement: str) -> str:
    return f"{canonicalize_name(distribution)}:{canonicalize_name(requirement)}"


if __name__ == "__main__":
    sys.exit(main())
