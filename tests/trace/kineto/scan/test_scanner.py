"""What the compiled scan accepts equals what the general decoder reads, field by field; the rest it declines."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from htagraph.core import computing
from htagraph.core.errors import IssueLog, TraceError
from htagraph.trace.columns import Interner, Trace
from htagraph.trace.kineto import decode, source
from htagraph.trace.kineto.decode import BlockDecoder, event_text_decoder
from htagraph.trace.kineto.events import columns
from htagraph.trace.kineto.read import STARTS, read_event
from htagraph.trace.kineto.scan import scanner
from htagraph.trace.kineto.scan.grammar import PADDING
from htagraph.trace.kineto.scan.scanner import NO_TOKEN, EventTexts, EventTextScanner, Reused, Scanner, TokenTable
from htagraph.trace.readers import read_trace
from tests.damage import END, Json, call, document, header, healthy, in_pieces, kernel, op, written
from tests.packed import bgzipped, pzstd, zstd
from tests.reach import DATASETS, REAL, label
from tests.trace.kineto.same_columns import assert_same_columns

FILES = [*(path for folder in DATASETS for path in sorted(folder.glob("*.json*"))), *REAL]
_FILE = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def both_ways(path: Path) -> tuple[Trace, Trace] | None:
    """Return the columns that the scan and the general decoder read; None if both refuse the file with equal words."""
    read, refused = [], []
    for compiled in (True, False):
        try:
            read.append(read_trace(path, lambda *_: 0, compiled=compiled))
        except TraceError as error:
            refused.append((type(error), str(error)))
    assert len(refused) in {0, 2}
    assert len(set(refused)) <= 1
    return (read[0], read[1]) if read else None


@pytest.mark.parametrize("path", FILES, ids=label)
def test_both_ways_agree_on_every_trace_in_reach(path: Path) -> None:
    both = both_ways(path)
    assert both is not None
    assert_same_columns(*both)


def test_blocks_are_scanned_rather_than_declined(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document(healthy(50)))
    with patch.object(BlockDecoder, "__call__", side_effect=AssertionError("the general decoder was asked")):
        assert len(read_trace(path, lambda *_: 0).events) == 150


# by Hypothesis: events with any values, and damaged text

_values = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6)
    | st.sampled_from(["12", "0x1f", "inf", "N/A", 1e300, 5e-324, 0.1, 12.0005, -0.0, 2**53 + 1, 2**63, -(2**63)])
    | st.lists(st.integers(0, 9), max_size=2) | st.dictionaries(st.text(max_size=1), st.integers(), max_size=1)
)  # fmt: skip
_times = (
    st.integers(-5, 10**16) | st.integers(0, 10**9).map(lambda ns: ns / 1000) | st.floats(-10, 1e13, allow_nan=False)
    | st.sampled_from([8796093022207.999, 8796093022208.5, 1711900000000012.5, "1711900000000012.005", None])
)  # fmt: skip
_keys = st.sampled_from(sorted({key for field in columns() for key in field.keys} | {"name", "other", "Input Dims"}))


@st.composite
def odd_events(draw: st.DrawFn) -> Json:
    made = draw(st.sampled_from([op, call, kernel]))(draw(st.integers(1, 5)), ts=draw(_times), dur=draw(_times))
    for _ in range(draw(st.integers(0, 2))):
        made[draw(st.sampled_from(["ph", "cat", "name", "pid", "tid", "id", "args", "bp"]))] = draw(_values)
    if isinstance(made["args"], dict):
        made["args"] |= draw(st.dictionaries(_keys, _values, max_size=3))
    return {key: made[key] for key in draw(st.permutations(sorted(made)))}


_DECLINED_AFTER_A_LARGE_TIME: list[Json] = [
    call(1, ts=8796093022208.5, args=False),
    op(3, ts=5185657127095.09, dur="1711900000000012.005"),
    op(2, ts=3e-176, dur=2.7e-252),
    op(2, ts=458795, dur=121),
    call(1, ts=1552480977119.352, dur=178845),
]


@_FILE
@given(made=st.lists(odd_events(), max_size=5), gloo=st.booleans(), indent=st.sampled_from([None, 0, 1, "\t"]))
@example(made=_DECLINED_AFTER_A_LARGE_TIME, gloo=False, indent=0)
def test_both_ways_agree_on_any_values(made: list[Json], *, gloo: bool, indent: Any, tmp_path: Path) -> None:
    keys: Json = {"distributedInfo": {"backend": "gloo", "rank": 0}} if gloo else {}
    events = [*healthy(2), op(1, name="c10d::allreduce_"), *made, END]
    text = json.dumps({**header(**keys), "traceEvents": events}, indent=indent)
    both = both_ways(written(tmp_path / "a.json", text))
    if both is not None:
        assert_same_columns(*both)


HEALTHY = json.dumps([*healthy(2), op(1, name='a "b" \\ \u20ac \u0001', ts=1.0625)])[1:-1].encode()
_bytes = st.sampled_from(
    [bytes([byte]) for byte in b'"\\{}[]:,0-.eE \x00\x1fnutx\xe2\x80'] + [b"\\u00e9", b"null", b""]
)


@settings(max_examples=600, deadline=None)
@given(cuts=st.lists(st.tuples(st.integers(0, len(HEALTHY)), st.integers(0, 3), _bytes), min_size=1, max_size=3))
@example(cuts=[(0, 0, b"01,")])
@example(cuts=[(len(HEALTHY), 0, b",")])
def test_what_the_general_decoder_refuses_is_declined(cuts: list[tuple[int, int, bytes]]) -> None:
    text = HEALTHY
    for at, length, new in cuts:
        text = text[:at] + new + text[at + length :]
    block, _ = Scanner(calls=True).scan(text, 0, exact=False)
    if block is not None:
        assert len(BlockDecoder()(b"[" + text + b"]")) == len(block)


# by hand


def scan_of(*events: Json | str) -> Any:
    text = ",".join(event if isinstance(event, str) else json.dumps(event) for event in events)
    return Scanner(calls=False).scan(text.encode(), 0, exact=False)[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"ph": "X"},', '{"ph": "X"} {"ph": "X"}', '[{"ph": "X"}]', '{"ph": "XY"}', '{"ph": 5}', '{"ph": "X"', "\x00",
        '{"ph": "X", "ts": 01}', '{"ph": "X", "ts": "12"}', '{"ph": "X", "x": [1,]}', '{"ph": "X", "x": {"a" 1}}',
        '{"ph": "X", "x": tru}', '{"ph": "X", "x": "\n"}', '{"ph": "X", "x": "\\x"}', '{"ph": "X", "x": 1.}',
        '{"ph": "X", "name": "a}', '{"ph": "X", "args": []}', '{"ph": "X", "x": ' + "[" * 62 + "]" * 62 + "}",
        '{"\\u0070h": "X"}', '{"ph": "X", "name": 5}', '{"ph": "X", "pid": true}', '{"ph": "X", "cat": 5}',
    ],
)  # fmt: skip
def test_text_that_is_not_understood_is_declined(text: str) -> None:
    assert scan_of(text) is None


def test_a_name_that_is_not_text_declines_its_block_only() -> None:
    scanner = Scanner(calls=False)
    assert scanner.scan(b'{"ph": "X", "name": "\xff"}', 0, exact=False)[0] is None
    assert scanner.scan(b'{"ph": "X", "name": "a"}', 0, exact=False)[0] is not None
    assert scanner.scan(b'{"ph": "X", "name": "\xff"}', 0, exact=False)[0] is None


@pytest.mark.parametrize("phase", "MBE")
def test_an_event_that_is_read_whole_declines_its_block_if_a_text_in_it_is_not_utf8(phase: str, tmp_path: Path) -> None:
    text = f'{{"ph": "{phase}", "name": "thread_name", "pid": 1, "tid": 2, "ts": 3, "args": {{"name": "X"}}}}'.encode()
    assert Scanner(calls=False).scan(text, 0, exact=False)[0] is not None
    assert Scanner(calls=False).scan(text.replace(b'"X"', b'"\xbf"'), 0, exact=False)[0] is None
    whole = document(healthy(2)).encode().replace(b'"traceEvents": [', b'"traceEvents": [' + text + b",")
    both = both_ways(written(tmp_path / "a.json", whole.replace(b'"X"', b'"\xbf"', 1)))
    assert both is not None
    assert_same_columns(*both)
    assert "bad_utf8" in {issue.what for issue in both[0].issues}


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_an_event_is_found_again_from_the_block_that_has_it(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, document(healthy(30)))
    with patch.object(decode, "BLOCK_BYTES", 1 << 10), patch.object(source, "PIECE_BYTES", 1 << 9):
        trace = read_trace(path, lambda *_: 0)
    assert len(trace.bookmarks[STARTS]) > 5
    for number, at in trace.bookmarks[STARTS].tolist():
        for index in (number, number + 1):
            assert read_event(path, index, (number, at)) == read_event(path, index)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_a_file_reads_the_same_whatever_number_of_threads_scans_it(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = healthy(40)
    cut[20]["args"] = {"Input Dims": [{"a": 1}, {"b": 2}] * 30}  # where blocks are cut elsewhere than guessed
    late = [*healthy(40), kernel(7, ts=1_700_000_000_000_000.123)]  # whose time needs exact reading
    texts = [document(healthy(40)), document(cut), document(late), document(healthy(40)).replace("{", "{,", 30)]
    paths = [written(tmp_path / f"{number}.json", text) for number, text in enumerate(texts)]
    plain = [read_trace(path, lambda *_: 0) for path in paths]
    for pack in (gzip.compress, bgzipped, zstd, pzstd):
        paths.append(tmp_path / f"{pack.__name__}.json")
        paths[-1].write_bytes(b"".join(map(pack, in_pieces(texts[0].encode(), 700))))
        plain.append(plain[0])
    scans, scanned = set[str](), Scanner.scanned

    def noted(*args: Any, **given: Any) -> Any:
        scans.add(threading.current_thread().name)
        return scanned(*args, **given)

    monkeypatch.setattr(Scanner, "scanned", noted)
    monkeypatch.setattr(decode, "processors", lambda: threads)
    monkeypatch.setattr(computing, "threads_for", lambda _: threads)
    with patch.object(decode, "BLOCK_BYTES", 1 << 10), patch.object(source, "PIECE_BYTES", 1 << 10):
        for path, whole in zip(paths, plain, strict=True):
            assert_same_columns(read_trace(path, lambda *_: 0), whole)
    assert any(name.startswith("htagraph-scan") for name in scans) == (threads > 1)


def test_values_of_other_types_are_kept_apart() -> None:
    block = scan_of(kernel(1), kernel(2, args={"stream": "7"}))
    assert {values.dtype for _, values in block.arguments.values()} == {np.dtype(np.int64)}
    assert [values.tolist() for _, values in block.odd.values()] == [["7"]]


def test_what_is_still_looked_at_is_not_lent_again() -> None:
    memory = Reused(np.int64)
    whole = memory.lend(10)
    part = whole.reshape(2, 5).T[1:, :1]
    part[...] = 7
    del whole
    memory.lend(10)[:] = 0
    assert (part == 7).all()


def test_what_nobody_looks_at_is_lent_again() -> None:
    memory = Reused(np.uint8)
    address = memory.lend(100).ctypes.data
    assert [memory.lend(size).ctypes.data for size in (100, 1, 50)] == [address] * 3


def test_larger_memory_takes_the_place_of_smaller() -> None:
    memory = Reused(np.uint8)
    memory.lend(1)
    assert len(memory.lend(5)) == 5
    assert len(memory.lend(3)) == 3


def test_memory_for_one_huge_event_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_MAX_BYTES", 64)
    memory = Reused(np.uint8)
    assert len(memory.lend(65)) == 65
    assert len(memory._kept) == 0


def texts_of(path: Path, scan: EventTextScanner | None) -> tuple[list[bytes], int]:
    """Return (the text of each event of a file, how many blocks were scanned)."""
    log, texts, scanned = IssueLog(str(path)), list[bytes](), 0
    for position, events in decode.split(source.iter_bytes(path, log), event_text_decoder(), {}, log, scan):
        assert position == len(texts)
        scanned += isinstance(events, EventTexts)
        texts += [bytes(events[at]) for at in range(len(events))]
    return texts, scanned


@pytest.mark.parametrize("path", FILES[::3], ids=label)
def test_events_have_the_texts_and_numbers_of_bulk_decoding(path: Path) -> None:
    assert texts_of(path, EventTextScanner())[0] == texts_of(path, None)[0]


def scanned(*events: Any) -> EventTexts | None:
    return EventTextScanner()(b", ".join(json.dumps(event).encode() for event in events), 0)


def test_each_event_is_the_text_that_it_is() -> None:
    events = healthy(3)
    found = scanned(*events)
    assert found is not None
    assert [json.loads(found[at]) for at in range(len(found))] == events


def test_a_number_that_its_column_cannot_hold_is_still_read() -> None:
    found = scanned(
        {"ph": "X", "name": "a", "ts": 1, "dur": 2, "args": {"memory bandwidth (GB/s)": 0.1105769230769230769}}
    )
    assert found is not None
    assert len(found) == 1


@pytest.mark.parametrize(
    "text",
    [
        b'{"ph": "X", "name": "\\ud800"}', b'{"ph": "X", "name": "\xff"}', b'{"ph": "X", "name": "a"', b"[1]", b"7",
        b'{"ph": "X", "args": {"stream": 1e999}}',
    ],
)  # fmt: skip
def test_what_bulk_decoding_might_refuse_is_declined(text: bytes) -> None:
    assert EventTextScanner()(text, 0) is None


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
    monkeypatch.setattr(scanner, "FIRST_SLOTS", 2)
    monkeypatch.setattr(scanner, "_TEXT_BYTES", 8)
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
