"""The error that ends a run with nothing but its message."""

from __future__ import annotations

from pyinfra.api.exceptions import PyinfraError


class Refusal(PyinfraError):  # noqa: N818 (an answer, not a failure of the program)  # noqa: N818 - it is no fault of the program
    """``str()`` is the whole message, for a person.

    pyinfra's command line looks in the traceback for the place of an error and prints it
    before the message; that place is a line of this package, and nobody can mend it there.
    """

    @property
    def __traceback__(self) -> None:  # type: ignore[override]
        """Nothing to show."""
