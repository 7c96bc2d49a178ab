"""Why a host launches too late, on jobs whose answer is obvious."""

from __future__ import annotations

from itertools import chain

import pytest

from htagraph.queries.late_launches import late_reason
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op


def launches(every: int, between: list[Json], count: int = 10) -> list[Json]:
    """Return launches, so many µs apart, of kernels of 50 µs, and what else runs."""
    return [
        *chain.from_iterable(
            (launch(every * i, 10, i + 1), kernel(COMPUTE, every * i + 15, 50, i + 1)) for i in range(count)
        ),
        *between,
    ]


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("every", "between", "reason"),
    [
        (3000, [], "pauses"),  # code that no event covers
        (3000, [op("aten::mul", 3000 * i + 20, 2900) for i in range(10)], "pauses"),
        (3000, [op("aten::mul", 3000 * i + 20 + 290 * j, 280) for i in range(10) for j in range(10)], "few"),
        (3000, [annotation(LOADER, 3000 * i + 20, 2900) for i in range(10)], "loader"),
        (3000, [op("gloo:all_reduce", 3000 * i + 20, 2900) for i in range(10)], "ranks"),
        (20, [], ""),  # the device never waits
    ],
)
def test_it_is_what_the_host_does_while_the_device_waits(every: int, between: list[Json], reason: str) -> None:
    assert late_reason(load(launches(every, between)), 0) == reason


@pytest.mark.parametrize(("count", "reason"), [(5, "few"), (150, "launches")])
def test_few_late_launches_are_no_sign_of_many_small_pieces(count: int, reason: str) -> None:
    """A recording of five kernels launches few pieces, however late each is."""
    assert late_reason(load(launches(300, [], count)), 0) == reason


def test_a_rank_without_device_work_launches_nothing() -> None:
    assert late_reason(load([op("aten::mul", 0, 100)]), 0) == ""
