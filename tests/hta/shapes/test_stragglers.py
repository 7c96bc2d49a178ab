"""HTA's potential stragglers: HTA 0.6.1's own answer on megatron_tp8_a100, its kernels renamed to what HTA knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from htagraph.hta.shapes.job import HtaJob, open_job
from htagraph.hta.shapes.stragglers import potential_stragglers, profiler_steps, straggler_figures
from tests.analyses.test_late_starts import rank
from tests.hta.shapes.test_launches import made, real
from tests.reach import SHARED
from tests.strategies import COMPUTE, kernel, launch


@pytest.fixture
def three(tmp_path: Path) -> HtaJob:
    end = [launch(200, 1, 99), kernel(COMPUTE, 205, 1, 99)]
    return made(tmp_path, *([*rank(late), *end] for late in (0, 8, 2)))


@real
def test_the_candidates_are_those_of_hta() -> None:
    files = {i: str(SHARED / "megatron_tp8_a100" / f"megatron_kineto_{i}.json.gz") for i in range(8)}
    job = open_job(files)
    assert profiler_steps(job) == [3]
    assert [sorted(potential_stragglers(job, None, count)) for count in range(1, 6)] == [
        [2], [2, 5], [2, 3, 5], [2, 3, 4, 5], [1, 2, 3, 4, 5],
    ]  # fmt: skip


def test_the_last_step_is_left_out_as_by_hta(three: HtaJob) -> None:
    assert profiler_steps(three) == [3]


def test_three_figures_show_what_is_late(three: HtaJob) -> None:
    long, differing, late = straggler_figures(three)
    bars = [len(trace.y) for trace in differing.data]
    assert sum(bars) == 3  # the last collective of each rank's only analysed step
    assert {label for trace in differing.data for label in trace.y} == {f"rank {rank} stream 20" for rank in range(3)}
    assert sum(len(trace.y) for trace in long.data) >= sum(bars)
    assert [list(bar.x) for bar in late.data] == [[0, 1, 2]]


def test_the_rank_that_starts_late_is_found(three: HtaJob) -> None:
    assert potential_stragglers(three, num_candidates=1) == [1]
    assert potential_stragglers(three) == [1, 2]
    assert potential_stragglers(three, num_candidates=0) == [1]
    assert sorted(potential_stragglers(three, num_candidates=9)) == [0, 1, 2]  # HTA fails


def test_steps_that_are_not_there_are_refused(three: HtaJob) -> None:
    assert potential_stragglers(three, [3, 77], 1) == [1]
    with pytest.raises(ValueError, match="the job has steps 3"):
        potential_stragglers(three, [77])


def test_jobs_that_cannot_tell_say_why(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="steps none"):
        assert potential_stragglers(made(tmp_path, [launch(0, 1, 1)])) == []
    with pytest.warns(UserWarning, match="no two ranks"):
        assert potential_stragglers(made(tmp_path, rank(0))) == []


def test_another_implementation_can_be_brought(three: HtaJob) -> None:
    def most_events(frame: pd.DataFrame, symbols: Any, count: int, visualize: bool) -> pd.Series[int]:  # noqa: FBT001
        assert (count, visualize, set(frame["iteration"])) == (2, False, {3})
        assert "ProfilerStep#3" in symbols.sym_index
        return pd.Series([0, 1, 5], index=[0, 1, 2])

    assert potential_stragglers(three, implementation=most_events) == [2, 1]
