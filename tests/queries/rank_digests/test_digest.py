from __future__ import annotations

import zlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph, HtagraphError, RankDigest, SelectionError
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.activities import Activities
from htagraph.graph.construction.matching.members import members_of
from htagraph.queries.rank_digests.digest import (
    DIGEST_CLASSES,
    header_of,
    kept_activities,
    kept_rows,
    own_tables,
    work_sums,
)
from htagraph.queries.rank_speed import ALL_NAMES
from tests.digests import digests_of, digests_of_events
from tests.host_jobs import host_job, transfer
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import Job, Json, jobs, kernel, launch, load, op, step


def test_a_digest_is_of_one_rank() -> None:
    with pytest.raises(SelectionError, match="this graph has 4"):
        hg.digest(graph_of(DATASETS[0]))


def test_what_is_no_graph_has_no_digest() -> None:
    with pytest.raises(TypeError, match=r"htagraph\.digest takes the graph of one rank: .*not 'rank-0\.json' \(str\)"):
        hg.digest("rank-0.json")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in JOBS if path.is_file()], ids=label)
def test_a_digest_of_any_rank_is_some_kilobytes(path: Path) -> None:
    digest = hg.digest(graph_of(path))
    assert digest.rank == 0
    assert len(digest.to_bytes()) < 100_000
    assert len(digest.source) <= 0.5 * len(graph_of(path).edges) + 60


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_a_digest_keeps_all_communication_and_all_steps_as_recorded(folder: Path) -> None:
    whole = graph_of(folder)
    for digest in digests_of(folder):
        acts, kept = whole.activities, digest.part.activities
        kinds = (*COMMUNICATION, ActivityKind.STEP, ActivityKind.BOUNDARY)
        rows = np.flatnonzero(np.isin(acts.kind, kinds) & (acts.rank == digest.rank))
        same = np.flatnonzero(np.isin(kept.kind, kinds) & ~np.isin(kept.event, [0]))
        points = {(int(kept.kind[row]), int(kept.start[row]), int(kept.duration[row])) for row in same.tolist()}
        assert {(int(acts.kind[row]), int(acts.start[row]), int(acts.duration[row])) for row in rows.tolist()} <= points


def test_edges_of_a_digest_lead_from_linked_activities_to_linked_ones() -> None:
    for digest in digests_of(DATASETS[0]):
        assert digest.linked[digest.source >> 1].all()
        assert digest.linked[digest.target >> 1].all()
        assert digest.linked[digest.owner].all()


def test_without_classes_a_digest_is_smaller() -> None:
    alone = hg.load(DATASETS[0], ranks=[1])
    assert len(hg.digest(alone, {}).to_bytes()) < len(hg.digest(alone).to_bytes())


def test_a_class_that_a_rank_has_nothing_of_is_a_class_all_the_same() -> None:
    digest = hg.digest(load([op("aten::mm", 0, 9)]))
    assert digest.classes.names == tuple(DIGEST_CLASSES)
    assert hg.joined_job([digest]).what_if({"host": 0.0}).makespan_ns() == 0


def test_a_class_of_an_unknown_kind_or_criterion_is_refused() -> None:
    graph = load([op("aten::mm", 0, 9)])
    assert hg.digest(graph, {"mine": {"name": "nccl*"}}).classes.parts == ()
    for criteria in ({"knid": "host"}, {"kind": "hots"}):
        with pytest.raises(SelectionError, match="choose from"):
            hg.digest(graph, {"mine": criteria})


def test_a_rank_with_nothing_but_a_step_has_a_digest() -> None:
    digest = hg.digest(load([step(3, 5, 40), op("aten::add", 10, 9), launch(12, 2, 1)]))
    job = hg.joined_job([digest])
    assert job.step_times()[["rank", "step", "duration_us"]].values.tolist() == [[0, 3, 40.0]]
    assert job.makespan_ns() == 40_000


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    elif isinstance(one, Activities):
        for each in fields(one):
            assert_equal(getattr(one, each.name), getattr(other, each.name))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key, value in one.items():
            for name in ("rows", "values"):
                assert_equal(getattr(value, name), getattr(other[key], name))
            assert value.missing == other[key].missing
    else:
        assert one == other


