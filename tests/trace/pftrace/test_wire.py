"""The wire format: packets and what is between them."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.errors import TraceError
from htagraph.simulate.next_pftrace import message, packet
from htagraph.trace.kineto.scan.grammar import rows_address, text_address, with_padding
from htagraph.trace.pftrace import wire
from tests.trace.pftrace.made import issues_of, plain, trace_of


def walked(text: bytes) -> tuple[np.ndarray, tuple[int, int, int, int]]:
    padded = with_padding(text)
    rows = np.full((len(text) + 1, wire.BODY_WIDTH), -7, np.int64)
    found = wire.find_bodies((text_address(padded), len(text)), (rows_address(rows), len(rows)))
    assert wire.find_bodies((text_address(padded), len(text)), (rows_address(rows), 0)) == found  # counting alone
    return rows[: found[0]], found


def test_a_packet_gives_each_body_its_time_sequence_flags_and_clock() -> None:
    text = packet((11, b"ab"), (8, 123), (10, 4), (12, b""), (13, 2), (41, 1), (58, 6))
    rows, found = walked(text)
    assert found == (2, 0, 0, 0)
    kind, start, stop, *header = rows[0].tolist()
    assert (kind, text[start:stop], header) == (11, b"ab", [123, 4, 3, 6, 0])
    assert rows[1, wire.TIME :].tolist() == rows[0, wire.TIME :].tolist()
    assert walked(packet((13, 1)))[0][0, [wire.KIND, wire.FLAGS, wire.CLOCK]].tolist() == [0, 1, wire.NO_CLOCK]


@given(st.binary(max_size=40), st.integers(0, 5))
def test_packets_behind_damage_are_found(damage: bytes, count: int) -> None:
    """Nothing in the middle takes a whole packet behind it along, but for one that the damage may begin."""
    sound = packet((8, 5), (10, 1), (11, message((9, 1), (11, 3))))
    rows, found = walked(sound + damage + sound * count)
    positions = rows[:, wire.PACKET].tolist()
    assert positions[0] == 0
    missed = [k for k in range(count) if len(sound) * (k + 1) + len(damage) not in positions]
    assert len(missed) <= 1 + found[1] + found[2]
    if damage == b"":
        assert found == (count + 1, 0, 0, 0)


def test_a_file_that_ends_early_keeps_its_packets() -> None:
    text = plain()
    whole, found = walked(text)
    assert found[1:] == (0, 0, 0)
    for length in range(0, len(text), 7):
        rows, (_, broken, stretches, lost) = walked(text[:length])
        ends = set(whole[:, wire.PACKET].tolist()) | {len(text)}
        assert (lost > 0) == (length not in ends)
        assert (broken, stretches) == (0, int(lost > 0))
        assert rows.tolist() == whole[: len(rows)].tolist()


def test_lengths_and_numbers_beyond_the_end_are_no_fields() -> None:
    for broken in (
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0a" + b"\xff" * 11,
        b"\x0a\x7f",
        b"\x0b",
        b"\x00",
    ):
        assert walked(broken)[1] == (0, 0, 1, len(broken))
    many = packet((8, 1), *((99, 0) for _ in range(100)))
    assert walked(many)[1] == (0, 1, 0, 0)  # more fields than any packet has


def damaged(text: bytes, draw: random.Random) -> bytes:
    """Return a text with a few bytes changed, taken out or put in, or with its end cut off."""
    for _ in range(draw.choice((1, 2, 4, 8))):
        at, size = draw.randrange(len(text)), draw.choice((1, 3, 10, 60, 200))
        kept = text[at + size :] if draw.random() < 0.5 else text[at:]
        text = text[:at] + draw.randbytes(draw.choice((0, 1, size))) + kept
    return text[: draw.randrange(len(text))] if draw.random() < 0.1 else text


@pytest.mark.parametrize("seed", range(100))
def test_no_sound_packet_is_lost_without_a_word(seed: int, tmp_path: Path) -> None:
    """A packet is sound if its bytes are in the file; the oracle parses nothing that is damaged."""
    draw = random.Random(seed)
    written = {10 * number: stage(10 * number) for number in range(1, 150)}
    data = damaged(b"".join(written.values()), draw)
    sound = [start for start, content in written.items() if content in data]
    try:
        trace = trace_of(tmp_path / "a.pftrace", data)
    except TraceError:
        assert len(sound) == 0
        return
    starts = set(trace.events.start.tolist())
    missing = [start for start in sound if start not in starts]
    assert len(missing) <= sum(count for what, count in issues_of(trace).items() if what != "no_base_time")
    assert len(missing) <= 8


def stage(moment: int) -> bytes:
    extra = [(6, message((1, "correlation"), (2, str(moment)))), (6, message((1, "stream id"), (2, "7")))]
    return packet((8, moment), (10, 1), (53, message((1, moment), (2, 5), *extra, (17, f"kernel {moment}"))))


def test_work_is_in_proportion_to_the_bytes() -> None:
    """Packets inside packets, of which each is damaged at its end: none is read again for each around it."""
    inner = b"\x50\x01\xff"
    texts = []
    for depth in (2_000, 4_000):
        text = inner
        for _ in range(depth):
            text = b"\x0a" + varint(len(text)) + text
        texts.append(text)
    small_ns, large_ns = (min(timed(text) for _ in range(3)) for text in texts)
    assert large_ns < 20 * small_ns + 50_000_000


def varint(value: int) -> bytes:
    return message((1, value))[1:]


def timed(text: bytes) -> int:
    before = time.process_time_ns()
    walked(text)
    return time.process_time_ns() - before
