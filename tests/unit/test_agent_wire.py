"""Messages between ranks: only members are heard, and nothing but the protocol."""

from __future__ import annotations

import random

import pytest

from pyinfra_vllm.agent.said import Said, Start
from pyinfra_vllm.agent.wire import SIZE, Broken, Role, Session, decode, encode

_SECRET = b"s" * 32
_START = Start(12, "ab" * 16)
_OPEN = Said("open", "c" * 64, _START)


def _pair(secret: bytes = _SECRET, rank: int = 2) -> tuple[Session, Session]:
    return Session(_SECRET, "head", 2), Session(secret, "worker", rank)


def _take(session: Session) -> bytes:
    data, session.out = session.out, b""
    return data


def _join(head: Session, worker: Session) -> None:
    for _ in range(2):
        to_worker, to_head = _take(head), _take(worker)
        worker.feed(to_worker)
        head.feed(to_head)


def test_both_ends_prove_the_secret_and_hear_each_other() -> None:
    head, worker = _pair()
    _join(head, worker)
    assert head.is_proven and worker.is_proven
    head.say(_OPEN)
    worker.say(Said("lack", "c" * 64, text="the NAS"))
    assert worker.feed(_take(head)) == [_OPEN]
    assert head.feed(_take(worker)) == [Said("lack", "c" * 64, text="the NAS")]


def test_every_byte_may_come_alone() -> None:
    head, worker = _pair()
    _join(head, worker)
    head.say(_OPEN)
    heard = [said for byte in _take(head) for said in worker.feed(bytes([byte]))]
    assert heard == [_OPEN]


def test_another_secret_and_another_rank_are_refused() -> None:
    head, worker = _pair(secret=b"x" * 32)
    with pytest.raises(Broken, match="doesn't know this gang's secret"):
        _join(head, worker)
    head, worker = _pair(rank=3)
    with pytest.raises(Broken, match=r"calls itself rank [23]"):
        _join(head, worker)


def test_message_of_another_connection_or_place_is_refused() -> None:
    head, worker = _pair()
    _join(head, worker)
    head.say(_OPEN)
    recorded = _take(head)
    worker.feed(recorded)
    with pytest.raises(Broken, match="wrong seal"):
        worker.feed(recorded)


def test_what_one_end_sent_is_no_word_of_the_other() -> None:
    head, worker = _pair()
    _join(head, worker)
    worker.say(Said("have", "c" * 64))
    with pytest.raises(Broken):
        worker.feed(_take(worker))


def test_text_is_cut_and_made_readable() -> None:
    said = decode(encode(Said("lack", text="é\x1b[2J" + "x" * 500)), "worker")
    assert said.text.startswith("é?[2Jxx") and len(said.text.encode()) <= 120


@pytest.mark.parametrize("first", [None, 0, 3, 62])
def test_rank_that_went_first_is_told(first: int | None) -> None:
    said = Said("end", "c" * 64, _START, 137, "engine exited", first)
    assert decode(encode(said), "head") == said


def test_rank_too_large_to_be_told_is_left_out() -> None:
    assert decode(encode(Said("end", first=63)), "head") == Said("end")


@pytest.mark.parametrize("role", ["head", "worker"])
def test_ten_thousand_broken_messages_say_nothing(role: Role) -> None:
    chance = random.Random(1)
    refused = 0
    for _ in range(10_000):
        session = Session(_SECRET, role, 1)
        sent = chance.randbytes(chance.choice((1, 31, 42, 74, SIZE, 3 * SIZE)))
        try:
            assert session.feed(sent) == []
        except Broken:
            refused += 1
        assert not session.is_proven
    assert refused > 4_000


def test_changed_bits_of_a_true_message_are_refused() -> None:
    chance = random.Random(2)
    for _ in range(300):
        head, worker = _pair()
        _join(head, worker)
        head.say(_OPEN)
        data = bytearray(_take(head))
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        with pytest.raises(Broken):
            worker.feed(bytes(data))
