"""A change that a finding proposes, and the gain of the change: values, over the steps that the job is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.statistics import MOST, SEVERAL
from htagraph.findings.phrases import command_line, share_text, time_text
from htagraph.graph.measures.steps import duration_ns, regular_steps
from htagraph.whatif.options import CHANGES
from htagraph.whatif.scenario import Scenario, what_if
from htagraph.whatif.time_taken import most_per_usual_steps

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.whatif.outcome import Outcome

__all__ = [
    "Gain",
    "PredictedChange",
    "Whole",
    "brief_gain",
    "gain_in_job",
    "gain_of",
    "gain_text",
    "gain_without_interval",
    "interval_us",
    "is_sure",
    "less_text",
    "likely",
    "most_saved_in",
    "per_step",
    "saved_us",
    "saves_text",
    "scenario_of",
    "steps_of",
    "telling_text",
    "usual_us",
]

_MIN_SPREAD = 0.25
"""Width of a gain's interval, relative to the gain; chosen: less does not change the advice, and every prediction has
about half of it. Doubled, intervals of a fourth to half of the gain are not shown."""


class Whole(NamedTuple):
    """The base of gains in percent."""

    makespan_ns: int
    """The time of the usual steps, or of the job, without a change, ns."""
    steps: int
    """The number of usual steps in it; 0 or 1 for the job."""
    is_without_start_up: bool = False
    """Whether the start-up of the job is no part of it."""


@dataclass(frozen=True)
class Gain:
    """How much shorter a job is with a change.

    Times are sums over the usual steps of the job; of a job without usual steps, times of the whole job.

    Example:
        >>> gain = Gain(3000.0, 2000.0, 4000.0, steps=2, makespan_us=12_000.0)
        >>> gain.percent, gain.per_step_us
        (25.0, 1500.0)
    """

    value_us: float
    """The time saved by replay, µs."""
    low_us: float
    """The lower end of the 90 % interval, µs."""
    high_us: float
    """The upper end of the 90 % interval, µs."""
    steps: int
    """How many usual steps the times are sums of; 0 or 1 for the whole job."""
    makespan_us: float
    """How long these steps, or the job, take without the change, µs."""
    mostly_in: int | None = None
    """The step of more than half of the saving; None for no step."""
    telling: str = ""
    """A recording that would tell how much the change saves; empty where this recording tells."""
    is_without_start_up: bool = False
    """Whether the start-up of the job is no part of the makespan."""

    @property
    def whole_words(self) -> str:
        """The base of the gain in words: a step, the job, or the job apart from start-up."""
        if self.scope == "step":
            return "a step"
        return "the job apart from start-up" if self.is_without_start_up else "the job"

    @property
    def percent(self) -> float:
        """The share of the makespan that the change saves, percent."""
        return 100 * self.value_us / self.makespan_us if self.makespan_us else 0.0

    @property
    def scope(self) -> str:
        """The unit of times per step: ``"step"``, a usual step, or ``"job"``."""
        return "step" if self.steps > 1 else "job"

    @property
    def per_step_us(self) -> float:
        """The time saved in a usual step, or in the job, µs."""
        return per_step(self.value_us, self.steps)


@dataclass(frozen=True)
class PredictedChange:
    """A change that can be predicted: a name, the options that ask for the prediction, and the gain.

    Example:
        >>> gain = Gain(3000.0, 3000.0, 3000.0, steps=2, makespan_us=12_000.0)
        >>> change = PredictedChange("a data loader that keeps up", ("--free-dataloader",), gain)
        >>> change.sentence
        'A data loader that keeps up saves 1.50 ms per step.'
        >>> change.command(["trace.json"])
        'htagraph what-if trace.json --free-dataloader'
    """

    name: str
    """The job with the change, as a part of a sentence without a verb."""
    options: tuple[str, ...]
    """The options of the command line that predict the change."""
    gain: Gain

    @property
    def title(self) -> str:
        """The name of the change, as the start of a sentence."""
        return f"{self.name[0].upper()}{self.name[1:]}"

    @property
    def sentence(self) -> str:
        """The gain of the change, as a sentence."""
        is_ceiling = self.gain.low_us <= 0 and self.gain.high_us <= self.gain.value_us  # "up to" says this interval
        interval = "" if is_ceiling else "; ".join(_doubts(self.gain))
        range_text = f" ({interval})" if interval else ""
        return f"{self.title} {saves_text(self.gain)}{range_text}."

    def command(self, inputs: Iterable[str]) -> str:
        """Return the command that predicts the change; `inputs` are the words that choose the traces."""
        return command_line("what-if", inputs, *self.options)


def scenario_of(graph: DependencyGraph, options: Sequence[str]) -> Scenario:
    """Return the scenario that options of the command line describe.

    Raises:
        ChangeError: an option has a value that it does not read.
        SelectionError: nothing is selected by an option.

    Example:
        >>> import htagraph as hg
        >>> scenario_of(hg.load("data/demo"), ["--scale", "op=aten::mm:0.5"]).run().saved_ns > 0
        True
    """
    scenario = what_if(graph)
    for option, value in steps_of(options):
        scenario = CHANGES[option].read(value).apply(scenario)
    return scenario


def steps_of(options: Sequence[str]) -> list[tuple[str, str]]:
    """Return the changes of options of the command line, in their order, each with its value; empty for none.

    Example:
        >>> steps_of(["--scale", "op=aten::mm:0.5", "--remove-sync=op=aten::item", "--free-dataloader"])
        [('scale', 'op=aten::mm:0.5'), ('remove-sync', 'op=aten::item'), ('free-dataloader', '')]
    """
    steps = []
    for word in options:
        if word.startswith("--"):
            option, _, value = word.removeprefix("--").partition("=")
            steps.append((option, value))
        else:
            option, _ = steps.pop()
            steps.append((option, word))
    return steps


def gain_of(outcome: Outcome, whole: Whole) -> Gain:
    """Return the gain of a change by replay.

    Args:
        outcome: the prediction.
        whole: the base of the gain in percent.
    """
    value_us, interval = saved_us(outcome)
    low_us, high_us = interval
    return Gain(
        value_us,
        low_us,
        high_us,
        whole.steps,
        whole.makespan_ns / 1000,
        most_saved_in(outcome),
        telling_text(outcome, value_us, interval),
        whole.is_without_start_up,
    )


def gain_in_job(outcome: Outcome, steps: npt.NDArray[np.integer]) -> Gain:
    """Return the gain of a change in the whole job, for work of steps that are no usual ones.

    Args:
        outcome: the prediction.
        steps: the steps of the work that the change is about.
    """
    low_us, high_us = interval_us(outcome)
    numbers = np.unique(steps)
    only_step = int(numbers[0]) if len(numbers) == 1 else None
    return Gain(
        outcome.saved_ns / 1000,
        low_us,
        high_us,
        steps=0,
        makespan_us=outcome.baseline_ns / 1000,
        mostly_in=only_step,
    )


def gain_without_interval(value_us: float, whole: Whole) -> Gain:
    """Return a gain that is known to be this long, µs."""
    return Gain(
        value_us,
        value_us,
        value_us,
        whole.steps,
        whole.makespan_ns / 1000,
        is_without_start_up=whole.is_without_start_up,
    )


def interval_us(outcome: Outcome) -> tuple[float, float]:
    """Return the least and the largest time that a change saves in the recorded run, µs."""
    low, high = outcome.saved_range_ns
    return low / 1000, high / 1000


def saved_us(outcome: Outcome) -> tuple[float, tuple[float, float]]:
    """Return the time that a change saves in the usual steps, or in the job, µs, and the interval of this time.

    No interval reaches beyond the time that the change takes away in these steps.
    """
    value_us = usual_us(outcome)
    low_us, high_us = interval_us(outcome)
    before = outcome.baseline
    usual_share = value_us * 1000 / outcome.saved_ns if outcome.saved_ns else 0.0
    taken_ns = most_per_usual_steps(before, outcome.state)
    most_us = min(duration_ns(before, before.time), taken_ns) / 1000
    return value_us, (min(value_us, low_us * usual_share), max(value_us, min(high_us * usual_share, most_us)))


def telling_text(outcome: Outcome, us: float, interval: tuple[float, float]) -> str:
    """Return a recording that would tell the gain of a change; empty where the interval is no wider than the gain."""
    low, high = interval
    if high - low <= us:
        return ""
    from htagraph.whatif.interval import telling  # only where something is not known

    return f"one {telling(outcome.baseline, outcome.interval_cause)} would"


def most_saved_in(outcome: Outcome) -> int | None:
    """Return the step in which a change saves more than half of its saving in all regular steps; None for no step."""
    before = outcome.baseline
    numbers, lasted = regular_steps(before, before.time)
    changed, lasts = regular_steps(outcome.state.graph, outcome.marks, before)
    if len(numbers) < SEVERAL or not np.array_equal(numbers, changed):
        return None
    saved = lasted - lasts
    most = int(saved.argmax())
    return int(numbers[most]) if saved[most] > MOST * saved.sum() > 0 else None


def usual_us(outcome: Outcome) -> float:
    """Return the time that a change saves in the usual steps, or in the job, µs: at most the time taken away there.

    From end to end, a usual step may also be shorter by work of the step before it.
    """
    before = outcome.baseline
    after_ns = duration_ns(outcome.state.graph, outcome.marks, before)
    saved_ns = duration_ns(before, before.time) - after_ns
    taken_ns = most_per_usual_steps(before, outcome.state)
    return min(saved_ns, taken_ns) / 1000


def per_step(us: float, steps: int) -> float:
    """Return a time per step, µs, or in all where there are no steps."""
    return us / max(steps, 1)


def gain_text(gain: Gain) -> str:
    """Return the time that a change saves, with the words "per step" where there are several steps."""
    return f"{time_text(gain.per_step_us)}{' per step' if gain.scope == 'step' else ''}"


def likely(gain: Gain) -> str:
    """Return the interval of a gain in words where it is wide, and the step with most of the gain.

    Example:
        >>> likely(Gain(3000.0, 2000.0, 4000.0, steps=2, makespan_us=9000.0))
        '; likely 1.00 ms to 2.00 ms'
    """
    return "".join(f"; {doubt}" for doubt in _doubts(gain))


def _doubts(gain: Gain) -> list[str]:
    """Return the interval of a gain where it is wide, and the step with most of the gain, in words."""
    where = [] if gain.mostly_in is None or gain.scope == "job" else [f"most of it in step {gain.mostly_in}"]
    if gain.high_us - gain.low_us <= _MIN_SPREAD * gain.value_us:
        return where
    least_us = per_step(max(gain.low_us, 0.0), gain.steps)
    most_us = per_step(max(gain.high_us, 0.0), gain.steps)
    ends = f"{time_text(least_us) if least_us else '0'} to {time_text(most_us)}"
    said = f"the recording cannot tell how much: {ends}; {gain.telling}" if gain.telling else f"likely {ends}"
    return [said, *where]


def brief_gain(gain: Gain) -> str:
    """Return how much less time a step takes, or the job: one figure, "up to" an unsure one, or a wide interval.

    Example:
        >>> brief_gain(Gain(3000.0, 2900.0, 3100.0, steps=2, makespan_us=9000.0))
        '1.50 ms less per step (33 %)'
        >>> brief_gain(Gain(3000.0, 2000.0, 4000.0, steps=2, makespan_us=9000.0))
        '1.00 ms to 2.00 ms less per step'
        >>> brief_gain(Gain(3000.0, 0.0, 3000.0, steps=0, makespan_us=9000.0))
        'up to 3.00 ms less (33 % of the job)'
    """
    least_us = per_step(gain.low_us, gain.steps)
    most_us = per_step(gain.high_us, gain.steps)
    less = "less per step" if gain.scope == "step" else "less"
    whole = "" if gain.scope == "step" else f" of {gain.whole_words}"
    if gain.scope == "job" and gain.mostly_in is not None:
        less = f"less, mostly in step {gain.mostly_in}"
    if not is_sure(gain):
        percent = 100 * gain.high_us / gain.makespan_us if gain.makespan_us else 0.0
        return f"up to {time_text(most_us)} {less} ({share_text(percent)}{whole})"
    if gain.high_us - gain.low_us > _MIN_SPREAD * gain.value_us:
        return f"{time_text(least_us)} to {time_text(most_us)} {less}"
    return f"{time_text(gain.per_step_us)} {less} ({share_text(gain.percent)}{whole})"


def is_sure(gain: Gain) -> bool:
    """Return whether at least a part of a gain that is worth naming is sure; an unsure gain is said with "up to"."""
    return gain.low_us >= _MIN_SPREAD * gain.value_us


def saves_text(gain: Gain) -> str:
    """Return that a change saves a time."""
    return f"saves {'' if is_sure(gain) else 'up to '}{gain_text(gain)}"


def less_text(gain: Gain) -> str:
    """Return how much less time the job would take, or a step where there are several."""
    return f"{gain.whole_words} would take {time_text(gain.per_step_us)} less ({gain.percent:.0f} %{likely(gain)})"
