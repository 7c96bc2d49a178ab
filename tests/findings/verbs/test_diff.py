"""Whether the sentences of a diff name what changed the step time, and limits and commands carry figures and files."""

from __future__ import annotations

import pandas as pd

import htagraph as hg
from htagraph.findings.differences.rest import in_region
from htagraph.findings.verbs.diff import compare_sentences, diff_sentences, too_long
from htagraph.graph.dependency_graph import DependencyGraph
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, Json, annotation, complete, kernel, launch, load, op, step


def lines_of(before: hg.DependencyGraph, after: hg.DependencyGraph) -> list[str]:
    return diff_sentences(hg.diff(before, after))


def test_a_limit_is_told_with_both_times() -> None:
    text = too_long("step_time", 1000.0, 2000.0, "step_time>+5%")
    assert text == "Too long: step_time is 2.00 ms instead of 1.00 ms, which exceeds step_time>+5%."
    kept = too_long("host", 1000.0, 1000.0, "host>+2ms", exceeded=False)
    assert kept == "Limit host>+2ms is not exceeded: host is 1.00 ms instead of 1.00 ms."


def one_step(kernel_us: int) -> hg.DependencyGraph:
    return load([step(4, 0, 20), launch(0, 2, 1), kernel(COMPUTE, 5, kernel_us, 1)])


def test_the_first_sentence_has_the_change_with_its_sign() -> None:
    slower, faster = hg.diff(one_step(100), one_step(200)), hg.diff(one_step(200), one_step(100))
    assert "longer" in diff_sentences(slower)[0]
    assert "shorter" in diff_sentences(faster)[0]
    assert any("more own time" in line for line in diff_sentences(slower)[1:])


def test_a_job_is_as_long_as_itself() -> None:
    graph = graph_of(DATA / "demo")
    lines = lines_of(graph, graph)
    assert lines[0].startswith(
        "No difference that these recordings show: a usual step takes 8.70 ms in both jobs (+0.0 %"
    )
    assert not [line for line in lines if "own time" in line]


def test_nothing_against_nothing() -> None:
    assert lines_of(load([]), load([])) == ["Nothing was recorded: there is nothing to compare."]


def test_nothing_is_blamed_where_one_job_is_empty() -> None:
    for before, after, side in ((load([]), in_a_row(400), "before"), (in_a_row(400), load([]), "after")):
        lines = lines_of(before, after)
        assert lines[1:] == [f"Nothing was recorded in the job {side}: there is nothing to compare with."]


def test_new_work_that_ranks_do_one_after_the_other_does_not_wait() -> None:
    def job(first: int) -> hg.DependencyGraph:
        events: dict[int, list[Json]] = {0: [step(1, 0, 100)], 1: [step(1, 0, 100)]}
        for rank in (0, 1) if first else ():
            events[rank] = [step(1, 0, 100 + 2 * first), op("stage", first * rank, first)]
        return load(events)

    assert not any("host waits" in line for line in lines_of(job(0), job(500)))


def in_a_row(*durations: int) -> hg.DependencyGraph:
    """Return a step of up to three operators, one after the other."""
    names, begins = ("embed", "mlp", "norm")[: len(durations)], [sum(durations[:i]) for i in range(len(durations))]
    events = [step(1, 0, sum(durations)), *(op(*each) for each in zip(names, begins, durations, strict=True))]
    return load(events)


def test_operators_that_one_change_halves_are_one_cause() -> None:
    lines = lines_of(in_a_row(400, 200, 90), in_a_row(200, 100, 90))
    assert lines[1].startswith("embed and mlp take 300.0 µs less own time per rank and step, which makes the step 300")
    assert not any("mlp takes" in line for line in lines)


def test_operators_that_change_differently_are_two_causes() -> None:
    lines = lines_of(in_a_row(400, 200, 90), in_a_row(200, 40, 90))
    assert [line.split(" takes ")[0] for line in lines[1:3]] == ["embed", "mlp"]


def test_work_of_one_slow_rank_is_one_cause() -> None:
    def job(slow: int) -> hg.DependencyGraph:
        fast = [step(1, 0, 300), op("embed", 0, 100), op("mlp", 100, 200)]
        return load(
            {0: fast, 1: [step(1, 0, 300 + 2 * slow), op("embed", 0, 100 + slow), op("mlp", 100 + slow, 200 + slow)]}
        )

    assert "per step on rank 1, which makes the step 400" in lines_of(job(0), job(200))[1]


def test_work_that_changes_beside_longer_work_is_named_where_the_step_does_not_change() -> None:
    def job(aside: int) -> hg.DependencyGraph:
        return load([step(1, 0, 1000), op("main", 0, 1000), op("aside", 0, aside, tid=77)])

    lines = lines_of(job(800), job(400))
    assert "as long as before" in lines[0]
    assert (
        lines[1]
        == "aside takes 400.0 µs less own time per rank and step, which does not show in how long the step takes."
    )


