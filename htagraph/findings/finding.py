"""A finding: one kind of conclusion, with when it holds, its words, what proves it and what to try; and its claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import GapKind
from htagraph.core.naming import is_source_frame, sibling_names, without_address
from htagraph.findings.change import Gain, PredictedChange
from htagraph.findings.limits import LETTERS_IN_SHORT, MOST_ROWS
from htagraph.findings.phrases import shortened, time_text
from htagraph.graph.measures.ledger import Part
from htagraph.trace.readers import Recorder

if TYPE_CHECKING:
    from htagraph.findings.results import Results

__all__ = [
    "ATTRIBUTES",
    "JUDGES",
    "MEASURES",
    "NO_CHART",
    "NO_ROWS",
    "PREDICTS",
    "Bar",
    "BarPart",
    "Chart",
    "Claim",
    "Evidence",
    "Finding",
    "Place",
    "RestsOn",
    "Rows",
    "claims_that_are",
    "gain_in",
    "gap_words",
    "in_short",
    "of_activities",
    "saved_claim",
    "stretches",
]


class RestsOn(Enum):
    """What has to be right for a claim to hold, beyond the recording itself."""

    CLOCKS = "the clocks of different ranks"
    MATCHES = "which calls of different ranks are one collective"
    UNEXPLAINED = "pauses that nothing explains staying as they are"
    OTHER_RANKS = "ranks that were not read"


@dataclass(frozen=True)
class Claim:
    """One conclusion, with its figure and what proves it.

    A finding whose sentence has further figures and names declares them as a class of its own, in its own file.

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
    gain: Gain | None = None
    """The gain without the subject of the claim; None where no replay says so."""
    change: PredictedChange | None = None
    """The change that it proposes; None where none can be made as predicted."""
    ranks: tuple[int, ...] = ()
    """The ranks that it names, the most important first."""
    is_beside: bool = False
    """Whether it is said beside a claim that gains more."""
    recorder: Recorder = field(default=Recorder(), compare=False, repr=False)
    """The program that recorded the job, in whose words advice names settings."""


SomeClaim = TypeVar("SomeClaim", bound=Claim)
"""The class of the claims of a finding."""


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
    """What to look at, a verb and its options, where no claim proposes a change; empty for nothing."""
    meaning: Callable[..., Any] | property | None = None
    """The function, or property, whose docstring says what the numbers mean."""


MEASURES = frozenset({Part.DEVICE, Part.MEANING})
"""What a finding needs that states times of devices."""
ATTRIBUTES = MEASURES | {Part.HOST, Part.GRAPHS}
"""The parts behind a statement on the device time of operators."""
JUDGES = MEASURES | {Part.CALLS}
"""What a finding needs that weighs the time of devices against that of hosts."""
PREDICTS = JUDGES | {Part.PEERS, Part.THREADS}
"""The parts behind a finding on the bound of the job or the gain of a change: late ranks, or a thread that was not
recorded, may set the pace."""


class Finding(NamedTuple):
    """One kind of conclusion about a job: the file of its name declares all that is known of it.

    `when` is called with the `Results` of a job, or a `JobPair`. The other functions are called with the claims of one
    sentence: a single claim, or, where `is_list` is set, all claims of the finding.
    """

    name: str
    when: Callable[..., Sequence[Claim]]
    """Returns the claims that the results of a job, or of two jobs that are compared, support; none otherwise."""
    short: Callable[..., str]
    """Returns the sentence, of a line or two; of a caution the part of a sentence, without capital and point."""
    why: Callable[..., str] = lambda *_: ""
    """Returns what shows it, in one sentence without gain and advice; empty for nothing that the head should say.

    Of a caution, and where `is_unknown` is set, it is what the recording does not tell, as a part of a sentence.
    """
    evidence: Callable[..., Evidence] = lambda *_: Evidence()
    """Returns what proves the claims; called with the results and the claims."""
    advice: Callable[..., str] = lambda *_: ""
    """Returns what a person would do about it, in the imperative; empty for nothing that the evidence shows."""
    is_list: bool = False
    """Whether all claims share a sentence."""
    is_caution: bool = False
    """Whether it makes other findings uncertain, and is no conclusion by itself."""
    is_unknown: bool = False
    """Whether it says what the recording does not tell."""
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
    graph = results.graph
    parts = results.path.segments
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


def saved_claim(claim: SomeClaim) -> SomeClaim:
    """Return a claim that the job is shorter by its change, with the gain and the interval of the change.

    Args:
        claim: a claim with a change; its figure is the gain of the change, µs.

    Raises:
        ValueError: the claim has no change.

    Example:
        >>> change = PredictedChange("no waits", ("--remove-sync=op=a",), Gain(30.0, 20.0, 40.0, 0, 100.0))
        >>> saved_claim(Claim("blocking", "a", 30.0, "us", change=change)).interval
        (20.0, 40.0)
    """
    if claim.change is None:
        msg = f"the claim {claim.says!r} about {claim.about!r} has no change"
        raise ValueError(msg)
    gain = claim.change.gain
    return replace(claim, figure=gain.value_us, interval=(gain.low_us, gain.high_us), gain=gain)


def claims_that_are(kind: type[SomeClaim], claims: Iterable[Claim]) -> list[SomeClaim]:
    """Return the claims of one class, in their order.

    Example:
        >>> claims_that_are(Claim, [Claim("bound", "computation", 67.2, "percent")])[0].says
        'bound'
    """
    return [claim for claim in claims if isinstance(claim, kind)]


def gain_in(claim: Claim) -> Gain:
    """Return the gain of a claim of a finding whose claims always have one."""
    if claim.gain is None:
        msg = f"the claim {claim.says!r} about {claim.about!r} has no gain"
        raise ValueError(msg)
    return claim.gain
