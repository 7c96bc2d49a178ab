"""Whether the use of a value is known that the host waits for, in jobs whose program is known."""

from __future__ import annotations

import pytest

from htagraph.findings.blocking import BLOCKING, BlockingClaim
from htagraph.findings.finding import claims_that_are
from htagraph.findings.preconditions import IS_NOT_USED_AT_ONCE
from htagraph.findings.results import Results
from htagraph.queries.fetched_values import Use, use_of
from htagraph.queries.host_time import calls_that_wait
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime

EXCHANGE = "ncclDevKernel_SendRecv"
LAYERS = 6


def layer(begin: int, number: int, fetch: str, following: list[Json]) -> list[Json]:
    """Return a kernel of 100 µs whose result an operator fetches, and what follows 5 µs behind that."""
    copy = "Memcpy DtoH (Device -> Pageable)"
    return [
        launch(begin, 5, number),
        kernel(COMPUTE, begin + 10, 100, number),
        op(fetch, begin + 20, 100),
        runtime("cudaMemcpyAsync", begin + 22, 97, number + 1),
        kernel(copy, begin + 111, 2, number + 1) | {"cat": "gpu_memcpy"},
        *following,
    ]


def job(use: str, skipped: int = -1) -> list[Json]:
    """Return layers that fetch values for a use; one of them may use the value for nothing."""
    events = list[Json]()
    for at in range(LAYERS):
        begin, number = 1000 * at, 10 * at + 1
        after = [launch(begin + 160, 5, number + 3), kernel(COMPUTE, begin + 170, 50, number + 3)]
        following = list(after)
        if use == "sizes" and at != skipped:
            exchange = kernel(EXCHANGE, begin + 140, 20, number + 2)
            following = [launch(begin + 130, 5, number + 2), exchange, *after]
        elif use == "shape":
            following = [op("aten::slice", begin + 123, 3), *after]
        elif use == "late":  # a collective, but other work is launched before it
            exchange = kernel(EXCHANGE, begin + 230, 20, number + 2)
            following = [*after, launch(begin + 180, 5, number + 2), exchange]
        events += layer(begin, number, "aten::is_nonzero" if use == "condition" else "aten::to", following)
    return events


@pytest.mark.parametrize(
    ("program", "use"), [("sizes", "sizes"), ("shape", "shape"), ("condition", "condition"), ("late", ""), ("log", "")]
)
def test_a_value_that_is_used_at_once_is_told_from_one_that_is_not(program: str, use: Use) -> None:
    graph = load(job(program))
    calls = calls_that_wait(graph)
    assert len(calls) == LAYERS
    assert use_of(graph, calls) == use
    assert IS_NOT_USED_AT_ONCE.holds(graph, calls) is (use == "")


def test_a_value_that_is_not_always_used_may_be_fetched_more_rarely() -> None:
    graph = load(job("sizes", skipped=2))
    assert use_of(graph, calls_that_wait(graph)) == ""


@pytest.mark.parametrize("program", ["sizes", "shape", "condition"])
def test_no_wait_is_to_be_moved_whose_value_is_used_at_once(program: str) -> None:
    (claim,) = claims_that_are(BlockingClaim, BLOCKING.when(Results(load(job(program)))))
    assert "out of the loop" not in BLOCKING.advice(claim)
    assert BLOCKING.advice(claim).startswith("The host waits for ")


def test_a_wait_whose_value_nothing_uses_at_once_may_be_moved() -> None:
    (claim,) = claims_that_are(BlockingClaim, BLOCKING.when(Results(load(job("log")))))
    assert BLOCKING.advice(claim) == "Move aten::to out of the loop, or do it every few steps only."


@pytest.mark.parametrize(("sizes", "use"), [((5000, 5000), ""), ((5000, 7000), "sizes")])
def test_parameters_that_are_gathered_after_a_fetch_have_no_size_from_it(sizes: tuple[int, int], use: Use) -> None:
    """A loss is fetched before the next step gathers sharded parameters, of one size each time."""
    events = list[Json]()
    for at in range(LAYERS):
        begin, number = 1000 * at, 10 * at + 1
        gather = kernel("ncclDevKernel_AllGather_RING_LL", begin + 140, 20, number + 2)
        gather["args"] |= {"Collective name": "all_gather", "In msg nelems": sizes[at % 2], "dtype": "Float"}
        gather["args"] |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2}
        events += layer(begin, number, "aten::to", [launch(begin + 130, 5, number + 2), gather])
    graph = load({0: events, 1: events})
    assert use_of(graph, calls_that_wait(graph)) == use
