"""Other readings of a recording reproduce it, and predict otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.whatif.readings import (
    DOUBTS,
    in_runs,
    under,
    with_hosts_in_transfers,
    with_quick_messages,
    with_slow_answers,
    with_slow_loaders,
    with_slow_messages,
    with_waits_for_outside,
    without_doubtful_waits,
    without_surroundings,
)
from tests.host_jobs import host_job, transfer
from tests.strategies import MAIN, OTHER, Json, annotation, complete, jobs, load, op, step
from tests.whatif.changes.made import Piece, made


def moments(state: State) -> np.ndarray:
    return predict(state.graph, state.lag, state.gap, state.head)


def _with_doubt(graph: DependencyGraph) -> DependencyGraph:
    """Return the graph in which each third edge is a guess."""
    confidence = graph.edges.confidence.copy()
    confidence[::3] = 30
    return graph.replace(edges=replace(graph.edges, confidence=confidence))


@given(jobs(tidy=True).map(load))
@settings(max_examples=15)
def test_every_reading_gives_back_the_recording(graph: DependencyGraph) -> None:
    for doubtful in (graph, _with_doubt(graph)):
        for reading in DOUBTS.values():
            other = under(reading, initial(doubtful))
            assert other is None or np.array_equal(moments(other), doubtful.time)


def test_without_a_doubtful_wait_what_was_waited_for_does_not_matter() -> None:
    graph = made([Piece("a", 7, 100), Piece("b", 8, 50, waits=(0,))])
    wait = graph.edges.confidence.copy()
    wait[graph.edges.kind == 7] = 50
    doubtful = graph.replace(edges=replace(graph.edges, confidence=wait))
    state = hg.what_if(doubtful).scale(name="a", factor=0).state
    other = under(without_doubtful_waits, state)
    assert other is not None
    assert moments(state).max() < graph.time.max() == moments(other).max()
    assert under(without_doubtful_waits, initial(graph)) is None


LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def makespan_ms(state: State) -> float:
    time = moments(state)
    return float(time.max() - time.min()) / 1e6


def looped(*fetch_ms: float, name: str = LOADER) -> DependencyGraph:
    """Return the graph of a loop that fetches batches, and computes for 50 ms on each."""
    events, at = [], 0.0
    for fetch in fetch_ms:
        events += [annotation(name, at, 1000 * fetch), op("compute", at + 1000 * fetch, 50_000)]
        at += 1000 * fetch + 50_000
    return load(events)


def message(asks_ms: float, comes_ms: float) -> DependencyGraph:
    """Return the graph of two ranks: one sends at once, the other asks later, and has it at a moment."""
    sends = [*transfer("send", 1, 100, 300), op("a", 400, 1000 * comes_ms)]
    receives = [op("b", 0, 1000 * asks_ms - 1), *transfer("recv", 0, 1000 * asks_ms, 1000 * comes_ms)]
    return host_job({0: sends, 1: [*receives, op("c", 1000 * comes_ms + 1, 5_000)]})


def test_a_loader_that_kept_up_may_not_keep_up_with_faster_steps() -> None:
    graph = looped(1, 1, 1, 1)
    fast = hg.what_if(graph).scale(name="compute", factor=0.1)
    other = under(with_slow_loaders, fast.state)
    assert other is not None
    assert round(makespan_ms(fast.state)) == 4 * (1 + 5)
    assert round(makespan_ms(other)) == round(1 + 3 * 0.9 * 51 + 5)
    assert np.array_equal(moments(under(with_slow_loaders, initial(graph)) or fast.state), graph.time)
    outcome = fast.run()
    assert outcome.low < 204 / 144 < outcome.high


def test_a_slower_loader_that_was_hidden_may_bind() -> None:
    outcome = hg.what_if(looped(1, 1, 1, 1)).inject(rank=0, kind="loader", factor=2).run()
    assert outcome.low < 0.7 < 0.9 < outcome.speedup
    note = next(note for note in outcome.notes if "the data loader may not keep up" in note)
    assert "the prediction is nearly the best case" in note


def test_code_around_a_removed_operator_may_go_with_it() -> None:
    events = [op("outer", 0, 700), op("a", 300, 200), op("b", 600, 50)]  # µs: 300 and 100 in `outer` around `a`
    state = hg.what_if(load(events)).remove(name="a").state
    assert makespan_ms(state) - makespan_ms(under(without_surroundings, state) or state) == pytest.approx(0.4)
    assert under(without_surroundings, hg.what_if(load(events)).scale(factor=0.5, name="a").state) is None


def test_a_thread_that_was_always_done_in_time_may_be_waited_for() -> None:
    parts = [("hand", 0, 2_000, MAIN), ("left", 2_000, 28_000, MAIN), ("right", 2_200, 15_000, OTHER)]
    events = [op(name, 30_000 * i + at, takes, tid) for i in range(6) for name, at, takes, tid in parts]
    outcome = hg.what_if(load(events)).scale(factor=0.1, name="left").run()
    assert 180 / outcome.speedup == pytest.approx(6 * 17.2, rel=0.01), "a queue is as short as the times allow"
    assert outcome.high >= 180 / (6 * 15 + 2), "or the next is handed over before"


def test_what_a_frame_asks_for_and_was_ready_may_take_nearly_a_step() -> None:
    name = "multiprocessing/connection.py(246): recv"
    asks = [complete("python_function", name, 20_000 * i, 300) for i in range(8)]
    learns = [op("learn", 20_000 * i + 300, 19_000) for i in range(8)]
    scenario = hg.what_if(load(asks + learns)).scale(factor=0.1, name="learn")
    assert (
        makespan_ms(under(with_slow_answers, scenario.state) or scenario.state)
        > 7 * 18
        > 5 * makespan_ms(scenario.state)
    )
    assert any("another thread or process may not keep up" in note for note in scenario.run().notes)


def test_loaders_that_were_waited_for_or_have_no_workers_leave_no_doubt() -> None:
    assert under(with_slow_loaders, initial(looped(40, 40, 40, 40))) is None
    inline = LOADER.replace("MultiProcessing", "SingleProcess")
    assert under(with_slow_loaders, initial(looped(1, 1, 1, 1, name=inline))) is None


def test_a_message_that_was_there_before_it_was_asked_for_may_have_taken_long() -> None:
    graph = message(asks_ms=80, comes_ms=80.2)
    assert under(with_slow_messages, initial(graph)) is not None
    slow = hg.what_if(graph).scale_network(factor=4)
    other = under(with_slow_messages, slow.state)
    assert other is not None
    assert makespan_ms(slow.state) < 100 < 250 < makespan_ms(other) < 4 * 80 + 10
    assert np.array_equal(moments(under(with_slow_messages, initial(graph)) or slow.state), graph.time)


def test_a_message_that_was_waited_for_is_as_slow_as_recorded() -> None:
    slow = hg.what_if(message(asks_ms=1, comes_ms=80.2)).scale_network(factor=4)
    other = under(with_slow_messages, slow.state)
    assert other is not None
    assert makespan_ms(other) == makespan_ms(slow.state)


def test_messages_that_were_all_over_when_they_were_asked_for_may_have_been_quick() -> None:
    def exchange(inner_ms: float) -> DependencyGraph:
        """Return two ranks that do `inner_ms` of other work; their send and receive last until that is over."""
        sends = [*transfer("send", 1, 100, 1000 * inner_ms + 200), op("inner", 150, 1000 * inner_ms)]
        receives = [*transfer("recv", 0, 100, 1000 * inner_ms + 200), op("inner", 150, 1000 * inner_ms)]
        return host_job({0: [*sends, op("c", 20_000, 5)], 1: [*receives, op("c", 20_000, 5)]})

    slow = hg.what_if(exchange(16)).scale_network(factor=8)
    quick = under(with_quick_messages, slow.state)
    assert quick is not None
    assert makespan_ms(quick) < 30 < 60 < makespan_ms(slow.state) < 75  # half of 16 ms, times 8
    assert np.array_equal(moments(under(with_quick_messages, initial(slow.graph)) or slow.state), slow.graph.time)
    assert (
        under(with_quick_messages, hg.what_if(message(asks_ms=1, comes_ms=80.2)).scale_network(factor=4).state) is None
    )


def test_a_transfer_that_took_longer_beside_work_may_have_had_no_core() -> None:
    ends = [(10_000, 14_000), (20_000, 30_000)]  # µs; 5 ms of the second are beside work
    both = [[each for end in ends for each in transfer(word, peer, *end)] for word, peer in (("send", 1), ("recv", 0))]
    graph = host_job({rank: [*both[rank], op("work", 21_000, 5_000), op("c", 30_001, 5)] for rank in (0, 1)})
    slow = hg.what_if(graph).scale_network(factor=2)
    assert makespan_ms(slow.state) - makespan_ms(under(with_hosts_in_transfers, slow.state) or slow.state) > 0.9 * 5
    assert np.array_equal(moments(under(with_hosts_in_transfers, initial(graph)) or initial(graph)), graph.time)


@pytest.mark.parametrize(("around", "doubts"), [(annotation, 1), (op, 0)])
def test_a_region_without_records_inside_may_wait_for_outside(around: Callable[..., Json], doubts: int) -> None:
    events = []
    for i in range(6):
        at = 20_000 * i
        events += [step(i, at, 20_000), around("receive", at + 10, 12_000), op("work", at + 12_100, 7_800)]
    fast = hg.what_if(load(events)).scale(name="work", factor=0.1)
    other = under(with_waits_for_outside, fast.state)
    assert (other is not None) == doubts
    if other is not None:
        assert makespan_ms(fast.state) < 90 < 112 < makespan_ms(other) < 115
        gone = under(with_waits_for_outside, fast.remove(name="receive").state)
        assert gone is not None
        assert makespan_ms(gone) < 10


@given(jobs(tidy=True).map(load).map(_with_doubt))
@settings(max_examples=15)
def test_runs_say_what_a_replay_under_each_reading_says(graph: DependencyGraph) -> None:
    ends, spans = 2 * np.flatnonzero(graph.awake) + 1, graph.step_spans.end
    for state in (initial(graph), hg.what_if(graph).infinite_host().state) if len(ends) else ():
        told = in_runs(state, lambda _, time, last: (last, *time[spans].tolist()))
        for reading in DOUBTS.values():
            (known, found), other = told(reading), under(reading, state)
            assert not known or found == (other and (moments(other)[ends].max(), *moments(other)[spans]))


def _slept(seed: int, *, paced: bool, every_us: int = 45_000, work_us: int = 38_000) -> list[Json]:
    """Return steps that sleep until they are due, each as long behind the last one, or for as long as every step."""
    generator = np.random.default_rng(seed)
    events: list[Json] = []
    begin = due = 0
    for number in range(10):
        late = int(generator.integers(55, 135))
        starts = max(begin, due) + late if paced else begin + every_us - work_us + late
        due = starts + every_us
        takes = work_us + int(generator.normal(0, 60))
        over = starts + takes
        events += [op("train", starts, takes), step(number, begin, over + 90 - begin)]
        begin = over + 150
    return events


def _may_gain_nothing(events: list[Json]) -> bool:
    outcome = hg.what_if(load(events)).scale(factor=0.5, op="train").run()
    return outcome.low < 1.05


def test_a_sleep_until_a_step_is_due_may_keep_its_pace_though_it_is_short() -> None:
    """The sleep takes a seventh of each step. One that always lasts as long differs from it only in how times vary."""
    assert np.mean([_may_gain_nothing(_slept(seed, paced=True)) for seed in range(12)]) > 0.7
    assert np.mean([_may_gain_nothing(_slept(seed, paced=False)) for seed in range(12)]) < 0.1
