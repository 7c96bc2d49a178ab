"""Code without a known way says how often it runs, and in what."""

from __future__ import annotations

from htagraph.findings.changes import changes_of
from htagraph.findings.head import RecordingExtent, head_of
from htagraph.findings.next_change import next_change_of
from htagraph.findings.results import Results
from htagraph.findings.whereabouts import whereabouts
from tests.strategies import Json, annotation, complete, kernel, launch, load, op, step

_HALF = ("--scale", "op=aten::mm:0.5")


def stepping(*, frames: bool = False) -> list[Json]:
    """Return five steps with three products each, two of them in a region."""
    events: list[Json] = []
    for number in range(5):
        begin = 1000 * number
        events += [step(number, begin, 1000), annotation("encoder", begin + 10, 700)]
        events += [op("aten::linear", begin + 20 + 300 * at, 250) for at in range(2)]
        events += [op("aten::mm", begin + 30 + 300 * at, 200) for at in range(2)]
        events.append(op("aten::mm", begin + 750, 100))
        if frames:
            events.append(complete("python_function", "model.py(7): encode", begin + 12, 690))
            events.append(complete("python_function", "torch/nn/functional.py(9): linear", begin + 18, 260))
    return events


def test_it_says_how_often_per_step_and_in_which_region() -> None:
    results = Results(load(stepping()))
    assert whereabouts(results, _HALF) == "it runs 3 times per step, mostly in encoder"


def test_a_function_of_the_user_comes_before_regions_and_libraries() -> None:
    results = Results(load(stepping(frames=True)))
    assert whereabouts(results, _HALF) == "it runs 3 times per step, mostly in model.py(7): encode"


def test_a_kernel_is_in_the_operator_that_launches_it() -> None:
    events = [op("aten::mm", 0, 20), launch(5, 5, 1), kernel("some_kernel", 30, 500, 1)]
    options = ("--scale", "name=some_kernel,kind=computation:0.5")
    assert whereabouts(Results(load(events)), options) == "it runs once, in aten::mm"


def test_counts_that_differ_between_steps_are_a_range() -> None:
    events = stepping()
    events += [op("aten::mm", 1000 * number + 860, 100) for number in (1, 3)]
    assert whereabouts(Results(load(events)), _HALF) == "it runs 3 to 4 times per step, mostly in encoder"


def test_changes_of_other_kinds_have_no_place() -> None:
    results = Results(load(stepping()))
    assert not whereabouts(results, ("--fix-straggler", "auto"))
    assert not whereabouts(results, (*_HALF, *_HALF))


def test_what_to_do_first_and_next_say_where() -> None:
    events = []
    for number in range(1, 9):
        begin = 1000 * number
        events += [op("aten::linear", begin, 600), op("aten::mm", begin + 5, 590), op("aten::sort", begin + 700, 200)]
    results = Results(load(events))
    found = changes_of(results)
    assert found.first is not None
    assert found.first.text == (
        "No change with a known way was found. 60 % of the critical path is in operator aten::mm: it runs 8 times, "
        "mostly in aten::linear."
    )
    following = next_change_of(results, found)
    assert following is not None
    assert following.row.where == "it runs 8 times"
    head = head_of([], found.rows, RecordingExtent("1 rank.", "1 rank."), following)
    assert head.then == "20 % of the critical path is in operator aten::sort: it runs 8 times."
