"""Copies of traces: what may change, what must not, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import TraceError
from htagraph.output.export.trace_writer import (
    INTEGER,
    MICROSECONDS,
    SPAN,
    TraceWriter,
    edit_trace,
    row_texts,
    us,
)  # fmt: skip
from htagraph.output.scene import NO_NUMBER
from tests.damage import healthy, kineto_text
from tests.patience import PATIENCE_S
from tests.reach import DATA, LARGE_BYTES, REAL, label

LARGE = ("resnet50_2020_bare_list.pt.trace.json.gz", "b200_eager.json.gz")  # of several blocks
FILES = [path for path in REAL if path.stat().st_size < LARGE_BYTES or path.name in LARGE]
EVERY = [*sorted(DATA.rglob("rank-*.json.gz")), *FILES]
EVENTS = healthy(4)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.json"
    path.write_text(kineto_text(EVENTS))
    return path


def root(path: Path) -> dict[str, Any]:
    """Return a file's content, fractions as exact decimals."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: dict[str, Any] = json.loads(data, parse_float=Decimal)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", EVERY, ids=label)
def test_a_copy_holds_what_the_file_holds(path: Path, tmp_path: Path) -> None:
    as_text, as_dicts = tmp_path / "text.json.gz", tmp_path / "dicts.json"
    lost = edit_trace(path, as_text), edit_trace(path, as_dicts, lambda event: event)
    whole = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    whole = {"traceEvents": whole} if isinstance(whole, list) else whole
    assert lost == ((), ())
    assert root(as_text) == whole
    assert root(as_dicts) == whole


def test_root_keys_stand_on_their_side_of_the_events_and_can_be_added(source: Path, tmp_path: Path) -> None:
    text = source.read_text()
    source.write_text(text.rstrip().removesuffix("}") + ', "behind": [1, 2]}')
    edit_trace(source, tmp_path / "out.json", header={"new": 7, "schemaVersion": 2})
    before, after = (tmp_path / "out.json").read_text().split('"traceEvents"')
    assert '"new": 7' in before
    assert '"schemaVersion": 2' in before
    assert '"behind": [1,2]' in after
    assert json.loads(text).keys() | {"new", "behind"} == root(tmp_path / "out.json").keys()


def test_events_can_be_changed_dropped_and_multiplied_in_order(source: Path, tmp_path: Path) -> None:
    seen: list[str] = []

    def edit(event: dict[str, Any]) -> Any:
        seen.append(event["name"])
        if event["ph"] == "M":
            return None
        return [event, {"ph": "i"}] if event["ph"] == "i" else event | {"name": "x"}

    edit_trace(source, tmp_path / "out.json", edit, extra=({"ph": "C", "ts": us(1)} for _ in range(2)))
    assert seen == [event["name"] for event in EVENTS]
    out = root(tmp_path / "out.json")["traceEvents"]
    assert [event["ph"] for event in out].count("M") == 0
    assert out[-2:] == [{"ph": "C", "ts": Decimal("0.001")}] * 2
    assert len(out) == len(EVENTS) - 1 + 2 + 2


def test_the_nth_event_is_the_one_that_the_graph_numbers_n(tmp_path: Path) -> None:
    path = DATA / "demo" / "rank-1.json.gz"
    names: list[str] = []
    edit_trace(path, tmp_path / "out.json", lambda event: names.append(event["name"]))
    graph = hg.load(path)
    acts = graph.activities
    recorded = np.flatnonzero(acts.event >= 0)
    assert [names[at] for at in acts.event[recorded]] == [graph.names[name] for name in acts.name[recorded]]


def test_no_time_moves_by_a_nanosecond(tmp_path: Path) -> None:
    times = ["1711900000000012.345", "1711900000000012.005", "0.001", "-7.25", "18446744073709551615", "1E+400"]
    text = ",".join(f'{{"ph":"X","name":"a","ts":{time},"dur":1}}' for time in times)
    (tmp_path / "in.json").write_text(f'{{"traceEvents":[{text}]}}')
    edit_trace(tmp_path / "in.json", tmp_path / "out.json", lambda event: event)
    assert [str(event["ts"]) for event in root(tmp_path / "out.json")["traceEvents"]] == times


@pytest.mark.parametrize("nanoseconds", [0, 1, -1, 999, 1000, 1_711_900_000_000_012_345, -1_500])
def test_microseconds_are_exact(nanoseconds: int) -> None:
    assert us(nanoseconds) * 1000 == nanoseconds


