"""The kinds of text in a recipe: each function returns the text or says what it should be."""

from __future__ import annotations

import posixpath
import re
import shlex

from pyinfra_vllm import managed
from pyinfra_vllm.validation import got

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIZE = re.compile(r"\d+(\.\d+)?\s?([kmgtp]i?)?b?", re.IGNORECASE)
_IMAGE = re.compile(
    r"([A-Za-z0-9.-]+(:\d+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(@sha256:[0-9a-f]{64})?"
)
_QUOTES = ("'", '"')


def unquote(word: str) -> str:
    """A word of args without the shell's quotes, if it is exactly one quoted word.

    Anything else is kept byte for byte: the engine gets what the recipe says.
    """
    stripped = word.strip()
    if not (stripped.startswith(_QUOTES) and stripped.endswith(_QUOTES)):
        return word
    try:
        read = shlex.split(stripped)
    except ValueError:
        return word
    return read[0] if len(read) == 1 else word


def argument(word: str) -> str:
    """One word of args: unquoted, and no flag that the launcher owns."""
    return managed.refuse_value(managed.refuse_word(plain(unquote(word))))


def first_word(word: str) -> str:
    """One word of entrypoint: filled, and no flag that the launcher owns."""
    if word.startswith("--") and word != "--":
        managed.refuse_word(word)
    return filled(word)


def plain(text: str) -> str:
    """Text that a process can be given: anything but the null character."""
    if "\0" in text:
        raise ValueError("holds a null character, which no process can be given")
    return text


def value(text: str) -> str:
    """A value of args or of a variable: plain, and nobody's key."""
    return managed.refuse_value(plain(text))


def filled(text: str) -> str:
    """Text that isn't empty and is on one line."""
    if not text.strip() or not text.isprintable():
        raise ValueError(f"expected one line of text, got {got(text)}")
    return text


def variable(name: str) -> str:
    """The name of an environment variable that a recipe may set."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError("expected the name of a variable: letters, digits and _")
    return managed.refuse_variable(name)


def secret(name: str) -> str:
    """The name of an environment variable whose value is secret."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError("expected the name of a variable: letters, digits and _; never its value")
    return managed.refuse_secret(name)


def measured(number: float) -> float:
    """A measured number: above 0 and finite."""
    if not 0 < number < float("inf"):
        raise ValueError(f"expected a number above 0, got {got(number)}")
    return number


def image(text: str) -> str:
    """A docker image reference."""
    if not _IMAGE.fullmatch(text):
        raise ValueError(f"expected an image such as name:tag, in lower case, got {got(text)}")
    return text


def folder(text: str) -> str:
    """The name of a folder or of a profile: no slash, no leading dot."""
    if not _FOLDER.fullmatch(text):
        raise ValueError(f"expected a plain name without slashes, got {got(text)}")
    return text


def repo(text: str) -> str:
    """A Hugging Face repository."""
    if not _REPO.fullmatch(text) or "--" in text or ".." in text:
        raise ValueError(f"expected a Hugging Face repository such as org/name, got {got(text)}")
    return text


def revision(text: str) -> str:
    """A commit, tag or branch of a Hugging Face repository."""
    if not _REVISION.fullmatch(text) or ".." in text or text.endswith("/") or "//" in text:
        raise ValueError(f"expected a commit, a tag or a branch, got {got(text)}")
    return text


_TAKEN = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root/.cache", "/run", "/sbin",
    "/sys", "/usr",
)  # fmt: skip
"""Folders of an image, and the one of the compile caches."""


def absolute(text: str) -> str:
    """An absolute path without ``..``, doubled or final slashes, that docker can mount."""
    if not text.startswith("/"):
        raise ValueError(f"expected an absolute path, got {got(text)}")
    normal = posixpath.normpath(text)
    if normal != text or text == "/":
        better = "" if normal in ("/", text) else f"; write {normal}"
        raise ValueError(f"expected the plain path of a file or folder, got {got(text)}{better}")
    if not text.isprintable() or set(text) & set(',:"'):
        raise ValueError(f'expected a path without , : " and control characters, got {got(text)}')
    return text


def mount(text: str) -> str:
    """Where a model is mounted in a container: in no folder that the image or we need."""
    path = absolute(text)
    for folder in _TAKEN:
        if f"{path}/".startswith(f"{folder}/") or folder.startswith(f"{path}/"):
            raise ValueError(f"expected a folder of its own such as /model, {folder} is in use")
    return path


def size(text: str) -> str:
    """An amount of memory as docker reads it."""
    if not _SIZE.fullmatch(text):
        raise ValueError(f"expected an amount of memory such as 32gb, got {got(text)}")
    return text


def positive(number: int) -> int:
    """A whole number of at least 1."""
    if number < 1:
        raise ValueError(f"expected a whole number of at least 1, got {got(number)}")
    return number


def engine(text: str) -> str:
    """The only engine there is."""
    if text != "vllm":
        raise ValueError(f'expected "vllm", the only engine, got {got(text)}')
    return text


def backend(text: str) -> str:
    """The only backend that starts ranks as the launcher needs it."""
    if text == "ray":
        raise ValueError(
            'expected "mp", got "ray": Ray runs a cluster of its own, whose workers survive '
            "the gang that started them"
        )
    if text != "mp":
        raise ValueError(f'expected "mp", got {got(text)}')
    return text
