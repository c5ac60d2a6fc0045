"""The one error of the agent."""

from __future__ import annotations


class Unmet(Exception):  # noqa: N818 (a state to wait out, not a mistake)
    """A precondition of the start is missing.

    ``str()`` is the whole message: what is missing, where, what to do. The
    agent waits and looks again; a command of the agent prints it and exits
    with ``EXIT_UNMET``.
    """


class Absent(Unmet):
    """A part of the release itself isn't on this node: waiting doesn't bring it."""


EXIT_UNMET = 75
"""EX_TEMPFAIL of sysexits.h: try again later."""
