"""A finding: one kind of conclusion, with when it holds, its words, what proves it and what to try; and its claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import GapKind
from htagraph.core.naming import is_source_frame, sibling_names, without_address
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.findings.limits import LETTERS_IN_SHORT, MOST_ROWS
from htagraph.findings.phrases import command_line, shortened, time_text
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.steps import duration_ns, regular_steps
from htagraph.whatif.time_taken import most_per_usual_steps

if TYPE_CHECKING:
    from htagraph.findings.results import Results
    from htagraph.whatif.outcome import Outcome

__all__ = [
    "ATTRIBUTES", "JUDGES", "MEASURES", "NO_CHART", "NO_ROWS", "PREDICTS", "Bar", "BarPart", "Chart", "Claim",
    "Evidence", "Finding", "Place", "RestsOn", "Rows", "Trial", "gain_text", "gap_words", "in_short", "interval_us",
    "is_sure", "less_text", "likely", "most_saved_in", "of_activities", "per_step", "saved_claim", "saved_us",
    "saves_text", "stretches", "telling_text", "usual_us",
]  # fmt: skip

_MIN_SPREAD = 0.25
"""Width of a gain's interval, relative to the gain; chosen: less does not change what to do, and every prediction has
about half of it. Doubled, intervals of a fourth to half of the gain are not shown."""


class RestsOn(Enum):
    """What has to be right for a claim to hold, beyond the recording itself."""

    CLOCKS = "the clocks of different ranks"
    MATCHES = "which calls of different ranks are one collective"
    UNEXPLAINED = "pauses that nothing explains staying as they are"
    OTHER_RANKS = "ranks that were not read"


@dataclass(frozen=True)
class Claim:
    """One conclusion, with its figure and what proves it.

    Example:
        >>> claim = Claim("bound", "computation", 67.2, "percent")
        >>> claim.about, claim.figure
        ('computation', 67.2)
    """

    says: str
    """The name of its finding, one of `htagraph.findings.verdict.FINDINGS`."""
    about: str
    """The category, name, rank or cause that it is about."""
    figure: float
    unit: Literal["percent", "us", "count"]
    interval: tuple[float, float] | None = None
    """The figure's least and largest value, where it is a prediction."""
    rows: tuple[int, ...] = ()
    """Activities that prove it, some of them."""
    rests_on: frozenset[RestsOn] = frozenset()
    """What makes it uncertain."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further figures and names that its sentence gives."""


class Place(NamedTuple):
    """A place in the timeline: an activity, or a stretch of time with an activity in it."""

    activity: int = -1
    start_us: float | None = None
    """The start of the stretch, on the common clock; None for the activity itself."""
    end_us: float = 0.0

    @staticmethod
    def of_rows(frame: pd.DataFrame, start: str, duration: str, activity: str) -> list[Place]:
        """Return the stretch of each row, given the columns of its start and length, µs, and of its activity."""
        columns = zip(frame[activity], frame[start], frame[duration], strict=True)
        return [Place(int(row), begin, begin + lasts) for row, begin, lasts in columns]


class BarPart(NamedTuple):
    """A part of a bar."""

    word: str
    color: str
    """The name of a color of the page, such as ``computation``."""
    value: float


class Bar(NamedTuple):
    """A bar, with a whisker where its value is not known exactly."""

    word: str
    value: float
    """µs."""
    interval: tuple[float, float] | None = None
    place: Place | None = None
    color: str = ""
    """The name of a color of the page; empty for that of the chart."""
    text: str = ""
    """The value in words; empty for µs."""


class Chart(NamedTuple):
    """A chart of bars of µs, or of bars that consist of parts."""

    title: str
    bars: Sequence[Bar] = ()
    color: str = "computation"
    """The color of bars."""
    stacks: Sequence[tuple[str, Sequence[BarPart]]] = ()
    """What each bar of parts is of, and its parts from left to right; a chart has bars or these."""
    text: Callable[[float], str] = time_text
    """A value in words."""


@dataclass(frozen=True)
class Rows:
    """A table, with the place of each row in the timeline; none where there are no places."""

    frame: pd.DataFrame
    caption: str
    places: Sequence[Place | None] = ()
    headings: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> Place | None:
        """The place of the first row."""
        return self.places[0] if self.places else None


NO_CHART = Chart("")
"""A chart that shows nothing."""
NO_ROWS = Rows(pd.DataFrame(), "")
"""A table that shows nothing."""


