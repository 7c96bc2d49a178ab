"""Whether patterns chooses what repeats and takes time, and whether its figures are those of the raw events."""

from __future__ import annotations

from collections import Counter

import htagraph as hg
from htagraph.core.naming import LINEAR
from htagraph.output.reports.patterns import patterns_report, repeating_operator
from tests.analyses.test_kernel_patterns import linear
from tests.reach import DATA, graph_of, raw_events
from tests.strategies import kernel, launch, load, op, step


def raw_sequences(name: str) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]:
    """Return how often each sequence of kernels follows from an event of this name, and how long it ran, µs."""
    counts: Counter[tuple[str, ...]] = Counter()
    times: Counter[tuple[str, ...]] = Counter()
    for file in sorted((DATA / "demo").glob("*.gz")):
        events = [event for event in raw_events(file) if event.get("ph") == "X"]
        launched = {event["args"]["correlation"]: event for event in events if event.get("cat") == "cuda_runtime"}
        works = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        for outer in (event for event in events if event["name"] == name):
            inside = [
                work for work in works
                if (call := launched.get(work["args"]["correlation"])) and call["tid"] == outer["tid"]
                and outer["ts"] <= call["ts"] < outer["ts"] + outer["dur"]
            ]  # fmt: skip
            sequence = tuple(work["name"] for work in sorted(inside, key=lambda work: work["ts"]))
            counts[sequence] += 1
            times[sequence] += sum(work["dur"] for work in inside)
    return counts, times


def test_the_answer_on_the_demo_is_what_the_raw_events_say() -> None:
    graph = graph_of(DATA / "demo")
    name = repeating_operator(graph)
    counts, times = raw_sequences(name)
    (sequence, most), *_ = sorted(times.items(), key=lambda item: -item[1])
    whole = sum(
        event["dur"] for file in (DATA / "demo").glob("*.gz") for event in raw_events(file)
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )  # fmt: skip
    assert patterns_report(graph, ["x"]).sentences[0] == (
        f"{name} launched the same {len(sequence)} kernels {counts[sequence]} times over 4 ranks: "
        f"{most / counts[sequence]:.1f} µs each, {most / 1000:.1f} ms in all "
        f"({100 * most / whole:.0f} % of device time)."
    )


def test_what_was_asked_for_comes_before_what_repeats() -> None:
    table = patterns_report(graph_of(DATA / "demo"), ["x"], operator="aten::addmm", min_length=1).tables["patterns"]
    assert set(table["operator"]) == {"aten::addmm"}


def test_where_nothing_repeats_that_is_said_unless_a_linear_layer_ran() -> None:
    assert patterns_report(graph_of(DATA / "gloo_ddp"), ["x"]).sentences[0] == (
        "Nothing ran on a device, so no kernels repeat."
    )
    each = load([launch(0, 2, 1), kernel("a", 5, 5, 1)])
    assert (
        patterns_report(each, ["x"])
        .sentences[0]
        .startswith(
            "No operator, annotation or function launched the same 3 kernels or more twice. To see which kernels"
        )
    )
    assert repeating_operator(load([])) == LINEAR
    once = load(linear(0, 1, "a", "b", "c"))
    assert patterns_report(once, ["x"]).sentences[0].startswith("aten::linear launched the same 3 kernels 1 time: ")
    assert hg.kernel_patterns(once)["count"].tolist() == [1]


def test_a_reader_sees_each_sequence_once_with_the_sums_over_ranks() -> None:
    report = patterns_report(graph_of(DATA / "demo"), ["x"], operator="aten::addmm", min_length=1)
    shown = (report.brief or {})["patterns"]
    table = report.tables["patterns"]
    sums = table.groupby("pattern")[["count", "kernel_us"]].sum()
    assert len(shown) == len(sums)
    assert shown["count"].sum() == sums["count"].sum()
    assert abs(shown["kernel_us"].sum() - sums["kernel_us"].sum()) < 1e-6


def test_time_that_is_mostly_communication_is_said_to_hold_waits() -> None:
    graph = graph_of(DATA / "demo")
    said = patterns_report(graph, ["demo"], operator="c10d", min_length=1).sentences
    assert "100 % of it is communication, with its waits for other ranks: htagraph collectives demo" in said
    computing = patterns_report(graph, ["demo"]).sentences
    assert not [sentence for sentence in computing if "communication" in sentence]


def test_what_holds_a_step_does_not_hide_what_repeats_inside() -> None:
    """A train step that launches every kernel of its step repeats as the steps do; its layers say more."""
    events = []
    for number in range(3):
        at = 10_000 * number
        events += [step(number, at, 9_000), op("train_step", at + 1, 8_000)]
        for layer in range(3):
            begin = at + 100 + 1_000 * layer
            events.append(op("layer", begin, 500))
            for each in range(3):
                correlation = 100 * number + 10 * layer + each + 1
                events += [
                    launch(begin + 10 * each, 2, correlation),
                    kernel("abc"[each], begin + 10 * each + 5, 4, correlation),
                ]
    graph = load(events)
    assert repeating_operator(graph) == "layer"
    assert (
        patterns_report(graph, ["x"]).sentences[0].startswith("layer launched the same 3 kernels 9 times: 12.0 µs each")
    )
