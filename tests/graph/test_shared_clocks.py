"""Ranks of one host share its clock unless collectives contradict it, and few of many pairs are compared."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

from htagraph.graph import shared_clocks as module
from htagraph.graph.barrier_times import BarrierTimes
from htagraph.graph.shared_clocks import shared_clocks


def times(groups: list[list[int]], ahead: list[float], *, each: int = 8) -> BarrierTimes:
    """Return `each` collectives of each group of ranks whose clocks are ahead by some ns, their ends within 1 µs."""
    draw = np.random.default_rng(0)
    members = [column for group in groups for _ in range(each) for column in group]
    sizes = np.repeat([len(group) for group in groups], each)
    row, column = np.repeat(np.arange(len(sizes)), sizes), np.array(members)
    arrival = 1e7 * row + draw.uniform(0, 5e5, len(row)) + np.array(ahead)[column]
    end = 1e7 * row + 6e5 + draw.uniform(0, 1e3, len(row)) + np.array(ahead)[column]
    return BarrierTimes(row, column, end, arrival, end, ranks=len(ahead), origin=0)


def counted(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return what counts the pairs of ranks that are compared."""
    compared = Mock(wraps=module._one_clock)
    monkeypatch.setattr(module, "_one_clock", compared)
    return compared


def in_grid(ranks: int, wide: int = 4) -> list[list[int]]:
    """Return groups as jobs have: rows and columns of a grid of ranks."""
    grid = np.arange(ranks).reshape(-1, wide)
    return [*grid.tolist(), *grid.T.tolist()]


@pytest.mark.parametrize("ahead", [
    [0.0] * 8, [0.0, 9e6] * 4, [0.0] * 7 + [9e6], [0.0] * 4 + [9e6] * 4, [0.0, 0.0, 4e6, 4e6, 9e6, 9e6, 0.0, 0.0],
])  # fmt: skip
@pytest.mark.parametrize("groups", [[list(range(8))], in_grid(8)])
def test_neighbours_find_the_clocks_that_all_pairs_find(
    groups: list[list[int]], ahead: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    barriers = times(groups, ahead)
    of_all_pairs = shared_clocks([5] * 8, barriers)
    monkeypatch.setattr(module, "_ALL_PAIRS", 7)
    assert shared_clocks([5] * 8, barriers) == of_all_pairs


def test_each_pair_of_a_small_host_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = counted(monkeypatch)
    units, contradicted = shared_clocks([0] * 16 + [1] * 4, times(in_grid(20), [0.0] * 20, each=1))
    assert (units, contradicted) == ([list(range(16)), list(range(16, 20))], set())
    assert compared.call_count == 16 * 15 // 2 + 4 * 3 // 2


def test_comparisons_grow_with_the_members_of_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Mock(return_value=True)
    monkeypatch.setattr(module, "_one_clock", compared)
    counts = []
    for ranks in (72, 144, 288):
        groups = in_grid(ranks)
        assert shared_clocks([0] * ranks, times(groups, [0.0] * ranks, each=1))[0] == [list(range(ranks))]
        counts.append(compared.call_count)
        compared.reset_mock()
        assert counts[-1] <= module._NEIGHBOURS * sum(map(len, groups))
    assert counts[2] < 2.1 * counts[1] < 4.5 * counts[0]


@pytest.mark.parametrize("clocks", [3, 33, 100])
def test_a_large_host_that_is_several_is_told_apart(clocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = counted(monkeypatch)
    ahead = [1e8 * (each // -(-100 // clocks)) for each in range(100)]
    units, contradicted = shared_clocks([3] * 100, times([list(range(100))], ahead))
    assert contradicted == {3}
    assert [[ahead[each] for each in unit] for unit in units] == [[a] * ahead.count(a) for a in sorted(set(ahead))]
    assert compared.call_count <= module._NEIGHBOURS * 100 + module._ALL_PAIRS**2 // 2


def test_more_clocks_than_small_hosts_have_ranks_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank then has a clock of its own, which is never wrong."""
    monkeypatch.setattr(module, "_ALL_PAIRS", 19)
    ahead = [1e8 * (each % 10) for each in range(20)]
    assert shared_clocks([3] * 20, times([list(range(20))], ahead))[0] == [[each] for each in range(20)]
    monkeypatch.setattr(module, "_ALL_PAIRS", 20)
    assert shared_clocks([3] * 20, times([list(range(20))], ahead))[0] == [[each, each + 10] for each in range(10)]
