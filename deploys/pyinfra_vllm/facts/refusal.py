"""The error that ends a run with nothing but its message."""

from __future__ import annotations

from types import TracebackType

from pyinfra.api.exceptions import PyinfraError


class Refusal(PyinfraError):  # noqa: N818 (an answer, not a failure of the program)
    """``str()`` is the whole message, for a person.

    pyinfra's command line looks in the traceback for the place of an error and prints it
    before the message; that place is a line of this package, and nobody can mend it there.
    """

    @property
    def __traceback__(self) -> None:
        """Nothing to show."""

    @__traceback__.setter
    def __traceback__(self, value: TracebackType | None) -> None:
        """Context managers put back what they found."""
