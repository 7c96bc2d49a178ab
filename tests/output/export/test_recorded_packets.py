"""Recorded events in Perfetto's native format: Perfetto reads of them what it reads of the same events as JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.output.export.perfetto import to_perfetto
from htagraph.output.export.recorded_events import EventDecoder
from htagraph.output.export.recorded_packets import held_back
from htagraph.trace.kineto.decode import BlockDecoder
from tests.output.export.test_recorded_events import EVENTS
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, arrow, kernel, launch, load, op
from tests.trace_processor import Perfetto, needs_perfetto

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",  # the shared wrapper of the engine leaves its pipes to the garbage collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


def read(path: Path) -> tuple[Counter[Any], ...]:
    """Return slices, arrows, values of counters and arguments as Perfetto reads them, if it complains of nothing.

    Slices without duration are inside each other as JSON, and beside each other in the native format.
    """
    perfetto = Perfetto(path)
    assert perfetto.complaints() == []
    slices = perfetto.rows("select name, coalesce(category, '') as c, ts, dur, iif(dur, depth, 0) as d from slice")
    arrows = perfetto.rows(
        "select a.name as n, a.ts as t, a.dur as d, b.name as m, b.ts as u, b.dur as e from flow f "
        "join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in"
    )
    values = perfetto.rows("select ts, value, t.name as n from counter c join counter_track t on t.id = c.track_id")
    args = perfetto.rows(
        "select name, ts, dur, replace(key, 'debug.', '') as k, display_value as v from slice "
        "join args using (arg_set_id)"
    )
    return (
        Counter(slices),
        Counter(arrows),
        Counter((ts, round(value, 3), name) for ts, value, name in values),
        Counter(args),
    )


def check(graph: hg.DependencyGraph, folder: Path, *, arguments: bool = True) -> None:
    path = hg.critical_path(graph)
    text, native = (to_perfetto(path, folder / name, counters=True) for name in ("o.json.gz", "o.pftrace.gz"))
    assert (native.slices, native.arrows, native.counters) == (text.slices, text.arrows, text.counters)
    as_text, as_native = read(text.path), read(native.path)
    assert as_native[:3] == as_text[:3]
    if arguments:
        assert as_native[3] == as_text[3]


@pytest.mark.slow
@needs_perfetto
def test_perfetto_reads_a_job_as_it_reads_it_as_json(tmp_path: Path) -> None:
    check(graph_of(DATA / "demo"), tmp_path)


@needs_perfetto
def test_what_begins_at_one_moment_is_inside_what_lasts_longer(tmp_path: Path) -> None:
    """In the file, short ones stand before the long ones that they are inside of, and heads of arrows before tails."""
    call, work = launch(5, 1, 1), kernel(COMPUTE, 5, 4, 1)
    events = [
        work, op("inner", 0, 5), op("zero", 0, 0), op("outer", 0, 9), op("same", 0, 9), op("last", 9, 3), call,
        op("mid", 5, 2), *arrow(3, call, work),
    ]  # fmt: skip
    check(load({0: events, 1: events[::-1]}, tmp_path), tmp_path, arguments=False)


def phases(path: Path) -> Counter[Any]:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    found: Counter[Any] = Counter()
    names: dict[int, str] = {}
    for packet in pb.Trace.FromString(path.read_bytes()).packet:
        names |= {each.iid: each.name for each in packet.interned_data.event_names}
        if packet.HasField("track_event"):
            event = packet.track_event
            args = tuple(json.dumps(json.loads(each.legacy_json_value)) for each in event.debug_annotations)
            args = tuple(each for each in args if each != "{}")
            cats = tuple(map(names.get, event.category_iids))
            found[packet.timestamp, event.type, names.get(event.name_iid, ""), cats, args, len(event.flow_ids)] += 1
    return found


@pytest.mark.slow
@given(EVENTS)
@settings(max_examples=60)
def test_scanned_events_are_written_as_decoded_ones_are(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("both")
    anchor = {"ph": "X", "cat": "cpu_op", "name": "first", "pid": 0, "tid": 1, "ts": 0, "dur": 1, "args": {"x": 1}}
    (folder / "trace.json").write_text(json.dumps({"traceEvents": [anchor, *events]}))
    path = hg.critical_path(hg.load(folder / "trace.json"))
    scanned = to_perfetto(path, folder / "scanned.pftrace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventDecoder, "scan", lambda *_: None)
        patch.setattr(BlockDecoder, "scan", lambda *_: None)
        decoded = to_perfetto(path, folder / "decoded.pftrace")
    assert phases(scanned.path) == phases(decoded.path)
    assert (scanned.left_out, scanned.not_drawn) == (decoded.left_out, decoded.not_drawn)


rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20)
pairs = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=6)


@given(rows, pairs)
def test_what_begins_together_stands_in_order(rows: list[tuple[int, int, int]], pairs: list[tuple[int, int]]) -> None:
    track, start, duration = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    # arrows from a track to a later one never make a circle
    arrows = [(tail, head) for tail, head in pairs if max(tail, head) < len(rows) and track[tail] < track[head]]
    tails, heads = (np.array([arrow[at] for arrow in arrows], np.int64) for at in range(2))
    late = held_back(track, start, duration, (tails, heads)).tolist()
    order = [row for row in range(len(rows)) if row not in late] + late
    assert sorted(order) == list(range(len(rows)))
    place = {row: at for at, row in enumerate(order)}
    for a in range(len(rows)):
        for b in range(len(rows)):
            if (track[a], start[a]) == (track[b], start[b]) and duration[a] > duration[b]:
                assert place[a] < place[b]
    assert all(place[tail] < place[head] for tail, head in arrows if start[tail] == start[head])


def test_what_is_in_order_stays_where_it_is() -> None:
    start = np.array([0, 0, 5, 5, 5])
    none = np.zeros(0, np.int64)
    assert not len(held_back(np.zeros(5), start, np.array([9, 4, 3, 3, 0]), (none, none)))
