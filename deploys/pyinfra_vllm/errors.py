"""Errors that are meant for a person."""

from __future__ import annotations


class UserError(Exception):
    """A mistake that its reader can mend.

    ``str()`` is the whole message: what is wrong, where (file and key, node and
    path), what to do. It is shown without a traceback.
    """
