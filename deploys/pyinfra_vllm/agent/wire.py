"""How ranks talk: messages of one fixed size over a connection whose ends prove a secret.

No socket here: bytes in, bytes out. Each end greets with a random challenge, proves
that it knows the gang's secret (HMAC over both challenges), and seals every message
with a key of this connection and its place in the order. A message can say nothing
but :class:`~.said.Said`; anything else breaks the connection.
"""

from __future__ import annotations

import hmac
import os
import struct
from typing import Literal, get_args

from .said import Said, Start, Word

Role = Literal["head", "worker"]

_MAGIC = b"vllmgng1"
_GREETING = struct.Struct("!8sH32s")
_BODY = struct.Struct("!BBhQ16s32s120s")
_SEAL = 32
SIZE = _BODY.size + _SEAL
"""Bytes of every message after the greeting and the proof."""

_WORDS: tuple[Word, ...] = get_args(Word)
_HAS_RELEASE, _HAS_START, _FIRST = 1, 2, 2
"""Bits of the flags; above the two lowest: the first rank to go, and 1, where that fits."""
_MOST_FIRST = 62
_TEXT = 120
_KNOWN_BY: dict[Role, frozenset[Word]] = {
    "head": frozenset(("hold", "want", "open", "serve", "end")),
    "worker": frozenset(("here", "lack", "have", "run", "end")),
}


class Broken(Exception):  # noqa: N818 (a state of a connection)
    """The other end is no member of this gang, or sends what no member sends."""


def _seal(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"".join(parts), "sha256")


def encode(said: Said) -> bytes:
    """The body of a message; a text that is too long is cut."""
    flags = (_HAS_RELEASE if said.release else 0) | (_HAS_START if said.start else 0)
    if said.first is not None and said.first <= _MOST_FIRST:
        flags |= (said.first + 1) << _FIRST
    return _BODY.pack(
        _WORDS.index(said.word),
        flags,
        said.code,
        said.start.number if said.start else 0,
        bytes.fromhex(said.start.nonce) if said.start else b"",
        bytes.fromhex(said.release),
        said.text.encode()[:_TEXT],
    )


def decode(body: bytes, sender: Role) -> Said:
    """What a body says; Broken when no ``sender`` of this protocol says that."""
    word, flags, code, number, nonce, release, text = _BODY.unpack(body)
    if word >= len(_WORDS) or _WORDS[word] not in _KNOWN_BY[sender]:
        raise Broken(f"word {word} is unknown")
    readable = text.rstrip(b"\0").decode(errors="replace")
    return Said(
        _WORDS[word],
        release.hex() if flags & _HAS_RELEASE else "",
        Start(number, nonce.hex()) if flags & _HAS_START else None,
        code,
        "".join(letter if letter.isprintable() else "?" for letter in readable),
        (flags >> _FIRST) - 1 if flags >> _FIRST else None,
    )


class Session:
    """One end of one connection. ``out``: bytes that wait to be sent."""

    def __init__(self, secret: bytes, role: Role, rank: int) -> None:
        """``rank``: the worker's rank, on both ends: the head knows it by the address."""
        self._secret = secret
        self._role = role
        self._other: Role = "worker" if role == "head" else "head"
        self._rank = rank
        self._challenge = os.urandom(32)
        self._keys: tuple[bytes, bytes] | None = None
        self._counts = [0, 0]
        self._rest = b""
        self.is_proven = False
        self.out = _GREETING.pack(_MAGIC, rank, self._challenge)

    def say(self, said: Said) -> None:
        """Queue a message."""
        if not self._keys:
            raise RuntimeError("not greeted yet")
        body = encode(said)
        self.out += body + _seal(self._keys[0], self._counts[0].to_bytes(8, "big"), body)
        self._counts[0] += 1

    def feed(self, data: bytes) -> list[Said]:
        """Messages that are complete with ``data``; Broken when it isn't of this protocol."""
        self._rest += data
        heard = []
        while len(self._rest) >= self._needed():
            size = self._needed()
            piece, self._rest = self._rest[:size], self._rest[size:]
            if self._keys is None:
                self._greeted(piece)
            elif not self.is_proven:
                self._prove(piece)
            else:
                heard.append(self._opened(piece))
        return heard

    def _needed(self) -> int:
        if self._keys is None:
            return _GREETING.size
        return SIZE if self.is_proven else _SEAL

    def _greeted(self, piece: bytes) -> None:
        magic, rank, challenge = _GREETING.unpack(piece)
        if magic != _MAGIC:
            raise Broken("it doesn't speak this protocol")
        if rank != self._rank:
            raise Broken(f"it calls itself rank {rank}, and rank {self._rank} has its address")
        mine, theirs = self._challenge, challenge
        both = mine + theirs if self._role == "head" else theirs + mine
        self._both = rank.to_bytes(2, "big") + both
        send = _seal(self._secret, b"key", self._role.encode(), self._both)
        receive = _seal(self._secret, b"key", self._other.encode(), self._both)
        self._keys = (send, receive)
        self.out += _seal(self._secret, b"proof", self._role.encode(), self._both)

    def _prove(self, piece: bytes) -> None:
        expected = _seal(self._secret, b"proof", self._other.encode(), self._both)
        if not hmac.compare_digest(piece, expected):
            raise Broken("it doesn't know this gang's secret")
        self.is_proven = True

    def _opened(self, piece: bytes) -> Said:
        assert self._keys is not None
        body, seal = piece[: _BODY.size], piece[_BODY.size :]
        expected = _seal(self._keys[1], self._counts[1].to_bytes(8, "big"), body)
        if not hmac.compare_digest(seal, expected):
            raise Broken("a message has a wrong seal")
        self._counts[1] += 1
        return decode(body, self._other)
