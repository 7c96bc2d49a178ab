"""What ``htagraph diff`` says besides the sentences of `htagraph.output.diff_sentences`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.output.phrases import command_line, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.differences import Diff
    from htagraph.analyses.differences.step_change import StepChange

__all__ = ["TITLES", "gate", "marked", "next_command", "too_long"]

TITLES = {
    "work": "Causes: time per rank and step, own or with all inside, and its effect on the step time (replayed)",
    "contributions": "Change of the critical path per step, by call path",
    "change_category": "Change of the critical path per step, by category",
    "change_operator": "Change of the critical path per step, by operator",
    "names": "Activities of both jobs, per rank and step",
    "added": "Call paths only in the job after, per rank and step (critical: with their device work)",
    "removed": "Call paths only in the job before, per rank and step (critical: with their device work)",
    "renamed": "Kernels replaced by others, under the same call path",
}
"""Titles by the name of the table."""


def marked(causes: pd.DataFrame) -> pd.DataFrame:
    """Return the table of causes as it is shown: names say whose rows are of all inside a call.

    Example:
        >>> import pandas as pd
        >>> marked(pd.DataFrame({"name": ["mm", "aten::item"], "whole": [False, True]}))["name"].tolist()
        ['mm', 'aten::item (with all inside)']
    """
    name = causes["name"].mask(causes["whole"], causes["name"] + " (with all inside)")
    return causes.drop(columns="whole").assign(name=name)


def too_long(what: str, before_us: float, after_us: float, limit: str) -> str:
    """Return the sentence about a limit of ``--fail-on`` that is exceeded; times are per step, µs."""
    return f"Too long: {what} is {time_text(after_us)} instead of {time_text(before_us)}, which exceeds {limit}."


def gate(change: StepChange, limit: str, *, fails: bool) -> str:
    """Return the sentence about a limit of the step time, exceeded or not."""
    times = f"step_time is {time_text(change.after_us)} instead of {time_text(change.before_us)}, {change.text()}"
    if change.is_empty:
        return f"Nothing was recorded in one of the jobs, so {limit} counts as exceeded."
    if not change.is_known:
        rest = "so it counts as exceeded" if fails else "it does not fail; record more steps, or runs"
        return f"Whether {limit} is exceeded cannot be said: {times}; {rest}."
    several = f" ({change.runs[0]} runs before, {change.runs[1]} after)" if max(change.runs) > 1 else ""
    if fails:
        return f"Too long: {times}{several}, which exceeds {limit}."
    return f"Limit {limit} is not exceeded: {times}{several}."


def next_command(diff: Diff, inputs: Sequence[str]) -> list[str]:
    """Return what to run next; `inputs` are the two jobs as they were named."""
    if not diff.after.makespan_ns:
        return []
    steps = ["--steps", _steps(diff)] if diff.parts[1].steps else []
    line = command_line("critical-path", [inputs[1]], *steps)
    if diff.change_us > 0:
        return [f"To see what the slower {diff.unit} waits for: {line}"]
    return [f"To see what bounds it now: {line}"]


def _steps(diff: Diff) -> str:
    steps = diff.parts[1].steps or (0,)
    return str(steps[0]) if len(steps) == 1 else f"{steps[0]}-{steps[-1]}"
