from __future__ import annotations

import pytest

import htagraph as hg
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load, step

ALL_GATHER = "ncclDevKernel_AllGather_RING_LL"


def rank(late: int, name: str = COMMUNICATE, stream: int = 20) -> list[Json]:
    """Return two steps of 100 µs; the last collective of each ends at 90 on every rank and starts `late`."""
    out: list[Json] = []
    for i, at in enumerate((0, 100)):
        number = 10 * i
        out += [
            step(3 + i, at, 100), launch(at + 1, 1, number + 1), kernel(COMPUTE, at + 3, 5, number + 1),
            launch(at + 4, 1, number + 2), kernel(ALL_GATHER, at + 20, 10, number + 2, stream),
            launch(at + 6, 1, number + 3), kernel(name, at + 50 + late, 40 - late, number + 3, stream),
        ]  # fmt: skip
    return out


def test_the_collective_in_which_ranks_differ_is_shown() -> None:
    table = hg.late_starts(load({0: rank(0), 1: rank(8), 2: rank(2)}))
    assert table["kernel"].unique().tolist() == [COMMUNICATE]
    assert table[["rank", "step", "stream"]].to_numpy().tolist() == [[r, s, 20] for r in range(3) for s in (3, 4)]
    assert table["late_us"].tolist() == pytest.approx([0, 0, 8, 8, 2, 2])
    assert table["duration_us"].tolist() == pytest.approx([40, 40, 32, 32, 38, 38])
    assert table["normalized_start"].tolist() == pytest.approx([0.5, 1.5, 0.58, 1.58, 0.52, 1.52])


def test_steps_can_be_chosen() -> None:
    table = hg.late_starts(load({0: rank(0), 1: rank(8)}), steps=[4])
    assert table["step"].tolist() == [4, 4]
    assert table["normalized_start"].tolist() == pytest.approx([0.5, 0.58])


def test_work_on_stream_0_and_of_any_library_counts() -> None:
    assert len(hg.late_starts(load({i: rank(4 * i, "rccl_AllReduce", 0) for i in range(2)}))) == 4


def test_short_kernels_and_single_ranks_tell_nothing() -> None:
    assert hg.late_starts(load({0: rank(0), 1: rank(8)}), least_share=0.9).empty
    assert hg.late_starts(load(rank(0))).empty


def test_of_several_in_a_step_the_last_counts() -> None:
    job = {0: [*rank(0), kernel(COMMUNICATE, 92, 6, 3, 20)], 1: [*rank(8), kernel(COMMUNICATE, 95, 3, 3, 20)]}
    table = hg.late_starts(load(job), steps=[3])
    assert table["duration_us"].tolist() == pytest.approx([6, 3])