def test_computation_that_is_no_longer_hidden_is_not_called_more_work() -> None:
    def job(transfer: int) -> hg.DependencyGraph:
        return load([
            step(1, 0, 20), launch(0, 2, 1), launch(5, 2, 2), kernel(COMPUTE, 10, 500, 1),
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8, transfer, 2, stream=20),
        ])  # fmt: skip

    line = next(line for line in lines_of(job(900), job(100)) if "On the critical path" in line)
    assert "(not more work, but more of it on the path)" in line
    line = next(line for line in lines_of(job(100), job(900)) if "On the critical path" in line)
    assert "(not less work, but less of it on the path)" in line


def test_host_code_that_took_longer_is_more_work_where_the_loader_took_less() -> None:
    def job(loader: int, forward: int) -> hg.DependencyGraph:
        fetch = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, loader)
        return load([step(1, 0, loader + forward), fetch, op("forward", loader, forward)])

    line = next(line for line in lines_of(job(500, 100), job(10, 800)) if "On the critical path" in line)
    assert "the data loader -490.0 µs" in line
    assert "hidden" not in line


def beside_a_kernel(lasts: int, first: int, second: int) -> hg.DependencyGraph:
    host = [step(1, 0, 10 + first + second), op("embed", 10, first), op("mlp", 10 + first, second)]
    return load([*host, launch(0, 2, 1), kernel(COMPUTE, 10, lasts, 1)])


def test_two_causes_of_one_effect_are_counted_once() -> None:
    lines = lines_of(beside_a_kernel(700, 500, 400), beside_a_kernel(700, 200, 50))
    assert "mlp takes 350.0 µs less own time per rank and step, which makes the step 200.0 µs shorter (the" in lines[1]
    assert lines[2].endswith(
        "which alone would make the step 200.0 µs shorter (the whole change), but adds nothing to the above."
    )
    assert "made up" not in "".join(lines)


def test_a_sentence_states_the_effect_that_the_table_states() -> None:
    before = beside_a_kernel(650, 500, 400)
    assert "which makes the step 250" in lines_of(before, beside_a_kernel(650, 200, 50))[1]
    change = hg.diff(before, beside_a_kernel(650, 300, 300))
    table = change.causes().set_index("name")["effect_us"]
    assert table.round(1).to_dict()["mlp"] == -100
    assert (
        "mlp takes 100.0 µs less own time per rank and step, which makes the step 100.0 µs shorter, or 50"
        in (diff_sentences(change)[2])
    )


def test_what_makes_up_for_a_cause_is_named() -> None:
    lines = lines_of(in_a_row(400, 200), in_a_row(100, 300))
    assert "(" not in lines[1].partition("which makes")[2]
    assert lines[2] == ("Alone, that would be 300.0 µs shorter; 100.0 µs of this is made up for by mlp.")


def test_the_own_time_of_a_step_is_python_between_operators() -> None:
    def job(pause: int) -> hg.DependencyGraph:
        return load([step(1, 0, 100 + pause), op("embed", 0, 50), op("mlp", 50 + pause, 50)])

    assert lines_of(job(400), job(100))[1] == (
        "Python between operators takes 300.0 µs less own time per rank and step, which makes the step 300.0 µs "
        "shorter (the whole change)."
    )


def test_operators_of_one_job_are_gone_or_new() -> None:
    (line,) = lines_of(in_a_row(400, 200, 90), in_a_row(400))[1:2]
    assert line.startswith("mlp and norm (290.0 µs own time per rank and step) are gone, which makes the step 290.0 µs")
    (line,) = lines_of(in_a_row(400), in_a_row(400, 200))[1:2]
    assert line.startswith("mlp (200.0 µs own time per rank and step) is new, which makes the step 200.0 µs longer")


def test_a_new_call_is_told_with_all_inside_it_and_what_is_inside_not_again() -> None:
    parts = [op(f"part {i}", 1005 + 60 * (i > 0) + 20 * i, 80 if i == 0 else 20) for i in range(30)]
    same = [op("main", 0, 1000), *(op(f"same {i}", 20 * i, 20) for i in range(40))]
    after = load([step(1, 0, 1670), *same, op("outer", 1000, 670), *parts])
    lines = diff_sentences(hg.diff(load([step(1, 0, 1000), *same]), after))
    assert lines[1] == (
        "outer (with all inside, 670.0 µs of work per rank and step) is new, which makes the step 670.0 µs longer "
        "(the whole change)."
    )
    assert not any("part" in line for line in lines[1:])


def test_the_rest_of_a_change_that_named_causes_leave_is_told() -> None:
    def job(each: int, large: int) -> hg.DependencyGraph:
        events = [op("large", 0, large), *(op(f"part {i}", large + i * each, each) for i in range(30))]
        return load([step(1, 0, large + 30 * each), *events])

    lines = lines_of(job(10, 100), job(20, 200))
    assert lines[1].endswith("makes the step 100.0 µs longer (25 % of the change).")
    assert lines[2] == (
        "Beyond that, all other changes of work together make the step 300.0 µs longer (75 % of the change)."
    )


