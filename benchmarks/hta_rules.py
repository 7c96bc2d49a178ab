"""What explains a difference from HTA: which of its defects (numbers of HTA.md, section 3), and how that is tested.

Three kinds of explanations, none of which is taken on trust:

* HTA raised: `CRASHES` says which crash it is, if the traces have what brings it about.
* A cure: HTA is run again without the defect (hta_cures.py), and then says what we say. `CURES` lists which defects
  can touch which method.
* `RULES`: for one method, a test of the two results themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from hta_compare import equal
from hta_facts import Facts

Value: TypeAlias = Any
Rule: TypeAlias = Callable[[Value, Value, Facts], str | None]

CRASHES: Sequence[tuple[str, str, str, Callable[[Facts], bool]]] = (
    ("temporal", "IndexError", "C3: no device events", lambda facts: not facts.device_events),
    ("idle", "ValueError: No objects", "C3: no device events", lambda facts: not facts.device_events),
    ("temporal", "AssertionError", "D2: negative durations", lambda facts: facts.fractions),
    ("aten", "KeyError: 'thread_id'", "C5: no launch that it knows in an operator", lambda facts: True),
    ("aten", "ValueError: can only convert", "C5: a launch without work or with several",
     lambda facts: bool(facts.launches_without_work or facts.launches_of_many or facts.steps)),
    ("potential_stragglers", "ValueError", "C6: no ncclKernel in a step", lambda facts: True),
    ("potential_stragglers", "IndexError", "C6: more candidates than ranks", lambda facts: facts.ranks < 2),
    ("critical_path", "AssertionError: Queue length", "C2: no launches with work", lambda facts: True),
    ("critical_path", "AssertionError", "C2: an event without a launch in the window", lambda facts: True),
    ("critical_path", "UndefinedVariableError: name 'nan'", "C2: no such step", lambda facts: len(facts.steps) <= 2),
    ("frequent", "ValueError: Unexpected case", "C1: negative durations", lambda facts: facts.fractions),
    ("frequent", "TypeError: bad operand type for abs()", "C12: the id of a thread is a text", lambda facts: True),
    ("gpu_kernels_with", "ValueError: left side", "C1: negative durations", lambda facts: facts.fractions),
    ("", "AttributeError: 'list' object", "C10: the file is a list of events", lambda facts: facts.bare_list),
    ("", "TypeError: Invalid value", "C11: positions do not fit the correlations' int8", lambda facts: True),
)  # fmt: skip
"""Method's beginning, error's beginning, what it is, and what the traces must have."""

CURES: Mapping[str, Sequence[str]] = {
    "temporal_breakdown": ("D2", "D5", "D10"),
    "idle_time_breakdown": ("D2", "D13", "D19"),
    "gpu_kernel_breakdown": ("D2", "D4", "D5", "D10"),
    "gpu_user_annotation_breakdown": ("D2", "D4"),
    "gpu_kernels_with_user_annotations": ("D1", "D2"),
    "comm_comp_overlap": ("D2", "D5", "D10"),
    "cuda_kernel_launch_stats": ("D2", "D5", "D8", "D9"),
    "queue_length": ("D24", "D2", "D5", "D8", "D19"),
    "time_spent_blocked": ("D24", "D2", "D5", "D6", "D8", "D19"),
    "memory_bw": ("D2", "D5", "D10", "D19"),
    "trace_with_counters": ("D24", "D2", "D5", "D8", "D10", "D19"),
    "potential_stragglers": ("D2", "D9"),
    "cupti": ("D2",),
    "critical_path": ("D2", "D9"),
    "aten": ("D2", "D5", "D7"),
    "frequent": ("D2", "D5", "D19"),
    "compare_traces": ("D2", "D5", "D9"),
    "ops_diff": ("D2", "D5", "D9"),
    "profiler_steps": (),
}
"""Which cures can change a method's result, by the beginning of its name."""


def crash(method: str, error: str, facts: Facts) -> str | None:
    """Return which of HTA's crashes an error is."""
    for start, text, what, can in CRASHES:
        if method.startswith(start) and error.startswith(text) and can(facts):
            return what
    return None


def cures(method: str, facts: Facts) -> list[str]:
    """Return the cures that can change a method's result on such traces."""
    mine = next((cures for start, cures in CURES.items() if method.startswith(start)), ())
    return [cure for cure in mine if cure in facts.can_show()]


def only_unlisted_launches_are_new(hta: Value, ours: Value, facts: Facts) -> str | None:
    """D8: the rows of the launches that HTA knows are HTA's, and the others are of launches that it does not know."""
    for rank, mine in ours.items():
        unlisted = mine["correlation"].isin(facts.unlisted)
        theirs = hta[rank][~hta[rank]["correlation"].isin(facts.unlisted)]
        if not equal(theirs.reset_index(drop=True), mine[~unlisted].reset_index(drop=True), 0.0051):
            return None
    return "D8: the launches that it knows are equal"


