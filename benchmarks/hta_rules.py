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
    ("gpu_kernels_with", "ValueError: left side", "C1: negative durations", lambda facts: facts.fractions),
    ("", "AttributeError: 'list' object", "C10: the file is a list of events", lambda facts: facts.bare_list),
    ("", "TypeError: Invalid value", "C11: more than 127 events where its columns are of int8", lambda facts: True),
)  # fmt: skip
"""Method's beginning, error's beginning, what it is, and what the traces must have."""

CURES: Mapping[str, Sequence[str]] = {
    "temporal_breakdown": ("D2", "D5", "D10"),
    "idle_time_breakdown": ("D2", "D19"),
    "gpu_kernel_breakdown": ("D2", "D4", "D5", "D10"),
    "gpu_user_annotation_breakdown": ("D2", "D4"),
    "gpu_kernels_with_user_annotations": ("D1", "D2"),
    "comm_comp_overlap": ("D2", "D5", "D10"),
    "cuda_kernel_launch_stats": ("D2", "D5", "D8"),
    "queue_length": ("D2", "D5", "D8"),
    "time_spent_blocked": ("D2", "D5", "D6", "D8"),
    "memory_bw": ("D2", "D5", "D10"),
    "trace_with_counters": ("D2", "D5", "D8", "D10"),
    "potential_stragglers": ("D2", "D9"),
    "cupti": ("D2",),
    "critical_path": ("D2", "D9"),
    "aten": ("D2", "D5", "D7"),
    "frequent": ("D2", "D5"),
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


RULES: Mapping[str, Sequence[Rule]] = {}
"""Further tests, by the beginning of the method's name."""


def rule(method: str, hta: Value, ours: Value, facts: Facts) -> str | None:
    """Return what a test of the two results says."""
    for start, rules in RULES.items():
        if re.match(re.escape(start), method):
            for each in rules:
                if said := each(hta, ours, facts):
                    return said
    return None
