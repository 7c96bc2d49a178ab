"""A job whose ranks lie with workers answers as one graph of all its ranks."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.cluster.engines import Failed
from htagraph.cluster.job import DistributedJob, NotHereError, ReadOptions, digest_of, looks, table_of
from htagraph.core.errors import SelectionError, TraceError
from htagraph.graph.storage.cache import release
from htagraph.queries.rank_digests.digest import RankDigest
from htagraph.trace.discover import RankedFile
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
            "report": [tmp_path / "o.html"], "to_chakra": [tmp_path / "et"],
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in (DATA / "demo").glob("rank-*.json.gz"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_files_that_cannot_be_read_are_missing_and_the_rest_is_answered(
    folder: Path, workers: ThreadPoolExecutor
) -> None:
    (folder / "rank-1.json.gz").write_bytes(b"\x1f\x8b no gzip")
    (folder / "rank-3.json.gz").unlink()
    job = hg.load(folder, engine=workers)
    assert job.ranks == (0, 2)
    assert [(each.rank, Path(each.file).name) for each in job.missing] == [(1, "rank-1.json.gz"), (3, "")]
    assert {issue.rank for issue in job.issues if issue.what == "rank_missing"} == {1, 3}


def test_only_the_ranks_asked_for_are_read(folder: Path, workers: ThreadPoolExecutor) -> None:
    job = hg.load(folder, ranks=[0, 9], engine=workers)
    assert job.ranks == (0,)
    assert [(each.rank, each.why) for each in job.missing] == [(9, "no file of it was given")]


def test_only_the_steps_asked_for_are_read(folder: Path, workers: ThreadPoolExecutor) -> None:
    job = hg.load(folder, steps=[6], engine=workers)
    assert set(hg.step_times(job)["step"]) == {6}
    assert set(hg.step_times(job.load([0]))["step"]) == {6}


def test_nothing_to_read_is_an_error(folder: Path, workers: ThreadPoolExecutor) -> None:
    for path in folder.glob("*"):
        path.write_bytes(b"\x1f\x8b no gzip")
    with pytest.raises(hg.TraceError, match="no file could be read: rank 0: "):
        hg.load(folder, engine=workers)


def test_a_path_that_is_not_there_is_named_without_a_rank(tmp_path: Path, workers: ThreadPoolExecutor) -> None:
    with pytest.raises(hg.TraceError, match="no such file") as told:
        hg.load(tmp_path / "nothere", engine=workers)
    assert "rank" not in str(told.value).replace(str(tmp_path), "")


def test_workers_with_another_release_are_refused(
    folder: Path, workers: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = count()
    monkeypatch.setattr("htagraph.cluster.job.release", lambda: f"0.0.{next(numbers)}")
    with pytest.raises(hg.TraceError, match="install the same release"):
        hg.load(folder, engine=workers)


def test_what_is_no_digest_is_a_missing_rank(
    folder: Path, workers: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hostile(file: Any, reading: ReadOptions) -> Any:
        del reading
        return b"no digest" if file.rank == 2 else digest_of(file, ReadOptions(release=release()))

    monkeypatch.setattr("htagraph.cluster.job.digest_of", hostile)
    job = hg.load(folder, engine=workers)
    assert [each.rank for each in job.missing] == [2]


FILE = RankedFile(DATA / "demo" / "rank-2.json.gz", 2, "header", "")
READING = ReadOptions(release=release())


def test_a_rank_becomes_a_digest_or_a_table() -> None:
    data = digest_of(FILE, READING)
    assert isinstance(data, bytes)
    assert RankDigest.from_bytes(data).rank == 2
    table = table_of(FILE, READING, hg.overlap, (), {})
    assert not isinstance(table, Failed)
    assert table["rank"].tolist() == [2]


def test_headers_are_looked_at_one_after_another() -> None:
    found = looks([FILE.path, Path("absent")], False)  # noqa: FBT003 - as engines pass it on
    assert [getattr(each, "rank", None) for _, each in found] == [2, None]


@pytest.mark.parametrize(
    ("error", "may_mend"),
    [
        (MemoryError(), True),
        (OSError("gone"), True),
        (ValueError("a defect"), False),
        (hg.TraceError("no trace"), False),
    ],
)
def test_an_error_is_why_there_is_no_answer(
    error: Exception, may_mend: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("htagraph.cluster.job.load", fails)
    answer = digest_of(FILE, READING)
    assert isinstance(answer, Failed)
    assert answer.may_mend == may_mend


def test_a_store_that_did_not_answer_may_answer_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise hg.TraceError(*"x") from OSError("timed out")

    monkeypatch.setattr("htagraph.cluster.job.load", fails)
    assert digest_of(FILE, READING) == Failed("x", may_mend=True)
