"""Samples of counters are those of the JSON of the same recording."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.simulate import Job, simulate
from htagraph.simulate.next_pftrace import as_pftrace, message, packet
from htagraph.trace import kineto
from htagraph.trace.pftrace.samples import samples
from tests.trace.pftrace.made import issues_of, slices, small, trace_of


def rows(table: Any) -> list[tuple[Any, ...]]:
    return list(table.itertuples(index=False, name=None))


def test_a_simulated_job(tmp_path: Path) -> None:
    job = simulate(Job(ranks=2, steps=2, layers=2, backend="cupti"))
    job.write(tmp_path / "json", suffix=".json", truth=False)
    for rank, trace in hg.load(tmp_path / "json").traces.items():
        text = as_pftrace(json.loads(job.text(rank)))
        native = trace_of(tmp_path / f"rank-{rank}.pftrace", gzip.compress(text))
        expected = rows(kineto.samples(trace))
        assert len(expected) > 10
        assert rows(samples(native)) == expected
        assert native.counts["C"] == trace.counts["C"]


def test_counters_on_tracks_and_without_a_name(tmp_path: Path) -> None:
    described = packet((60, message((1, 3), (2, "queue"), (8, b""))))
    values = [(30, -4), (44, 0.5)]
    texts = [packet((8, 5), (10, 1), (11, message((9, 4), (11, 3), value))) for value in values]
    unnamed = packet((8, 6), (10, 1), (52, message((2, message((1, 9), (2, -7))), (3, 2))))
    damaged = packet((8, 6), (10, 1), (52, b"\x12\x7f"))
    text = described + b"".join(texts) + unnamed + damaged + slices((1, 1, 5), (2, 1, 9))
    trace = trace_of(tmp_path / "a.pftrace", text)
    found = rows(samples(trace))
    assert issues_of(trace)["packet_unreadable"] == 1
    assert found == [(-1, 0, "queue", 5, -4.0), (-1, 0, "queue", 5, 0.5), (2, -1, "counter 9", 6, -7.0)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ([(8, 6), (52, b"\x12\x7f")], "packet_unreadable"),
        ([(8, 6), (52, message((2, b"\x08")))], "packet_unreadable"),
        ([(8, 6), (52, message((1, message((1, b"\x0a\x7f")))))], "packet_unreadable"),
        ([(8, 6), (52, message((2, b"\x00\x01")))], "packet_unreadable"),
        ([(8, 6), (58, 99), (52, message((2, message((1, 1), (2, 7)))))], "clock_unknown"),
        ([(8, 2**63), (52, message((2, message((1, 1), (2, 7)))))], "time_corrupt"),
        ([(8, 2**63), (11, message((9, 4), (11, 3), (30, 5)))], "time_corrupt"),
    ],
)
def test_a_sample_that_is_not_returned_is_an_issue(fields: list[Any], code: str, tmp_path: Path) -> None:
    sound = packet((8, 6), (10, 1), (52, message((2, message((1, 1), (2, 7))))))
    text = sound + packet((10, 1), *fields) + slices((1, 1, 5), (2, 1, 9))
    trace = trace_of(tmp_path / "a.pftrace", text)
    assert issues_of(trace)[code] == 1
    assert len(samples(trace)) == 1
    assert (
        not {"packet_unreadable", "clock_unknown", "time_corrupt"}
        & issues_of(trace_of(tmp_path / "b.pftrace", sound + slices((1, 1, 5), (2, 1, 9)))).keys()
    )


def test_a_file_without_counters(tmp_path: Path) -> None:
    assert rows(samples(trace_of(small(tmp_path / "a.pftrace")))) == []
