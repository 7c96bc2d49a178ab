"""The gain of one change in the steady job: of the usual steps, or of the job apart from its start-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from htagraph.findings.change import scenario_of, usual_us
from htagraph.findings.results import Results

__all__ = ["SteadyGain", "steady_gain"]


class SteadyGain(NamedTuple):
    """How much shorter the steady job is with a change."""

    percent: float
    """The gain, percent of the usual steps or of the job."""
    is_without_start_up: bool = False
    """Whether the start-up of the job is no part of it."""


def steady_gain(results: Results, options: Sequence[str]) -> SteadyGain:
    """Return how much shorter the steady job is with the changes that options of the command line describe.

    Args:
        results: the results of the job.
        options: the options.

    Raises:
        SelectionError: nothing is selected by an option.

    Example:
        >>> import htagraph as hg
        >>> gain = steady_gain(Results(hg.load("data/demo")), ["--remove-sync=op=aten::item"])
        >>> round(gain.percent), gain.is_without_start_up
        (15, False)
    """
    outcome = scenario_of(results.warm_graph, options).run()
    whole = results.whole
    saved_ns = 1000 * usual_us(outcome)
    percent = 100 * saved_ns / max(whole.makespan_ns, 1)
    return SteadyGain(percent, whole.is_without_start_up)
