"""A job whose ranks lie with workers answers as one graph of all its ranks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.cluster.job import DistributedJob, NotHereError
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


@pytest.fixture(scope="module")
def job(workers: ThreadPoolExecutor) -> DistributedJob:
    return hg.load(DATA / "demo", engine=workers)


@pytest.mark.slow
@pytest.mark.parametrize("path", JOBS, ids=label)
def test_breakdowns_by_rank_and_step_times_are_those_of_one_graph(path: Path, workers: ThreadPoolExecutor) -> None:
    local = graph_of(path)
    job = hg.load({rank: local.traces[rank].path for rank in local.ranks}, engine=workers)
    for name, options in BY_RANK:
        answer, expected = (getattr(hg, name)(each, **options) for each in (job, local))
        pd.testing.assert_frame_equal(answer, expected, obj=name)
    pd.testing.assert_frame_equal(hg.step_times(job), hg.step_times(local))


def test_what_needs_activities_says_what_to_ask_instead(job: DistributedJob) -> None:
    with pytest.raises(NotHereError, match=r"job\.load"):
        hg.critical_path(job)  # type: ignore[arg-type]
    assert hg.critical_path(job.load([0, 1])).makespan_ns > 0
    with pytest.raises(NotHereError, match=r"a job on workers has no edges here: ask \.moments"):
        _ = job.edges
    with pytest.raises(SelectionError, match="rank 9 is not among"):
        job.load([9])


def functions_of_graphs() -> list[str]:
    """Return the public functions whose first argument is a graph alone."""
    names = []
    for name in dir(hg):
        function = getattr(hg, name)
        if inspect.isfunction(function) and name not in {"step_times", *(each for each, _ in BY_RANK)}:
            first = next(iter(inspect.signature(function).parameters.values()), None)
            if first is not None and "DependencyGraph" in str(first.annotation):
                names.append(name)
    return names


@pytest.mark.parametrize("name", functions_of_graphs())
def test_functions_of_graphs_say_their_name_and_what_to_ask_of_a_job_on_workers(
    name: str, job: DistributedJob, tmp_path: Path
) -> None:
    function = getattr(hg, name)
    given: dict[str, list[Any]] = {
        "save": [tmp_path / "saved"], "to_parquet": [tmp_path / "tables"], "to_perfetto": [tmp_path / "o.json"],
            "report": [tmp_path / "o.html"],
        "diff": [job], "compare": [job], "sweep": [lambda scenario, _: scenario, [1.0]], "call_stack": [0],
        "arguments": [[0], ["Op count"]],
    }  # fmt: skip
    says = "not a DependencyGraph" if name in {"diff", "compare"} else rf"htagraph\.{name} takes .*job\.load"
    with pytest.raises((NotHereError, TypeError), match=says):
        function(job, *given.get(name, []))
    assert not list(tmp_path.iterdir())


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
