"""Tracks beside a path: their pieces lie inside their stretches, waits end where the path comes over."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.export.path_tracks import NEXT_CRITICAL, next_critical, path_slices, stretches, waits
from htagraph.output.export.trace_writer import slice_rows, us
from tests.reach import DATA, graph_of
from tests.strategies import load, op


def slices(events: Any, category: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["cat"] == f"critical_path_{category}"]


@pytest.mark.parametrize("job", ["demo", "gloo_ddp"])
def test_pieces_lie_inside_their_stretch_and_have_its_time(job: str) -> None:
    path = hg.critical_path(graph_of(DATA / job))
    events = list(stretches(path, 5, path.window[0]))
    pieces = slices(events, "piece")
    for stretch in slices(events, "stretch"):
        begin, end = stretch["ts"], stretch["ts"] + stretch["dur"]
        inside = [each for each in pieces if begin <= each["ts"] < end]
        assert sum(each["dur"] for each in inside) == stretch["dur"]
        assert sum(each["args"]["segments"] for each in inside) == stretch["args"]["segments"]
        assert max(each["ts"] + each["dur"] for each in inside) == end
    assert {each["tid"] for each in events} == {5}


def test_pieces_are_named_by_kernel_or_operator() -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    names = {each["name"] for each in slices(stretches(path, 5, path.window[0]), "piece")}
    assert "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" in names
    assert len(names) > 10


def test_short_pieces_are_one_named_by_the_longest() -> None:
    work = [
        op(name, start, length) for name, start, length in zip("abcd", (0, 900, 901, 903), (900, 1, 2, 1), strict=True)
    ]
    path = hg.critical_path(load([*work, op("e", 904, 9_096)]))
    pieces = slices(stretches(path, 5, path.window[0]), "piece")
    assert [each["name"] for each in pieces] == ["a", "c, 1 more", "d", "e"]
    tiny = [op(name, 90_000 + 2 * at, 1 + (name == "c")) for at, name in enumerate("abcd")]
    path = hg.critical_path(load([op("z", 0, 90_000), *tiny]))
    last = slices(stretches(path, 5, path.window[0]), "piece")[-1]
    assert last["name"] == "c, 3 more"


def test_what_is_next_has_its_slack_and_lies_on_its_own_track() -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    events = list(next_critical(path, 20, path.window[0]))
    outer, near = slices(events, "next"), path.near(NEXT_CRITICAL)
    assert [float(each["args"]["slack_us"]) for each in outer] == near["slack_us"].tolist()
    assert [each["args"].get("returns", -1) for each in outer] == near["returns"].tolist()
    time: dict[int, Any] = defaultdict(int)
    for piece in slices(events, "piece"):
        time[piece["tid"]] += piece["dur"]
    assert time == {each["tid"]: each["dur"] for each in outer}


def test_a_wait_points_to_what_its_rank_waited_for() -> None:
    path = hg.critical_path(graph_of(DATA / "gloo_ddp"))
    tid = 100 + path.graph.activities.lane[path.segments.place]
    events = list(waits(path, tid, (50, 7), path.window[0]))
    waited = slices(events, "wait")
    assert any(float(each["dur"]) == pytest.approx(51_050, rel=0.01) for each in waited)
    heads = [event for event in events if event["ph"] == "f"]
    assert heads
    assert {event["id"] for event in heads} == {event["id"] for event in events if event["ph"] == "s"}
    ranks = {lane: path.graph.lanes[lane - 100].rank for lane in {event["tid"] for event in heads}}
    for event in heads:
        of = waited[event["id"] - 7]
        assert of["args"]["waited_for_rank"] == ranks[event["tid"]] != of["args"]["rank"]
        assert of["ts"] <= event["ts"] < of["ts"] + of["dur"]
        assert of["args"]["longest_cause"]


@pytest.mark.parametrize("ranks", [None, [1]])
def test_each_segment_is_a_slice_that_says_what_the_table_says(ranks: list[int] | None) -> None:
    path = hg.critical_path(hg.load("data/demo", ranks=ranks))
    tid = 10 + path.graph.activities.lane[path.segments.place]
    text = b",".join(slice_rows(some).joined for some in path_slices(path, tid, path.graph.origin_ns))
    slices = json.loads(b"[" + text + b"]", parse_float=Decimal)
    rows = path.to_frame().to_dict("records")
    assert len(slices) == len(rows)
    for event, row, start, length in zip(slices, rows, path.segments.start, path.segments.length, strict=True):
        shown = ("category", "edge", "gap", "kind", "name", "operator", "module", "before", "rank", "lane", "activity")
        expected = {"weight_us": us(length)} | {key: row[key] for key in shown if row[key] != ""}
        assert event["args"] == expected
        assert (event["ts"], event["dur"]) == (us(start - path.graph.origin_ns), us(length))
