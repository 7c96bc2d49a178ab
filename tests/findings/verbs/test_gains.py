"""Whether the path is told with what bounds it, and the largest gain with a change to try."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.changes import changes_of, ranked
from htagraph.findings.results import Results
from htagraph.findings.verbs.gains import OF_PATH, opportunities_sentences, path_sentences
from htagraph.findings.verdict import claims_of
from tests.findings.claims_by_hand import gain
from tests.reach import DATA, graph_of
from tests.strategies import load, op


def lines(graph: hg.DependencyGraph) -> list[str]:
    path = hg.critical_path(graph)
    results = Results(graph, path=path)
    return path_sentences(path, claims_of(results, OF_PATH), changes_of(results).first, path.hops(), ["x"])


def test_the_demos_path_has_an_answer_the_bound_and_what_to_do_first() -> None:
    graph = graph_of(DATA / "demo")
    answer, bound, command = lines(graph)
    spent = hg.critical_path(graph).to_frame().groupby("category")["duration_us"].sum()
    share = 100 * spent / spent.sum()
    assert answer == (
        f"The critical path of the whole recording takes {spent.sum() / 1000:.1f} ms: {share['computation']:.0f} % "
        f"computation, {share['communication']:.0f} % transfers between ranks and {share['data_loading']:.0f} % the "
        "data loader; it stays on rank 2."
    )
    assert bound.startswith("Bound by computation: 67 % of the critical path, on rank 2; without computation ")
    assert command.endswith(": htagraph what-if x --fix-straggler auto")


def test_a_path_over_ranks_says_how_often_it_moves_and_where_most_of_it_is() -> None:
    graph = graph_of(DATA / "gloo_ddp")
    path = hg.critical_path(graph)
    by_rank = path.to_frame().groupby("rank")["duration_us"].sum()
    answer = lines(graph)[0]
    most = f"{100 * by_rank.max() / by_rank.sum():.0f} % is on rank {by_rank.idxmax()}."
    assert answer.endswith(f"it moves to another rank {len(path.hops())} times, and {most}")


def test_time_without_an_event_is_no_computation_on_the_cpu() -> None:
    answer, *_ = lines(load([op("aten::mm", 0, 60), op("aten::add", 80, 20)]))
    assert answer.endswith(": 80 % computation on the CPU and 20 % time without any event.")


def test_an_empty_job_has_no_path() -> None:
    assert lines(load([])) == ["Nothing was recorded: there is no critical path."]


def test_what_to_do_first_is_said_first_with_its_command() -> None:
    claims = [gain("aten::mm", 5000.0, 2.0, "operator", target="op=aten::mm", half_us=300.0, steps=10)]
    (sentence,) = opportunities_sentences(claims, ranked(claims), ["x"])
    assert sentence == (
        "No change with a known way was found. With new code (half the time of operator aten::mm): 30.0 µs less per "
        "step (1 %): htagraph what-if x --scale op=aten::mm:0.5"
    )


def test_where_nothing_gains_that_is_said() -> None:
    (sentence,) = opportunities_sentences([], ranked([]), [])
    assert sentence == "No change that is known would gain 2 %."
    (sentence,) = opportunities_sentences([], ranked([]), [], most_percent=32.0)
    assert sentence == (
        "No way is known that would gain 2 %; of faster code, the table says how much it would gain at most."
    )
