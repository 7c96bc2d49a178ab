"""Texts are numbered as a dict numbers them: in the order of their first occurrence, equal ones alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.columns import Interner
from htagraph.trace.kineto.scan import tokens
from htagraph.trace.kineto.scan.grammar import PADDING
from htagraph.trace.kineto.scan.tokens import NO_TOKEN, TokenTable


def numbers(table: TokenTable, texts: Sequence[bytes]) -> list[int]:
    """Return the numbers of texts that lie one behind the other, each between the bytes of others."""
    memory = np.frombuffer(b"".join(texts) + PADDING, np.uint8)
    lengths = np.array([len(text) for text in texts], np.int64)
    starts = np.cumsum(lengths) - lengths
    return table.numbers(memory.ctypes.data, (starts << 32) + lengths).tolist()


def expected(texts: Sequence[bytes], known: Interner[bytes]) -> list[int]:
    return [known[text] + 1 if text else NO_TOKEN for text in texts]


_texts = st.lists(st.binary(max_size=3) | st.binary(max_size=20) | st.sampled_from([b"", b"\0", b"\0" * 8, b"x" * 16]))


@given(st.lists(_texts, max_size=4))
def test_texts_are_numbered_as_a_dict_does_from_block_to_block(blocks: list[list[bytes]]) -> None:
    table, known = TokenTable(), Interner[bytes]()
    for texts in blocks:
        assert numbers(table, texts) == expected(texts, known)
    assert [table.text(number) for number in range(len(table))] == [b"", *known]


def test_a_table_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FIRST_SLOTS", 2)
    monkeypatch.setattr(tokens, "_TEXT_BYTES", 8)
    table, known, random = TokenTable(), Interner[bytes](), np.random.default_rng(1)
    for _ in range(5):
        texts = [random.bytes(int(size)) for size in random.integers(0, 40, 300)]
        texts += [texts[int(place)] for place in random.integers(0, 300, 100)]
        assert numbers(table, texts) == expected(texts, known)
    assert [table.text(number) for number in range(1, len(table))] == list(known)


def test_many_short_texts_are_kept_apart() -> None:
    table, known = TokenTable(), Interner[bytes]()
    texts = [number.to_bytes(3, "little") for number in range(20_000)]
    assert numbers(table, texts) == expected(texts, known)
    assert numbers(table, texts[::-1]) == expected(texts[::-1], known)


def test_texts_longer_than_the_table_are_kept_whole() -> None:
    long = np.random.default_rng(2).bytes(1 << 20)
    last, longer, shorter = long[:-1] + bytes([long[-1] ^ 1]), long + b"\0", long[:-1]
    table = TokenTable()
    assert numbers(table, [b"a", long, last, longer, shorter, long]) == [1, 2, 3, 4, 5, 2]
    assert [table.text(number) for number in (2, 3, 4, 5)] == [long, last, longer, shorter]


@pytest.mark.parametrize("size", range(18))
def test_each_byte_counts_and_so_do_zeros_at_the_end(size: int) -> None:
    text = bytes(range(1, size + 1))
    changed = [text[:at] + b"\xff" + text[at + 1 :] for at in range(size)]
    texts = [text + bytes(zeros) for zeros in range(18)] + changed
    kept = [each for each in texts if each]
    assert numbers(TokenTable(), texts) == [kept.index(each) + 1 if each else NO_TOKEN for each in texts]