def test_a_kernel_with_another_signature_is_not_called_replaced() -> None:
    def job(first: str, second: str) -> hg.DependencyGraph:
        return load([
            step(1, 0, 90), op("op", 0, 40), launch(1, 2, 1), kernel(first, 5, 30, 1),
            op("other", 50, 30), launch(51, 2, 2), kernel(second, 55, 20, 2),
        ])  # fmt: skip

    lines = lines_of(job("add<float>", "ampere_gemm_64"), job("add<half>", "volta_gemm_64"))
    assert [line for line in lines if "replaced" in line] == [
        "1 kernel replaced: volta_gemm_64 instead of ampere_gemm_64."
    ]


def test_python_functions_recorded_in_one_job_only_are_a_reason_for_its_slower_host() -> None:
    plain, stacks = [op("aten::mm", 0, 50)], [op("aten::mm", 5, 50), complete("python_function", "a.py(1): f", 0, 60)]
    lines = lines_of(load(stacks), load(plain))
    assert any("Python functions were recorded in the job before only" in line for line in lines)
    assert not any("Python functions" in line for line in lines_of(load(plain), load(plain)))


def test_the_largest_change_is_named() -> None:
    table = pd.DataFrame({"name": ["a", "b<int>"], "change": ["more", "same"], "change_per_step_us": [3.0, -20.0]})
    assert compare_sentences(table, ["x", "y"]) == [
        "2 names occur per rank and step: 1 more often and 1 as often as before.",
        "b takes 20.0 µs less per rank and step, with what lies in it.",
        "To see why steps take another time: htagraph diff x y",
    ]
    assert compare_sentences(table.iloc[:0], ["x", "y"]) == ["Neither job has an activity."]


def test_what_is_gone_and_what_is_new_instead_are_one_cause() -> None:
    before, after = (
        load([step(1, 0, 90 + us), op("embed", 0, 90), op(name, 90, us)]) for name, us in (("a", 900), ("b", 400))
    )
    assert lines_of(before, after)[1].startswith(
        "a (900.0 µs own time per rank and step) is gone and b (400.0 µs own time per rank and step) is new, which"
    )


def in_steps(*steps: list[Json]) -> hg.DependencyGraph:
    """Return steps, given what is in each, from 0 on."""
    events, at = list[Json](), 0
    for i, some in enumerate(steps):
        length = max(each["ts"] + each["dur"] for each in some)
        events += [step(i + 1, at, length), *(each | {"ts": each["ts"] + at} for each in some)]
        at += length
    return load(events)


def test_a_pause_in_one_step_is_no_cause() -> None:
    def job(mm: int, pause: int) -> hg.DependencyGraph:
        each = [(mm + 7 * i - pause * (i == 5), 40 + pause * (i == 5)) for i in range(10)]
        return in_steps(*([op("mm", 0, one), op("add", one, other)] for one, other in each))

    lines = lines_of(job(20_000, 4_000), job(10_000, 0))
    assert lines[1].startswith("mm takes 9.50 ms less")
    assert not any("add" in line for line in lines)


def test_a_region_that_runs_less_often_is_named() -> None:
    def job(times: int) -> hg.DependencyGraph:
        each = [made("draft", 100 * i, 100) for i in range(times) for made in (annotation, op)]
        return in_steps(*[each] * 6)

    line = "Per rank and step, draft takes 200.0 µs less with all inside (4 calls instead of 6)."
    assert line in lines_of(job(6), job(4))


def test_time_between_operators_beside_communication_may_be_a_wait_and_is_no_work() -> None:
    def job(pause: int, *, is_met: bool) -> hg.DependencyGraph:
        meets = [op("gloo:all_reduce", 100, pause, tid=77)] if is_met else []
        return in_steps(*[[op("mm", 0, 100), *meets, op("mm", 100 + pause, 100)]] * 6)

    for is_met in (False, True):
        lines = lines_of(*(job(pause, is_met=is_met) for pause in (90, 10)))
        assert any("Python between operators takes 80" in line for line in lines) != is_met


def test_the_largest_change_is_named_with_the_region_that_alone_has_it() -> None:
    """Products in `evaluate` become shorter, each in another way; those of the steps stay as they are."""
    diff = hg.diff(evaluating(4_000), evaluating(1_000))
    assert " in evaluate" in in_region("aten::mm", diff)
    assert in_region("aten::add", diff) == ""


def evaluating(us: int) -> DependencyGraph:
    events: list[Json] = []
    for number in range(6):
        begin = 20_000 * number
        events += [step(number, begin, 20_000), op("aten::mm", begin + 100, 5_000), op("aten::add", begin + 6_000, 50)]
        events += [annotation("evaluate", begin + 10_000, 6_000), op("aten::mm", begin + 10_500, us)]
    return load(events)