@pytest.mark.slow
@given(jobs())
@settings(max_examples=8)
def test_every_digest_comes_back_from_its_bytes(job: Job) -> None:
    for digest in digests_of_events(job):
        again = RankDigest.from_bytes(digest.to_bytes())
        for name in ("linked", "source", "target", "weight", "inside", "owner", "classes"):
            assert_equal(getattr(digest, name), getattr(again, name))
        for name in ("activities", "names", "lanes", "steps", "issues"):
            assert_equal(getattr(digest.part, name), getattr(again.part, name))
        for one, other in zip(digest.sums, again.sums, strict=True):
            assert_equal(one, other)
        assert again.part.rest.facts == digest.part.rest.facts
        assert (again.path, again.criteria) == (digest.path, digest.criteria)


@given(st.binary(max_size=60))
@example(zlib.compress(b"\x04" + b"\x00" * 7 + b"null"))
@example(
    zlib.compress(
        (65).to_bytes(8, "little") + b'{"version":2,"criteria":{},"content":{},"arrays":[["<i8",[9e9]]]}' + b"\x01"
    )
)
@example(zlib.compress((9).to_bytes(8, "little") + b'{"version'))
@example(zlib.compress((100_000).to_bytes(8, "little") + b"[" * 100_000))
@example(
    zlib.compress(
        (81).to_bytes(8, "little")
        + b'{"version":2,"criteria":{},"content":{},"arrays":[["<i8",["x",%d]]]}' % 10**14
        + b"\x01"
    )
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(HtagraphError, match="no digest of a rank"):
        RankDigest.from_bytes(data)


@given(st.data())
@settings(max_examples=30)
def test_damaged_bytes_are_refused_or_give_a_digest(data: st.DataObject) -> None:
    raw = bytearray(zlib.decompress(digests_of(DATASETS[0])[0].to_bytes()))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        assert RankDigest.from_bytes(zlib.compress(bytes(raw))).rank >= -(1 << 63)
    except HtagraphError as error:
        assert "no digest of a rank" in str(error)


@pytest.mark.parametrize("column", ["source", "target", "owner", "linked", "name", "lane", "parent"])
def test_numbers_that_refer_to_nothing_are_refused(column: str) -> None:
    digest = digests_of(DATASETS[0])[0]
    acts = digest.part.activities
    changed: dict[str, Any] = {"linked": digest.linked[1:]}
    if column in ("name", "lane", "parent"):
        beyond: dict[str, Any] = {column: np.full_like(getattr(acts, column), 1 << 20)}
        changed = {"part": replace(digest.part, activities=replace(acts, **beyond))}
    elif column != "linked":
        changed = {column: np.append(getattr(digest, column)[:-1], 1 << 40)}
    with pytest.raises(HtagraphError, match="do not belong together"):
        RankDigest.from_bytes(replace(digest, **changed).to_bytes())


def test_bytes_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.queries.rank_digests.digest._VERSION", 1)
    data = digests_of(DATASETS[0])[0].to_bytes()
    monkeypatch.undo()
    with pytest.raises(HtagraphError, match="another version of the format"):
        RankDigest.from_bytes(data)


def test_bytes_that_unpack_to_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.queries.rank_digests.digest._MAX_BYTES", 1000)
    with pytest.raises(HtagraphError, match="too many"):
        RankDigest.from_bytes(zlib.compress(bytes(2000)))


COMPARED = (
    "rank", "start", "end", "asked", "op", "label", "sequence", "group", "seq", "comms_id", "bytes", "on_host", "way",
    "ops", "groups", "group_size", "root", "step",
)  # fmt: skip
"""Columns of members of collectives that do not number activities."""


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_kept_activities_are_the_same_members_of_collectives(path: Path) -> None:
    whole = graph_of(path)
    for rank in whole.ranks[:1]:
        graph = whole if len(whole.ranks) == 1 else hg.load({rank: whole.traces[rank].path})
        linked, matching, _ = kept_rows(graph, DEFAULT_NAMING)
        kept = kept_activities(graph, np.union1d(linked, matching))
        one, other = (members_of(acts, graph.names, DEFAULT_NAMING, graph.traces) for acts in (graph.activities, kept))
        for name in COMPARED:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_what_an_operator_says_becomes_an_argument_of_its_kernel() -> None:
    said: Json = {"Process Group Name": "tp", "Process Group Ranks": "[0, 1]", "In msg nelems": 64, "dtype": "Half"}
    graph = load([
        op("record_param_comms", 0, 20, **said), launch(5, 2, 1), kernel("ncclDevKernel_AllReduce_Sum", 10, 9, 1),
    ])  # fmt: skip
    linked = kept_rows(graph, DEFAULT_NAMING)[0]
    assert graph.activities.kind[linked].tolist() == [ActivityKind.COMMUNICATION]
    kept = kept_activities(graph, linked)
    assert graph.names[kept.args["pg_name"].values[0]] == "tp"
    assert kept.args["in_msg_nelems"].values.tolist() == [64]


def test_other_work_is_left_out() -> None:
    graph = load([op("aten::mm", 0, 20), launch(5, 2, 1), kernel("gemm", 10, 9, 1)])
    assert [len(each) for each in kept_rows(graph, DEFAULT_NAMING)] == [0, 0, 0]


def test_edges_inside_communication_are_kept_apart() -> None:
    graph = hg.load(DATASETS[0], ranks=[0])
    owners = graph.edges.activity[kept_rows(graph, DEFAULT_NAMING)[2]]
    assert np.array_equal(np.unique(owners), np.flatnonzero(np.isin(graph.activities.kind, COMMUNICATION)))


def test_of_what_a_thread_does_beside_communication_the_last_operator_is_kept() -> None:
    events = [*transfer("send", 1, 1, 90), *(op("aten::mm", at, 5) for at in (10, 20, 30))]
    graph = hg.load({0: host_job({0: events, 1: []}).traces[0].path})
    linked = kept_rows(graph, DEFAULT_NAMING)[0]
    products = [row for row in linked.tolist() if graph.names[graph.activities.name[row]] == "aten::mm"]
    assert [int(graph.activities.start[row]) % 100_000 for row in products] == [30_000]


def test_only_the_names_and_lanes_in_use_are_left() -> None:
    graph = graph_of(DATASETS[0])
    names, lanes, acts = own_tables(graph.activities, (*graph.names, "unused"), graph.lanes)
    assert "unused" not in names
    assert set(names) <= set(graph.names)
    for row in range(0, len(acts), 97):
        assert names[acts.name[row]] == graph.names[graph.activities.name[row]]
    rows = graph.activities.lane >= 0
    assert [lanes[lane] for lane in acts.lane[rows][:50]] == [
        graph.lanes[lane] for lane in graph.activities.lane[rows][:50]
    ]


def test_a_header_says_how_many_ranks_the_job_has_and_where_it_ran() -> None:
    graph = hg.load(DATASETS[0], ranks=[2])
    trace, whole = header_of(graph), graph.traces[2].facts
    assert (trace.facts.rank, trace.facts.world_size) == (2, whole.world_size)
    assert trace.facts.host == whole.host
    assert trace.path == graph.traces[2].path
    assert len(trace.events) == 0


def test_a_graph_of_frames_has_no_file() -> None:
    frame = pd.DataFrame({"duration_ns": [5, 7]})
    graph = DependencyGraph.from_frames(frame, pd.DataFrame({"source": [0], "target": [1]}))
    assert not header_of(graph).facts.host
    assert hg.joined_job([hg.digest(graph, {})]).makespan_ns() == 12


def test_work_is_summed_by_name_and_step() -> None:
    graph = load([
        step(1, 0, 100), op("aten::mm", 10, 30), launch(15, 2, 1), kernel("gemm", 40, 20, 1),
        step(2, 200, 100), op("aten::mm", 210, 30), op("aten::add", 250, 1), launch(215, 2, 2),
        kernel("gemm", 240, 25, 2),
    ])  # fmt: skip
    sums = work_sums(graph)
    code = zlib.crc32(b"gemm")
    rows = np.flatnonzero((sums.device == 1) & (sums.name == code))
    assert sums.step[rows].tolist() == [1, 2]
    assert sums.total[rows].tolist() == [20_000, 25_000]
    assert sums.calls[rows].tolist() == [1, 1]
    assert dict(zip(sums.program.tolist(), sums.instances.tolist(), strict=True)) == {
        zlib.crc32(b"aten::mm"): 2, zlib.crc32(b"aten::add"): 1,
    }  # fmt: skip
    assert sums.steps == 2


def test_small_names_count_in_the_sum_of_all_names_only() -> None:
    events = [step(1, 0, 900), op("aten::big", 1, 800)] + [op(f"aten::n{at}", 802 + at, 1) for at in range(9)]
    sums = work_sums(load(events))
    host = sums.device == 0
    assert sums.name[host].tolist() == [zlib.crc32(b"aten::big"), ALL_NAMES]
    assert sums.total[host].tolist() == [800_000, 809_000]


def test_sums_of_a_rank_are_small() -> None:
    sums = work_sums(hg.load(DATASETS[0], ranks=[0]))
    assert len(sums.name) < 200
