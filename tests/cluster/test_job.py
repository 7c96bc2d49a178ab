"""A job whose ranks lie with workers answers as one graph of all its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.cluster.job import NotHereError
from htagraph.core.errors import SelectionError, TraceError
from tests.reach import DATA, DATASETS, SHARED, graph_of, label

BY_RANK: list[tuple[str, dict[str, Any]]] = [
    ("annotation_breakdown", {}), ("annotation_breakdown", {"by": "job"}), ("compiled_regions", {}),
    ("idle_breakdown", {}), ("idle_breakdown", {"by": "rank"}), ("kernel_breakdown", {}),
    ("kernel_breakdown", {"by": "job"}), ("kernel_types", {}), ("operator_breakdown", {}),
    ("operator_breakdown", {"by": "job"}), ("operator_kernels", {}), ("overlap", {}), ("phases", {}),
    ("temporal_breakdown", {}),
]  # fmt: skip
"""Analyses that workers answer, with the options that change their columns."""
JOBS = [*DATASETS, *(SHARED / name for name in ("gloo4_cpu",) if (SHARED / name).is_dir())]


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_breakdowns_by_rank_and_step_times_are_those_of_one_graph(path: Path, workers: ThreadPoolExecutor) -> None:
    local = graph_of(path)
    job = hg.load({rank: local.traces[rank].path for rank in local.ranks}, engine=workers)
    for name, options in BY_RANK:
        answer, expected = (getattr(hg, name)(each, **options) for each in (job, local))
        pd.testing.assert_frame_equal(answer, expected, obj=name)
    pd.testing.assert_frame_equal(hg.step_times(job), hg.step_times(local))


def test_what_needs_activities_says_what_to_ask_instead(workers: ThreadPoolExecutor) -> None:
    job = hg.load(DATA / "demo", engine=workers)
    with pytest.raises(NotHereError, match=r"job\.load"):
        hg.critical_path(job)  # type: ignore[arg-type]
    assert hg.critical_path(job.load([0, 1])).makespan_ns > 0
    with pytest.raises(SelectionError, match="rank 9 is not among"):
        job.load([9])


def test_a_rank_that_is_gone_by_then_is_missing_from_the_answer(tmp_path: Path, workers: ThreadPoolExecutor) -> None:
    for path in (DATA / "demo").glob("rank-[01].json.gz"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    job = hg.load(tmp_path, engine=workers)
    (tmp_path / "rank-1.json.gz").unlink()
    with pytest.warns(UserWarning, match="the answer lacks 3 ranks: rank 1: "):
        table = hg.overlap(job)
    assert table["rank"].tolist() == [0]
    assert table.attrs["missing"] == [1, 2, 3]
    (tmp_path / "rank-0.json.gz").unlink()
    with pytest.raises(TraceError, match="no rank could be analysed"):
        hg.overlap(job)
