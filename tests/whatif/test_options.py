"""The words of what-if: read, written, refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.graph.selection import Criteria
from htagraph.whatif.options import (
    CHANGES,
    KEYS,
    Change,
    amount,
    bandwidth,
    criteria,
    criteria_text,
    duration_ns,
    numbers,
    read_sweep,
)
from htagraph.whatif.scenario import Scenario
from tests.reach import DATA, graph_of

LABELS = [kind.label for kind in ActivityKind]
ODD = st.sampled_from(['",', ",name=", ":", '"', '""', ",rank=1", "*", "at::native::x<4, 2>", "=", ",", "a b", "\n"])
TEXTS = st.lists(ODD | st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), max_size=5).map("".join)
SEVERAL = st.integers(0, 10**8) | st.lists(st.integers(0, 10**8), min_size=2, max_size=4)
CRITERIA = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(LABELS) | st.lists(st.sampled_from(LABELS), min_size=2, max_size=3),
        "name": TEXTS,
        "op": TEXTS,
        "rank": SEVERAL,
        "stream": SEVERAL,
        "step": SEVERAL,
        "depth": SEVERAL,
        "activity": SEVERAL,
        "step_index": st.integers(-9, 9) | st.lists(st.integers(-9, 9), min_size=2, max_size=4),
        "category": TEXTS,
        "regex": TEXTS,
        "min_us": st.floats(0, 1e6).map(lambda us: round(us, 3)),
        "max_us": st.floats(0, 1e6).map(lambda us: round(us, 3)),
        "time": st.tuples(st.integers(0, 10**6).map(float), st.integers(0, 10**6).map(float)),
    },
).filter(len)


@pytest.mark.slow
@given(CRITERIA)
def test_criteria_that_are_written_are_read_as_they_were(wanted: dict[str, Any]) -> None:
    assert criteria(criteria_text(wanted)) == wanted


@given(CRITERIA, st.floats(0, 1e6))
def test_the_factor_is_behind_the_last_colon_whatever_the_names_hold(wanted: dict[str, Any], factor: float) -> None:
    change = CHANGES["scale"].read(f"{criteria_text(wanted)}:{factor!r}")
    assert change == Change("scale", {"factor": factor, **wanted})


@pytest.mark.slow
@pytest.mark.parametrize("option", CHANGES)
@given(st.text(max_size=20) | CRITERIA.map(criteria_text))
@settings(max_examples=60)
def test_any_text_is_a_change_or_a_clear_refusal(option: str, text: str) -> None:
    try:
        change = CHANGES[option].read(text)
    except ValueError as error:
        assert "could not convert" not in str(error)
        assert str(error)
    else:
        assert callable(getattr(Scenario, change.method))


READ = [
    ("scale", "name=void at::f<4, int>(int, int):0.5", "scale",
     {"factor": 0.5, "name": "void at::f<4, int>(int, int)"}),
    ("scale", 'op="a,rank=1",rank=2:2', "scale", {"factor": 2.0, "op": "a,rank=1", "rank": 2}),
    ("scale", "kind=computation,memory,step=4-6:0", "scale",
     {"factor": 0.0, "kind": ["computation", "memory"], "step": [4, 5, 6]}),
    ("set", "name=at::mm:12us", "set_duration", {"ns": 12_000.0, "name": "at::mm"}),
    ("remove", "op=a::b", "remove", {"op": "a::b"}),
    ("network", "0.5", "scale_network", {"factor": 0.5}),
    ("network", "2x", "scale_network", {"factor": 0.5}),
    ("network", "latency=10us,bandwidth=100GB/s", "network", {"latency_us": 10.0, "bandwidth_gb_s": 100.0}),
    ("network", "bandwidth=400Gbit/s", "network", {"bandwidth_gb_s": 50.0}),
    ("fix-straggler", "auto", "fix_straggler", {"rank": "auto"}),
    ("fix-straggler", "3", "fix_straggler", {"rank": 3}),
    ("no-launch-overhead", "", "no_launch_overhead", {}),
    ("no-launch-overhead", "rank=1", "no_launch_overhead", {"rank": 1}),
    ("infinite-host", "", "infinite_host", {}),
    ("no-interruptions", "", "no_interruptions", {}),
    ("infinite-gpu", "", "infinite_gpu", {}),
    ("cuda-graph", "step=5-6,rank=0", "cuda_graph", {"step": [5, 6], "rank": 0}),
    ("inject", "rank=2:1.3", "inject", {"factor": 1.3, "rank": 2}),
    ("inject", "rank=2,kind=loader:2", "inject", {"factor": 2.0, "rank": 2, "kind": "loader"}),
    ("jitter", "0.05:100", "jitter", {"sigma": 0.05, "runs": 100}),
    ("jitter", "0.05", "jitter", {"sigma": 0.05}),
    ("free-dataloader", "", "free_dataloader", {}),
    ("free-outside", "", "free_outside", {}),
    ("exclusive-device", "", "exclusive_device", {}),
    ("pin-memory", "", "pin_memory", {}),
    ("remove-sync", "name=*Sync*", "remove_sync", {"name": "*Sync*"}),
    ("perfect-overlap", "", "perfect_overlap", {"group": None}),
    ("no-overlap", "dp*", "no_overlap", {"group": "dp*"}),
    ("shared-link", "off", "shared_link", {"on": False}),
    ("fuse", "name=a", "fuse", {"name": "a"}),
    ("move-to-stream", "name=a::b:20", "move_to_stream", {"name": "a::b", "stream": 20}),
    ("device", "H100 SXM", "device", {"name": "H100 SXM", "recorded": ""}),
    ("device", "L4,recorded=A100 80GB", "device", {"name": "L4", "recorded": "A100 80GB"}),
    ("host-factor", "0.8", "host_factor", {"factor": 0.8}),
    ("scale-ranks", "64", "scale_ranks", {"n": 64}),
    ("scale-ranks", "64,groups=*dp*,strong", "scale_ranks", {"n": 64, "groups": "*dp*", "strong": True}),
    ("scale-ranks", "data=8, pipeline=4,strong=off", "scale_ranks", {"data": 8, "pipeline": 4, "strong": False}),
    ("scale-ranks", "8,bandwidth_gb_s=2.5", "scale_ranks", {"n": 8, "bandwidth_gb_s": 2.5}),
    ("batch", "32:128", "batch", {"recorded": 32, "new": 128}),
]  # fmt: skip


@pytest.mark.parametrize(("option", "text", "method", "options"), READ)
def test_a_change_is_read(option: str, text: str, method: str, options: dict[str, Any]) -> None:
    assert CHANGES[option].read(text) == Change(method, options)


def test_every_change_has_an_example_here() -> None:
    assert {option for option, *_ in READ} == set(CHANGES)


@dataclass
class Called:
    """Stands in for a scenario: remembers what was called."""

    calls: list[tuple[str, dict[str, Any]]]

    def __getattr__(self, name: str) -> Any:
        return lambda **options: Called([*self.calls, (name, options)])


def test_a_change_is_applied_by_the_method_of_its_name() -> None:
    scenario: Any = Called([])
    for text in ("0.5", "latency=1us"):
        scenario = CHANGES["network"].read(text).apply(scenario)
    assert scenario.calls == [("scale_network", {"factor": 0.5}), ("network", {"latency_us": 1.0})]


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("scale", "name=a", "lacks :FACTOR"),
        ("scale", "op=aten::mm", "has no factor: write op=aten::mm:0.5 for half the time"),
        ("scale", "name=a:fast", "a factor such as 0.5"),
        ("scale", ":0.5", "no criterion"),
        ("scale", "nmae=a:0.5", "'nmae' is no criterion"),
        ("scale", "name=a,rnk=2:0.5", "'rnk' is no criterion"),
        ("scale", "name=a,name=b:0.5", "given twice"),
        ("scale", "name=:0.5", "nothing after name="),
        ("scale", 'rank="":0.5', "is not a list of numbers"),
        ("scale", "rank=one:0.5", "is not a list of numbers"),
        ("set", "name=a:12", "a duration such as"),
        ("set", "name=a:-12us", "a duration such as"),
        ("network", "fast", "latency"),
        ("network", "speed=3", "neither latency nor bandwidth"),
        ("network", "bandwidth=100", "a bandwidth such as"),
        ("fix-straggler", "slowest", "auto"),
        ("cuda-graph", "rank=1", "step=N"),
        ("inject", "rank=1,2:1.3", "the one rank"),
        ("inject", "kind=host:1.3", "the one rank"),
        ("jitter", "0.05:many", "number of runs"),
        ("move-to-stream", "name=a:x", "number of a stream"),
        ("move-to-stream", "name=a,stream=7:20", "stream= cannot"),
        ("scale-ranks", "-4", "number of ranks"),
    ],
)
def test_what_cannot_be_read_says_why(option: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CHANGES[option].read(text)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("300ns", 300), ("12us", 12_000), ("12 µs", 12_000), (".5ms", 500_000), ("2s", 2e9), ("1e3us", 1e6)],
)
def test_durations_have_units(text: str, ns: float) -> None:
    assert duration_ns(text) == pytest.approx(ns)


@pytest.mark.parametrize(
    ("text", "gb"), [("100GB/s", 100), ("800Gb/s", 100), ("800Gbit/s", 100), ("1.5TB/s", 1500), ("250MB/s", 0.25)]
)
def test_bandwidths_are_of_bytes_or_bits(text: str, gb: float) -> None:
    assert bandwidth(text) == pytest.approx(gb)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 20)), min_size=1, max_size=5))
def test_numbers_and_ranges_are_read(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(str(first) if not more else f"{first}-{first + more}" for first, more in ranges)
    assert numbers(text) == [number for first, more in ranges for number in range(first, first + more + 1)]


def test_the_keys_are_those_of_select_and_two_more() -> None:
    assert set(KEYS) == {*get_type_hints(Criteria), "after", "before"}


@pytest.mark.parametrize(
    ("text", "why"),
    [("many", "number of ranks"), ("8,9", "'9' is none of data"), ("data=x", "data= and a number"),
     ("8,strong=perhaps", "neither on nor off"), ("8,groups", "'groups' is none of"), ("expert=4", "is none of data")],
)  # fmt: skip
def test_sizes_that_no_layout_has_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        CHANGES["scale-ranks"].read(text)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("step_index=-1", {"step_index": -1}), ("step_index=0,-1", {"step_index": [0, -1]}),
        ("step_index=0-2", {"step_index": [0, 1, 2]}), ("min_us=10", {"min_us": 10.0}),
        ("max_us=1.5ms", {"max_us": 1500.0}),
        ("time=1ms..2500", {"time": (1000.0, 2500.0)}), ("regex=^a.*$,depth=0", {"regex": "^a.*$", "depth": 0}),
    ],
)  # fmt: skip
def test_what_is_no_name_has_its_own_form(text: str, given: dict[str, Any]) -> None:
    assert criteria(text) == given


@pytest.mark.parametrize("text", ["time=1ms", "time=a..b", "min_us=x", "step_index=a", "depth=-1", "size=3"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is n|choose from"):
        criteria(text)


def test_a_selection_takes_them_all() -> None:
    graph = graph_of(DATA / "demo")
    wanted = criteria("kind=kernel,category=kernel,regex=gemm,min_us=100,step_index=-1,time=0..1s,depth=0-9")
    chosen = graph.select(**wanted)
    assert 0 < len(chosen.activities) < len(graph.select(kind="kernel").activities)
    assert hg.what_if(graph).scale(factor=0.5, **wanted).run().speedup > 1


def test_an_amount_needs_its_unit() -> None:
    with pytest.raises(ValueError, match="a time"):
        amount("5", {"s": 1.0}, "a time")


@pytest.mark.parametrize(
    ("text", "what", "factors"),
    [
        ("network=0.25..2", "network", (0.25, 0.3536, 0.5, 0.7071, 1.0, 1.414, 2.0)),
        ("network=1..2:2", "network", (1.0, 2.0)), ("name=*a=b*=1,0.5", "name=*a=b*", (1.0, 0.5)),
        ("kind=computation=0..1", "kind=computation", (0.0, 0.25, 0.5, 0.75, 1.0)),
    ],
)  # fmt: skip
def test_ranges_have_points_at_equal_ratios_and_lists_are_lists(
    text: str, what: str, factors: tuple[float, ...]
) -> None:
    assert (read_sweep(text).what, read_sweep(text).factors) == (what, factors)


@pytest.mark.parametrize(
    "text",
    ["", "network", "network=", "=1..2", "network=2..1", "network=1..1", "network=-1..1", "network=a..b", "network=nan",
     "network=1..inf", "size=1..2", "network=0..1:1", "network=1..2:5000"],
)  # fmt: skip
def test_what_is_no_sweep_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no sweep|no criterion"):
        read_sweep(text)


def test_it_is_the_change_of_its_name() -> None:
    job = hg.what_if(graph_of(DATA / "demo"))
    assert (
        read_sweep("network=1,2").apply(job, 0.5).run().makespan_ns == job.scale_network(factor=0.5).run().makespan_ns
    )
    halved = read_sweep("kind=computation=1,2").apply(job, 0.5).run()
    assert halved.makespan_ns == job.scale(factor=0.5, kind="computation").run().makespan_ns
