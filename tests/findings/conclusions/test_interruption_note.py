"""Whether commands that say what is late say so too where interruptions may be why, and nowhere else."""

from __future__ import annotations

from types import ModuleType

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.cli import collectives, idle, launches, stragglers
from htagraph.findings.conclusions.interruption_note import interruption_note
from tests.queries.test_interruptions import MANY, host_job
from tests.reach import DATA, graph_of
from tests.strategies import load

SENTENCE = "Host code is interrupted{}. To see how often, and what it costs: htagraph summary job"


def conclusions(command: ModuleType, graph: DependencyGraph) -> list[str]:
    """Return what a command concludes."""
    results = {"stragglers": hg.stragglers, "collectives": hg.collectives}
    name = command.__name__.rpartition(".")[2]
    given = (graph, results[name](graph), ["job"]) if name in results else (graph, ["job"])
    said: list[str] = command.report(*given).sentences
    return said


@pytest.mark.parametrize("command", [collectives, idle, launches, stragglers])
def test_what_says_that_something_is_late_ends_with_it(command: ModuleType) -> None:
    assert conclusions(command, load(host_job(MANY)))[-1] == SENTENCE.format(" on all ranks")
    assert not any("interrupted" in line for line in conclusions(command, graph_of(DATA / "demo")))


@pytest.mark.parametrize(("ranks", "where"), [(1, ""), (3, " on 2 of 3 ranks")])
def test_ranks_are_counted_where_there_are_several(ranks: int, where: str) -> None:
    stops = {(rank % ranks, step, call): us for (rank, step, call), us in MANY.items()}
    assert interruption_note(load(host_job(stops, ranks)), ["job"]) == [SENTENCE.format(where)]