def only_columns_of_the_call_graph(hta: Value, ours: Value, _facts: Facts) -> str | None:
    """D22: HTA's call graph writes its columns into the trace's frame, and from there they come into results."""
    if len(hta) != len(ours) or not hta:
        return None
    for theirs, mine in zip(hta, ours, strict=True):
        more = [name for name in theirs.columns if name not in mine.columns]
        if not set(more) <= set(_OF_CALL_GRAPH) or not equal(theirs.drop(columns=more), mine):
            return None
    return f"D22: without the call graph's columns ({', '.join(_OF_CALL_GRAPH)})"


def same_nodes_other_dependencies(hta: Value, ours: Value, _facts: Facts) -> str | None:
    """D11, D12, L1: HTA's graph lacks dependencies, and its path is the longest in that graph.

    The nodes are the same and so are the weights of the edges that both have, but for calls that block; the path is
    the heaviest in either's graph.
    """
    if not hta or not ours or not equal(hta["nodes"], ours["nodes"], 0.0051):
        return None
    both = hta["edges"].merge(ours["edges"], on=["begin", "end"], suffixes=("_hta", "_ours"))
    blocking = set(hta["nodes"].loc[hta["nodes"]["is_blocking"], "idx"])
    free = ~both["end"].isin(blocking) & (both["type_hta"] == both["type_ours"])
    if not ((both["weight_hta"] - both["weight_ours"]).abs()[free] < 0.0051).all():
        return None
    mine, theirs = (len(each["edges"]) - len(both) for each in (ours, hta))
    weights = f"a path of {ours['critical_weight']:.0f} µs for one of {hta['critical_weight']:.0f} µs"
    return f"D11, D12, L1: equal nodes, {len(both)} common edges of equal weight, {mine} more of ours, " + (
        f"{theirs} of HTA's; {weights}"
    )


def long_patterns_are_abbreviated(hta: Value, ours: Value, _facts: Facts) -> str | None:
    """P3: HTA writes a pattern of 130,000 letters to each of its events; we write its beginning and its length."""
    if not equal(hta["table"], ours["table"], 0.0051) or len(hta["overlaid"]) != len(ours["overlaid"]):
        return None
    for (_, theirs, patterns), (_, mine, short) in zip(hta["overlaid"], ours["overlaid"], strict=True):
        same = theirs == mine and list(patterns.values()) == list(short.values())
        if not same or not all(
            one == other or one.startswith(other.split("…")[0].rstrip())
            for one, other in zip(patterns, short, strict=True)
        ):
            return None
    return "P3: the same table and events, long patterns abbreviated in the file"


def outermost_operators_count(hta: Value, ours: Value, _facts: Facts) -> str | None:
    """D25: HTA counts the operators at the least depth of all; of each of its patterns we have as many or more."""
    theirs, mine = (each["table"].set_index("pattern")["count"] for each in (hta, ours))
    if len(mine) and set(theirs.index) <= set(mine.index) and (mine.reindex(theirs.index) >= theirs).all():
        return f"D25: {mine.sum()} operators at any depth for {theirs.sum()} at the least one"
    return None


def counters_have_texts_as_ids(hta: Value, ours: Value, _facts: Facts) -> str | None:
    """HTA numbers the counters of its streams; Perfetto takes numbers for one counter, texts for several."""
    texts = {
        name: [{**event, "id": str(event["id"])} if "id" in event else event for event in events]
        for name, events in hta.items()
    }
    return "ids of counters are texts" if equal(texts, ours, 0.0051) else None


def nothing_has_a_row(hta: Value, ours: Value, _facts: Facts) -> str | None:
    """HTA has rows for combinations of kernel types that last 0 µs, where events touch."""
    types = hta[0][hta[0]["sum"] > 0].reset_index(drop=True)
    return "rows of 0 µs" if equal((types, hta[1]), (ours[0].reset_index(drop=True), ours[1]), 0.0051) else None


_OF_CALL_GRAPH = (
    "depth", "height", "parent", "num_kernels", "kernel_dur_sum", "kernel_span", "first_kernel_start",
    "last_kernel_end",
)  # fmt: skip

RULES: Mapping[str, Sequence[Rule]] = {
    "cuda_kernel_launch_stats": [only_unlisted_launches_are_new],
    "cupti_counter_data": [only_columns_of_the_call_graph],
    "critical_path": [same_nodes_other_dependencies],
    "trace_with_counters": [counters_have_texts_as_ids],
    "gpu_kernel_breakdown": [nothing_has_a_row],
    "frequent": [long_patterns_are_abbreviated, outermost_operators_count],
}
"""Further tests, by the beginning of the method's name."""


def rule(method: str, hta: Value, ours: Value, facts: Facts) -> str | None:
    """Return what a test of the two results says."""
    for start, rules in RULES.items():
        if re.match(re.escape(start), method):
            for each in rules:
                if said := each(hta, ours, facts):
                    return said
    return None
