"""Read a JSON document key by key; what is wrong is said with file and key path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import Unmet

_KINDS = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


@dataclass(frozen=True)
class Document:
    """A value inside a JSON file. Unknown keys are left alone: the schemas only grow."""

    file: str
    value: object
    path: str = ""

    def _wrong(self, path: str, message: str) -> Unmet:
        return Unmet(f"{self.file}: {path or 'the document'}: {message}; run the deploy again")

    def _typed(self, value: object, kind: type, path: str) -> object:
        right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if not right:
            raise self._wrong(path, f"expected {_KINDS[kind]}, got {json.dumps(value)[:80]}")
        return value

    def _get(self, key: str, kind: type) -> object:
        path = f"{self.path}.{key}" if self.path else key
        table = self._typed(self.value, dict, self.path)
        assert isinstance(table, dict)
        if key not in table:
            raise self._wrong(path, "is missing")
        return self._typed(table[key], kind, path)

    def has(self, key: str) -> bool:
        """Whether ``key`` is there and not null."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def text(self, key: str) -> str:
        """A string."""
        value = self._get(key, str)
        assert isinstance(value, str)
        if "\0" in value:
            raise self._wrong(f"{self.path}.{key}".lstrip("."), "has a NUL character")
        return value

    def number(self, key: str) -> int:
        """An integer."""
        value = self._get(key, int)
        assert isinstance(value, int)
        return value

    def flag(self, key: str) -> bool:
        """A boolean."""
        value = self._get(key, bool)
        assert isinstance(value, bool)
        return value

    def table(self, key: str) -> Document:
        """A nested table."""
        path = f"{self.path}.{key}" if self.path else key
        return Document(self.file, self._get(key, dict), path)

    def tables(self, key: str) -> Iterator[Document]:
        """A list of tables."""
        path = f"{self.path}.{key}" if self.path else key
        items = self._get(key, list)
        assert isinstance(items, list)
        for index, item in enumerate(items):
            where = f"{path}[{index}]"
            yield Document(self.file, self._typed(item, dict, where), where)

    def words(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        items = self._get(key, list)
        assert isinstance(items, list)
        numbered = {str(index): item for index, item in enumerate(items)}
        path = f"{self.path}.{key}" if self.path else key
        inner = Document(self.file, numbered, path)
        return tuple(inner.text(index) for index in numbered)

    def strings(self, key: str) -> dict[str, str]:
        """A table of strings, in the file's order."""
        inner = self.table(key)
        assert isinstance(inner.value, dict)
        return {name: inner.text(name) for name in inner.value}

    def path_of(self, key: str) -> str:
        """An absolute path without ``..``."""
        value = self.text(key)
        path = f"{self.path}.{key}" if self.path else key
        if not value.startswith("/") or ".." in value.split("/"):
            raise self._wrong(path, f"expected an absolute path without '..', got {value!r}")
        return value


def read(path: Path) -> Document:
    """The document at ``path``; Unmet when it is missing, unreadable, no JSON, or too new."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Unmet(f"{path}: is not there; run the deploy") from None
    except OSError as error:
        raise Unmet(f"{path}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Unmet(f"{path}: is no JSON: {error}; run the deploy again") from None
    document = Document(str(path), value)
    check_schema(document)
    return document


def check_schema(document: Document) -> None:
    """Unmet when the document has a schema that this agent doesn't know."""
    schema = document.number("schema")
    if schema != 1:
        raise Unmet(
            f"{document.file}: schema {schema} is not known to this agent (it knows 1); "
            "run the deploy, which brings a newer agent"
        )