@dataclass(frozen=True)
class Evidence:
    """What stands under the sentence of a finding."""

    chart: Chart = NO_CHART
    rows: Rows = NO_ROWS
    notes: Sequence[str] = ()
    """Sentences below the rows."""
    place: Place | None = None
    look: str = ""
    """What is to be seen at the place."""
    command: tuple[str, ...] = ()
    """What to look at, a verb and its options, where there is no trial; empty for nothing."""
    meaning: Callable[..., Any] | property | None = None
    """The function, or property, whose docstring says what the numbers mean."""


class Trial(NamedTuple):
    """What to try: a prediction that a claim makes already, and the options of the what-if that makes it again."""

    saved_us: float
    sentence: str
    options: tuple[str, ...]

    def command(self, inputs: Iterable[str]) -> str:
        """Return the command; `inputs` are the words of the command line that choose what is read."""
        return command_line("what-if", inputs, *self.options)


MEASURES = frozenset({Part.DEVICE, Part.MEANING})
"""What a finding needs that states times of devices."""
ATTRIBUTES = MEASURES | {Part.HOST}
"""The parts behind a statement on the device time of operators."""
JUDGES = MEASURES | {Part.CALLS}
"""What a finding needs that weighs the time of devices against that of hosts."""
PREDICTS = JUDGES | {Part.PEERS}
"""The parts behind a finding on the bound of the job or the gain of a change: late ranks may set the pace."""


class Finding(NamedTuple):
    """One kind of conclusion about a job: the file of its name declares all that is known of it.

    `when` is called with the results of a job. The other functions are called with the claims of one sentence: a single
    claim, or, where `is_list` is set, all claims of the finding.
    """

    name: str
    when: Callable[[Results], list[Claim]]
    """Returns the claims that the job's results support, with their facts; none where they do not."""
    short: Callable[..., str]
    """Returns the sentence, of a line or two; of a caution the part of a sentence, without capital and point."""
    evidence: Callable[..., Evidence] = lambda *_: Evidence()
    """Returns what proves the claims; called with the results and the claims."""
    trial: Callable[[Claim], Trial | None] = lambda _: None
    """Returns what to try, if it can be made as predicted."""
    advice: Callable[..., str] = lambda *_: ""
    """Returns what a person would do about it, in the imperative; empty for nothing that the evidence shows."""
    is_list: bool = False
    """Whether all claims share a sentence."""
    is_caution: bool = False
    """Whether it makes other findings uncertain, and is no conclusion by itself."""
    needs: frozenset[Part] = frozenset()
    """The parts that a recording must hold for the finding: where one is missing, nothing is claimed."""

    def whole(self, *claims: Claim) -> str:
        """Return the sentence, without what to do."""
        text = self.short(*claims)
        return text if text[-1] in ".?" else f"{text[0].upper()}{text[1:]}."


def in_short(name: str, beside: Sequence[str] = ()) -> str:
    r"""Return a name for a sentence: a source frame without folders, a kernel without template arguments, shortened.

    Names `beside` it in the sentence stay different: a kernel keeps the template arguments that tell it apart.

    Example:
        >>> in_short("/home/me/model.py(37): forward"), in_short("void gemm<float>(float*)")
        ('model.py(37): forward', 'gemm')
        >>> in_short("loss < 3, in\nwords")
        'loss < 3, in words'
    """
    plain = name.rsplit("/", 1)[-1]
    if not is_source_frame(name):
        siblings = [without_address(sibling) for sibling in (name, *beside)]
        plain = sibling_names(siblings)[0]
    return shortened(" ".join(plain.split()), LETTERS_IN_SHORT)


def of_activities(results: Results, activities: Sequence[int] | Array, caption: str) -> Rows:
    """Return rows about activities, each with its place."""
    rows = np.asarray(activities, np.int64)
    return Rows(results.rows(rows), caption, [Place(row) for row in rows.tolist()])


def stretches(results: Results, chosen: Array) -> Rows:
    """Return the longest stretches of the critical path among the chosen segments, the longest first."""
    graph, parts = results.graph, results.path.segments
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(-parts.length[rows], kind="stable")][:MOST_ROWS]
    if not len(rows):
        return NO_ROWS
    start = (parts.start[rows] - graph.origin_ns) / 1000
    frame = results.rows(parts.activity[rows]).assign(
        start_us=start, duration_us=parts.length[rows] / 1000, rank=graph.activities.rank[parts.place[rows]]
    )
    places = Place.of_rows(frame.assign(place=parts.place[rows]), "start_us", "duration_us", "place")
    frame.insert(4, "gap", [gap_words(gap) for gap in parts.gap[rows].tolist()])
    frame = frame if frame["gap"].any() else frame.drop(columns="gap")
    headings = {"duration_us": "on the path_us", "gap": "pause"}
    return Rows(frame, "The longest of these on the critical path", places, headings)