def test_a_truncated_gzip_file_is_copied_up_to_its_end_and_reported(tmp_path: Path) -> None:
    whole = (DATA / "demo" / "rank-0.json.gz").read_bytes()
    (tmp_path / "cut.json.gz").write_bytes(whole[: len(whole) // 2])
    issues = edit_trace(tmp_path / "cut.json.gz", tmp_path / "new" / "folder" / "out.json.gz")
    assert {"gzip_truncated", "truncated"} <= {issue.what for issue in issues}
    out = root(tmp_path / "new" / "folder" / "out.json.gz")["traceEvents"]
    assert 0 < len(out) < len(root(DATA / "demo" / "rank-0.json.gz")["traceEvents"])


def test_damaged_events_are_written_as_repaired(tmp_path: Path) -> None:
    text = kineto_text(EVENTS).replace('"name": "aten::mm"', '"name": "aten"mm"', 1)
    (tmp_path / "bad.json").write_text(text)
    issues = edit_trace(tmp_path / "bad.json", tmp_path / "out.json")
    assert [issue.what for issue in issues] == ["unescaped_quotes"]
    assert 'aten"mm' in [event["name"] for event in root(tmp_path / "out.json")["traceEvents"]]


def test_a_trace_without_events_keeps_its_keys(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"schemaVersion": 1, "traceEvents": [], "z": 2}')
    edit_trace(tmp_path / "in.json", tmp_path / "out.json", extra=[{"ph": "i"}])
    assert root(tmp_path / "out.json") == {"schemaVersion": 1, "z": 2, "traceEvents": [{"ph": "i"}]}


def test_the_source_is_never_written_over(source: Path, tmp_path: Path) -> None:
    before = source.read_bytes()
    (tmp_path / "link.json").symlink_to(source)
    for target in (source, tmp_path / "link.json", tmp_path / "." / "source.json"):
        with pytest.raises(TraceError, match="is the trace itself"):
            edit_trace(source, target)
    assert source.read_bytes() == before


def test_a_link_stays_a_link_and_leads_to_the_new_file(source: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old.json").write_text("old")
    for name in ("old", "new"):
        link = tmp_path / f"{name}_link.json"
        link.symlink_to(tmp_path / "real" / f"{name}.json")
        edit_trace(source, link)
        assert link.is_symlink()
        assert root(tmp_path / "real" / f"{name}.json") == root(source)
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["new.json", "old.json"]


def test_what_is_no_file_is_written_to_and_not_replaced(source: Path, tmp_path: Path) -> None:
    """A pipe stands for devices: to replace one of those would harm the machine."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        read = other.submit(pipe.read_text)
        edit_trace(source, pipe)
        assert json.loads(read.result(timeout=PATIENCE_S), parse_float=Decimal) == root(source)
    assert pipe.is_fifo()


def test_nothing_is_left_where_writing_or_reading_fails(source: Path, tmp_path: Path) -> None:
    def fail(event: dict[str, Any]) -> None:
        raise KeyError(event["name"])

    folder = tmp_path / "out"
    with pytest.raises(KeyError):
        edit_trace(source, folder / "out.json.gz", fail)
    with pytest.raises(TraceError, match="absent"):
        edit_trace(tmp_path / "absent.json", folder / "out.json")
    assert list(folder.iterdir()) == []


def test_a_target_that_cannot_be_written_is_an_error_in_words(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="cannot be written"):
        edit_trace(source, tmp_path / "file" / "out.json")
    with pytest.raises(TraceError, match="it is a folder"):
        edit_trace(source, tmp_path)


def test_the_same_events_give_the_same_bytes_and_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    for name in ("a.json.gz", "b.json.gz"):
        with TraceWriter(tmp_path / name) as writer:
            writer.add([{"ph": "C", "ts": np.int64(3), "args": {"x": np.float64(2.5)}}])
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert root(tmp_path / "a.json.gz")["traceEvents"] == [{"ph": "C", "ts": 3, "args": {"x": Decimal("2.5")}}]
    with pytest.raises(TypeError, match="object cannot be written"), TraceWriter(tmp_path / "c.json") as writer:
        writer.add([{"ph": object()}])
    assert not (tmp_path / "c.json").exists()


def test_no_text_that_is_added_ends_in_a_backslash(tmp_path: Path) -> None:
    """Perfetto takes its quote for an escaped one, and reads nothing of the file."""
    names = ["C:\\dir\\", "\\", "a\\\\", 'a\\"', 'a"', "\\a"]
    with TraceWriter(tmp_path / "a.json") as writer:
        writer.add([{"name": name, "args": {"x": name}} for name in names])
    events = root(tmp_path / "a.json")["traceEvents"]
    expected = [name + " " * name.endswith("\\") for name in names]
    assert [event["name"] for event in events] == [event["args"]["x"] for event in events] == expected


@pytest.mark.parametrize(("numbers", "text"), [([1, 22, 333], b"a1,\na22,\na333"), ([], b"")])
def test_rows_have_separators_between_them_only(numbers: list[int], text: bytes) -> None:
    rows = row_texts([b"a", (INTEGER, np.array(numbers, np.int64))], len(numbers))
    assert (len(rows), bytes(rows.joined)) == (len(numbers), text)


NUMBERS = st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-2000, 2000), min_size=1)


@given(NUMBERS)
def test_numbers_are_written_as_python_writes_them(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    rows = row_texts([(INTEGER, values), b" ", (MICROSECONDS, values)], len(values))
    expected = [f"{number} {us(number)}" for number in numbers]
    assert bytes(rows.joined).decode().split(",\n") == expected


def test_what_a_row_lacks_is_left_out() -> None:
    columns = (
        ([b"a", b"b"], np.array([1, -1])), (SPAN, np.array([0, 2 << 32 | 3])), (INTEGER, np.array([NO_NUMBER, 4])),
    )  # fmt: skip
    rows = row_texts(columns, 2, np.frombuffer(b"0123456789", np.uint8))
    assert bytes(rows.joined) == b"b,\n2344"
