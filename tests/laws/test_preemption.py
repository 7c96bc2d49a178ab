"""Whether work that takes a rank's cores is told from slow code, in jobs of which most time is one operator.

The jobs are made by hand: a scheduler takes the core of rank 1 from whatever runs, after random times on the core, for
about one slice. So code is stopped in proportion to its time.
"""

from __future__ import annotations

import numpy as np
import pytest

from htagraph import DependencyGraph
from htagraph.findings.finding import claims_that_are
from htagraph.findings.interrupted import INTERRUPTED
from htagraph.findings.results import Results
from htagraph.findings.straggler import STRAGGLER, StragglerClaim
from htagraph.output.summary import summarize
from htagraph.queries.interruptions import interrupted, interrupted_beyond_us
from tests.host_jobs import host_job
from tests.strategies import Json, annotation, op, step

STEPS = 16
SLICE_US = 4_000
MM_US = 140
SMALL_US = 12
SMALL = ("aten::copy_", "aten::add", "AddmmBackward0", "aten::mean", "aten::stack", "aten::as_strided")
MM_IN_STEP = 100
SMALL_IN_STEP = 5 * MM_IN_STEP // 2
"""So many that products have four fifths of the time of host code."""


def calls_of_step(rng: np.random.Generator) -> list[tuple[str, float]]:
    """Return the operators of a step, with the time that each takes by itself, µs."""
    calls = []
    for number in range(MM_IN_STEP):
        calls.append(("aten::mm", MM_US * rng.uniform(0.95, 1.05)))
        small = range(number * SMALL_IN_STEP // MM_IN_STEP, (number + 1) * SMALL_IN_STEP // MM_IN_STEP)
        calls.extend((SMALL[each % len(SMALL)], SMALL_US * rng.uniform(0.9, 1.1)) for each in small)
    return calls


def stop_of(rng: np.random.Generator, lasts: float, every_us: float, *, is_hit: bool) -> float:
    """Return for how long a call is stopped, µs: 0 for most."""
    if not is_hit or rng.random() >= lasts / every_us:
        return 0.0
    return SLICE_US * rng.uniform(0.9, 1.1)


def job(seed: int, every_us: float, hits: tuple[str, ...]) -> tuple[DependencyGraph, float]:
    """Return a job of two ranks on hosts, of which calls of some names are stopped on rank 1, and for how long in all.

    Args:
        seed: of the random times.
        every_us: time on the core between two stops, on average.
        hits: the names of operators that are stopped.
    """
    rng = np.random.default_rng(seed)
    events: dict[int, list[Json]] = {0: [], 1: []}
    begin = 0.0
    stopped_us = 0.0
    for number in range(STEPS):
        arrived = {}
        for rank, of_rank in events.items():
            now = begin
            for name, lasts in calls_of_step(np.random.default_rng(seed + number)):
                stop = stop_of(rng, lasts, every_us, is_hit=rank == 1 and name in hits)
                stopped_us += stop
                of_rank.append(op(name, now, lasts + stop))
                now += lasts + stop + 1
            arrived[rank] = now
        end = max(arrived.values()) + 500
        for rank, of_rank in events.items():
            of_rank.append(annotation("gloo:all_reduce", arrived[rank], end - arrived[rank]))
            of_rank.append(step(number, begin, end + 10 - begin))
        begin = end + 20
    return host_job(events), stopped_us


def straggler_of(graph: DependencyGraph) -> StragglerClaim:
    """Return what is claimed of the rank that the other one waits for."""
    (claim,) = claims_that_are(StragglerClaim, STRAGGLER.when(Results(graph)))
    return claim


@pytest.mark.parametrize("seed", range(4))
def test_a_rank_whose_cores_other_work_takes_is_not_said_to_have_slow_code(seed: int) -> None:
    graph, stopped_us = job(seed, SLICE_US, ("aten::mm", *SMALL))
    found = interrupted(graph)
    assert (found.length - found.usual).sum() / 1000 == pytest.approx(stopped_us, rel=0.05)
    assert interrupted_beyond_us(graph, 1) == pytest.approx(stopped_us, rel=0.05)
    claim = straggler_of(graph)
    assert (claim.about, claim.cause, claim.cause_name) == ("1", "interrupted", "")


def test_the_head_says_that_other_work_takes_the_cores_and_what_to_do() -> None:
    head = summarize(job(1, SLICE_US, ("aten::mm", *SMALL))[0]).head
    assert head.first.startswith("Give the process of rank 1 cores of its own (taskset -cp PID")
    assert head.why[0] == ("The others wait for rank 1: other work takes its cores, and interrupts its host code.")
    assert "cores" not in head.then


@pytest.mark.parametrize("hits", [("aten::mm",), ("aten::mm", *SMALL[:3])])
def test_rare_long_calls_of_few_operators_are_their_own(hits: tuple[str, ...]) -> None:
    graph, stopped_us = job(1, SLICE_US, hits)
    assert stopped_us > 20 * SLICE_US
    assert not len(interrupted(graph))
    assert not INTERRUPTED.when(Results(graph))
    assert straggler_of(graph).cause == "host"