def gap_words(gap: int) -> str:
    """Return what a kind of pause is called; empty for none."""
    return "" if gap == GapKind.NONE else GapKind(gap).label.replace("_", " ")


def interval_us(outcome: Outcome) -> tuple[float, float]:
    """Return the least and the largest time that a change saves in the recorded run, µs."""
    low, high = outcome.saved_range_ns
    return low / 1000, high / 1000


def saved_claim(
    says: str, about: str, outcome: Outcome, makespan_ns: int, facts: dict[str, Any], rows: tuple[int, ...] = ()
) -> Claim:
    """Return the claim that a change saves what its replay saves; to the facts come its percent of the makespan.

    The makespan is that of the usual steps, and the change then saves what it saves in these.
    """
    us, interval = saved_us(outcome)
    facts |= {"percent": 100_000 * us / makespan_ns, "makespan_us": makespan_ns / 1000}
    facts["mostly_in"] = most_saved_in(outcome)
    facts["telling"] = telling_text(outcome, us, interval)
    return Claim(says, about, us, "us", interval=interval, rows=rows, facts=facts)


def saved_us(outcome: Outcome) -> tuple[float, tuple[float, float]]:
    """Return what a change saves of the recorded run, or of its usual steps, µs, and the interval of that.

    No interval reaches beyond the time that the change takes away in these steps.
    """
    us = usual_us(outcome)
    low, high = interval_us(outcome)
    before = outcome.baseline
    part = us * 1000 / outcome.saved_ns if outcome.saved_ns else 0.0
    taken = most_per_usual_steps(before, outcome.state)
    most = min(duration_ns(before, before.time), taken) / 1000
    return us, (min(us, low * part), max(us, min(high * part, most)))


def telling_text(outcome: Outcome, us: float, interval: tuple[float, float]) -> str:
    """Return which recording would tell how much a change saves; empty where the interval is no wider than that."""
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
    """Return what a change saves of the recorded run, or of its usual steps, µs: at most the time that it takes there.

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


def gain_text(claim: Claim, us: float | None = None) -> str:
    """Return the time that a change saves, with the words "per step" where there are several steps."""
    steps = claim.facts["steps"]
    return f"{time_text(per_step(claim.figure if us is None else us, steps))}{' per step' if steps > 1 else ''}"


def likely(claim: Claim) -> str:
    """Return the interval of a gain in words where it is wide, and the step of which most of the gain is.

    Example:
        >>> likely(Claim("gain", "gemm", 3000.0, "us", interval=(2000.0, 4000.0), facts={"steps": 2}))
        '; likely 1.00 ms to 2.00 ms'
    """
    low, high = claim.interval or (claim.figure, claim.figure)
    step = claim.facts.get("mostly_in")
    where = "" if step is None or claim.facts["steps"] <= 1 else f"; most of it in step {step}"
    if high - low <= _MIN_SPREAD * claim.figure:
        return where
    least, most = (per_step(max(end, 0.0), claim.facts["steps"]) for end in (low, high))
    ends = f"{time_text(least) if least else '0'} to {time_text(most)}"
    telling = claim.facts.get("telling")
    said = f"the recording cannot tell how much: {ends}; {telling}" if telling else f"likely {ends}"
    return f"; {said}{where}"


def is_sure(claim: Claim) -> bool:
    """Return whether at least a part of a gain that is worth naming is sure; of others it is said "up to"."""
    return claim.interval is None or claim.interval[0] >= _MIN_SPREAD * claim.figure


def saves_text(claim: Claim, us: float | None = None) -> str:
    """Return that a change saves a time; the arguments are those of `gain_text`."""
    return f"saves {'' if is_sure(claim) else 'up to '}{gain_text(claim, us)}"


def less_text(claim: Claim) -> str:
    """Return how much less time the job would take, or a step where there are several."""
    steps = claim.facts["steps"]
    what = "a step" if steps > 1 else "the job"
    less = f"{time_text(per_step(claim.figure, steps))} less"
    return f"{what} would take {less} ({claim.facts['percent']:.0f} %{likely(claim)})"
