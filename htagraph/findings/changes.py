"""The one list of changes that findings propose, each with its gain; the largest sure gain comes first.

`htagraph summary` begins with the head of this list, `htagraph plan` shows the list and chooses among its changes, and
the page begins with its head.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pandas as pd

from htagraph.core.errors import check_type
from htagraph.core.tables import Col, Table, described
from htagraph.findings.bound import BOUND, is_unrecorded
from htagraph.findings.change import Gain, PredictedChange, brief_gain, gain_of, per_step, scenario_of
from htagraph.findings.damaged import DamagedClaim
from htagraph.findings.finding import Claim, Finding, claims_that_are
from htagraph.findings.gain import GAIN, FasterCode, GainClaim, gaining, halved_in
from htagraph.findings.incomplete import INCOMPLETE
from htagraph.findings.limits import LARGE_SHARE, MIN_PERCENT
from htagraph.findings.no_device_work import NoDeviceWorkClaim
from htagraph.findings.open_step import OpenStepClaim
from htagraph.findings.phrases import Suggestion, share_text
from htagraph.findings.remedy import REMEDY
from htagraph.findings.results import Results
from htagraph.findings.start_up import START_UP
from htagraph.findings.straggler import STRAGGLER, StragglerClaim
from htagraph.findings.too_little import TOO_LITTLE
from htagraph.findings.verdict import Sentence, claims_of, stated
from htagraph.findings.whereabouts import path_percent, place_of, whereabouts
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.waits import Damage
from htagraph.graph.tolerances import LIMITS

__all__ = ["TABLE", "ProposedChange", "ProposedChanges", "changes", "changes_of", "placed", "ranked"]

_NO_WAY = "No change with a known way was found."
"""The words before a fact where no way is known."""
_FIRST_PLACES: Final = 3
"""Places of faster code whose order is known in every list. Chosen: a head has the first change and the next one that
does not repeat it. Doubled, a summary takes up to three replays more."""
_AS_PEERS = "As fast as its peers"
"""The change of a rank that the advice names."""
TABLE: Final = Table(
    "What to change: known ways first, then code, by what is surely gained",
    Col("change", "str", "the job with the change"),
    Col("low_us", doc="lower end of the 90 % interval of the gain, by replay", heading="at least_us"),
    Col("gain_us", doc="how much shorter a usual step is, or the job where it has no usual steps"),
    Col("high_us", doc="upper end of the interval", heading="at most_us"),
    Col(
        "gain_percent",
        doc="gain as a share of a usual step, or of the job without its start-up; NaN for start-up, which is no part "
        "of that",
    ),
    Col("scope", "str", '``"step"`` or ``"job"``: the unit of the gain'),
    Col(
        "is_known",
        "bool",
        "whether a way is known; else code would have to be written twice as fast",
        heading="a way is known",
    ),
    Col("action", "str", "the advice to a person; empty where no way is known"),
    Col("options", "str", "the options of the command line that predict the change; empty where none do"),
    Col("finding", "str", "the finding that proposes it"),
)


@dataclass(frozen=True)
class ProposedChange:
    """A change that a finding proposes, with its gain."""

    finding: str
    """The name of the finding, one of `htagraph.findings.verdict.FINDINGS`."""
    about: str
    """The category, name, rank or cause that the finding is about."""
    action: str
    """The advice to a person, in the imperative; empty where no way is known."""
    gain: Gain | None
    """The gain; None for recording again."""
    change: PredictedChange | None = None
    """The change that can be predicted; None where no prediction exists."""
    is_tuned: bool = False
    """Whether it is of kernels that no setting makes faster: a vendor's, in low precision."""
    subject: str = ""
    """The code that would have to be written twice as fast; empty for other changes."""
    where: str = ""
    """How often the code runs, and in which code, where no way is known; empty where this is not looked up."""
    place: str = ""
    """The code around most of its time, where no way is known; empty for none."""
    path_percent: float = float("nan")
    """The share of the critical path that the code takes, percent; NaN where no share was looked up."""

    @property
    def is_known(self) -> bool:
        """Whether a way to do it is known; else code would have to be written twice as fast."""
        return bool(self.action) and not (self.finding == BOUND.name and self.change is None)

    @property
    def percent(self) -> float:
        """The gain as a share of the usual steps, or of the job without its start-up, percent; NaN for start-up."""
        if self.gain is None or self.finding == START_UP.name:
            return float("nan")
        return self.gain.percent

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command line that predict the change; none where no prediction exists."""
        return self.change.options if self.change else ()

    @property
    def text(self) -> str:
        """The advice and the gain, in words."""
        if self.is_hypothetical:
            return self._fact
        if self.change:
            return f"{self.expected}."
        action = self.action or _NO_WAY
        is_recording = self.finding in (START_UP.name, BOUND.name)
        if self.gain is None or is_recording:  # another recording makes no job faster
            return action
        return f"{action} Without it: {brief_gain(self.gain)}."

    @property
    def expected(self) -> str:
        """The advice and the gain of the change that can be predicted, without a full stop; empty without a change."""
        if self.change is None:
            return ""
        gain = brief_gain(self.change.gain)
        if self.is_hypothetical:
            return f"{self._fact} With new code ({self.change.name}): {gain}"
        subject = _AS_PEERS if self.finding == STRAGGLER.name else self.change.title
        return f"{self.action or _NO_WAY} {subject}: {gain}"

    @property
    def is_hypothetical(self) -> bool:
        """Whether it is code without a known way, which somebody would have to write anew: no advice."""
        return bool(self.subject) and not self.action

    @property
    def share_sentences(self) -> tuple[str, ...]:
        """The share of code as sentences, the longest first; none where a way is known, or the share is small."""
        is_large = self.path_percent >= MIN_PERCENT  # NaN is not
        if not self.is_hypothetical or not is_large:
            return ()
        share = share_text(self.path_percent)
        apart = " apart from start-up" * (self.gain is not None and self.gain.is_without_start_up)
        taken = f"{share[0].upper()}{share[1:]} of the critical path{apart} is in {self.subject}"
        places = (f": {self.where}" * bool(self.where), f", {self.place}" * bool(self.place), "")
        return tuple(f"{taken}{place}." for place in dict.fromkeys(places))

    @property
    def _fact(self) -> str:
        """The words for code without a known way, and the share of the code."""
        return " ".join((_NO_WAY, *self.share_sentences[:1]))

    def with_command(self, inputs: Iterable[str]) -> str:
        """Return the change as the first thing to do, with the command that predicts the gain, if one does."""
        label = "" if self.is_hypothetical else "First: "
        if self.change is None or (self.is_hypothetical and self.is_tuned):  # nobody writes a library anew
            return f"{label}{self.text}"
        return Suggestion(f"{label}{self.expected}", self.change.command(inputs))

    def to_dict(self) -> dict[str, Any]:
        """Return the change for programs: ``change``, ``gain_us`` (``low``, ``value``, ``high``), ``scope``, ``text``.

        Example:
            >>> gain = Gain(3000.0, 2000.0, 4000.0, steps=2, makespan_us=12_000.0)
            >>> row = ProposedChange("blocking", "aten::item", "Move it.", gain).to_dict()
            >>> row["gain_us"], row["scope"]
            ({'low': 1000.0, 'value': 1500.0, 'high': 2000.0}, 'step')
        """
        gain = self.gain
        gain_us = None
        if gain is not None:
            ends = {"low": gain.low_us, "value": gain.value_us, "high": gain.high_us}
            gain_us = {end: per_step(us, gain.steps) for end, us in ends.items()}
        return {
            "change": shlex.join(self.options),
            "gain_us": gain_us,
            "scope": gain.scope if gain else "job",
            "text": self.text,
        }


@dataclass(frozen=True)
class ProposedChanges:
    """The list of changes, the first thing to do first."""

    rows: tuple[ProposedChange, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ProposedChange]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> ProposedChange:
        return self.rows[place]

    def __str__(self) -> str:
        """Return the list as a table to read: the gain of each change, the ends of the interval, and the change."""
        lines = [
            (row.change.title if row.change else row.action or row.about, brief_gain(row.gain) if row.gain else "")
            for row in self.rows
        ]
        width = max((len(title) for title, _ in lines), default=0)
        table = [f"{number}. {title:<{width}}  {gain}".rstrip() for number, (title, gain) in enumerate(lines, 1)]
        return "\n".join(table) or "No change is known to gain anything."

    def _repr_html_(self) -> str:
        """Return the list as a table for notebooks."""
        html: str = self.to_frame().drop(columns=["options", "finding"]).to_html(index=False)
        return html

    @property
    def first(self) -> ProposedChange | None:
        """The first thing to do; None where nothing is known to gain anything."""
        return self.rows[0] if self.rows else None

    def to_frame(self) -> pd.DataFrame:
        """Return the list as a table; the columns are listed at `htagraph.changes`."""
        rows = [
            {
                "change": row.change.name if row.change else row.about,
                "low_us": per_step(row.gain.low_us, row.gain.steps),
                "gain_us": row.gain.per_step_us,
                "high_us": per_step(row.gain.high_us, row.gain.steps),
                "gain_percent": row.percent,
                "scope": row.gain.scope,
                "is_known": row.is_known,
                "action": row.action,
                "options": shlex.join(row.options),
                "finding": row.finding,
            }
            for row in self.rows
            if row.gain
        ]
        return TABLE.frame({name: [row[name] for row in rows] for name in TABLE.types})


@described(TABLE)
def changes(graph: DependencyGraph) -> ProposedChanges:
    """Return the changes that findings propose, each with its gain, the largest sure gain first.

    Changes with a known way stand before code that would have to be written twice as fast.

    Args:
        graph: the job.

    Returns:
        A `ProposedChanges`; its `to_frame` has one row per change that gains time: {columns}.

    Example:
        >>> import htagraph as hg
        >>> found = hg.changes(hg.load("data/demo"))
        >>> found.first.options, found.first.is_known
        (('--fix-straggler', 'auto'), True)
    """
    check_type(graph, DependencyGraph, "htagraph.changes takes a graph (of a job on workers: job.load([0, 1]))")
    return changes_of(Results(graph), exact=True)


def changes_of(results: Results, claims: Sequence[Claim] | None = None, *, exact: bool = False) -> ProposedChanges:
    """Return the list that `changes` makes, of a job whose results and claims may be known already.

    Args:
        results: the results of the job.
        claims: its claims; by default all of the job.
        exact: whether each gain has an interval; else faster code has none, but for the first row.
    """
    said = claims_of(results) if claims is None else claims
    if any(claim.says in (INCOMPLETE.name, TOO_LITTLE.name) for claim in said):
        return ranked(said)
    code = [_of_code(faster) for faster in gaining(results)]
    places = len(code) if exact else _FIRST_PLACES
    code = _measured_first(results, code, places)
    listed = ranked(said, code)
    rows = [_measured(results, row) if exact or not place else row for place, row in enumerate(listed)]
    named = [row for place, row in enumerate(rows) if not place or row.gain is None or row.gain.percent >= MIN_PERCENT]
    return ProposedChanges((*(placed(results, row) for row in named[:1]), *named[1:]))


def placed(results: Results, row: ProposedChange) -> ProposedChange:
    """Return a row with the share and the place of its code, if no way is known to make the code faster."""
    if row.action:
        return row
    return replace(
        row,
        where=whereabouts(results, row.options),
        place=place_of(results, row.options),
        path_percent=path_percent(results, row.options),
    )


def _measured_first(results: Results, code: Sequence[ProposedChange], places: int) -> list[ProposedChange]:
    """Return changes of code, measured so far that the first places by what is surely gained are known.

    A sure gain is no larger than the gain, so that changes with a smaller gain need no replay.

    Args:
        results: the results of the job.
        code: the changes, without intervals.
        places: how many of the first changes are to be known.
    """
    rows = list[ProposedChange]()
    sure_us = list[float]()
    for row in sorted(code, key=_least_gain):
        is_decided = len(sure_us) >= places and sorted(sure_us)[-places] >= _gain_us(row)
        if is_decided and not row.is_known:
            rows.append(row)
            continue
        measured = _measured(results, row)
        rows.append(measured)
        sure_us.append(measured.gain.low_us if measured.gain else 0.0)
    return rows


def _gain_us(row: ProposedChange) -> float:
    """Return the gain of a change, µs; 0 for none."""
    return row.gain.value_us if row.gain else 0.0


def _least_gain(row: ProposedChange) -> float:
    """Return the gain of a change, negative: the largest gain is the first by it."""
    return -_gain_us(row)


def _of_code(faster: FasterCode) -> ProposedChange:
    """Return the row of faster code."""
    return ProposedChange(
        GAIN.name,
        about=faster.change.name,
        action=faster.action,
        gain=faster.change.gain,
        change=faster.change,
        is_tuned=faster.is_tuned,
        subject=faster.subject,
    )


def ranked(claims: Sequence[Claim], code: Sequence[ProposedChange] = ()) -> ProposedChanges:
    """Return the changes that claims propose, and faster code, each change once, the first thing to do first.

    Where the recording lacks a part of the job, recording again is the only proposal; but where devices compute
    nearly all the time, a known remedy for kernels stands, whatever the host did.
    """
    sentences = stated(claims)
    proposed = list(_proposed(sentences))
    recording = [_of_recording(finding, group) for finding, group in sentences if finding is INCOMPLETE]
    if recording:
        is_host_lost = {row.about for row in recording} <= {Part.HOST.name, Part.CALLS.name, Part.GRAPHS.name}
        remedies = [row for row in proposed if row.finding == REMEDY.name and is_host_lost and _computes(sentences)]
        by_action = {row.action: row for row in reversed(recording)}  # one recording may have several lost parts
        again = [row for row in recording if by_action[row.action] is row]
        return ProposedChanges((*remedies, *again))
    late = claims_that_are(StragglerClaim, claims)
    looks = [row for row in proposed if row.finding == BOUND.name and row.change is None]
    records = [row for row in proposed if row.finding == GAIN.name and row.change is None]
    changes = [row for row in (*proposed, *code) if row not in looks and row not in records]
    changes.sort(key=lambda row: _order(row, late))
    by_options = {row.options: row for row in reversed(changes) if row.change}
    rows = [row for row in changes if row.change is None or by_options[row.options] is row]
    recording_again = [*_of_damage(sentences), *_of_counters(sentences), *_of_open_steps(sentences)]
    little = [_of_recording(finding, group) for finding, group in sentences if finding is TOO_LITTLE]
    if little:  # what gains in a moment gains nothing that is known in the job
        return ProposedChanges((*recording_again, *little))
    if recording_again:
        return ProposedChanges((*recording_again, *rows))
    if rows and not any(map(_is_surely_known, rows)):
        unseen = [replace(row, gain=None) for row in records[:1]]
        rows = [*(list(_of_unrecorded(sentences)) or unseen), *rows]
    return ProposedChanges(tuple(rows or looks))


def _is_surely_known(row: ProposedChange) -> bool:
    """Return whether a row has a known way whose sure gain is worth naming."""
    if row.gain is None or not row.is_known:
        return row.is_known
    return 100 * row.gain.low_us >= MIN_PERCENT * row.gain.makespan_us


def _of_unrecorded(sentences: Sequence[Sentence]) -> Iterator[ProposedChange]:
    """Yield the proposal to record the host, where most of the host time on the path is without any event."""
    for finding, claims in sentences:
        advice = finding.advice(*claims) if finding is BOUND and is_unrecorded(claims[0]) else ""
        if advice:
            yield ProposedChange(finding.name, claims[0].about, advice, None)


def _of_damage(sentences: Sequence[Sentence]) -> Iterator[ProposedChange]:
    """Yield the proposal to record again, where a file ends early, or lost a large part of its events."""
    for finding, claims in sentences:
        for claim in claims_that_are(DamagedClaim, claims):
            if any(map(_is_large, claim.damaged.values())):
                yield ProposedChange(finding.name, claim.about, finding.advice(claim), None)


def _of_open_steps(sentences: Sequence[Sentence]) -> Iterator[ProposedChange]:
    """Yield the proposal to record again, where the profiler stopped within the only step."""
    for finding, claims in sentences:
        for claim in claims_that_are(OpenStepClaim, claims):
            if not claim.whole:
                yield ProposedChange(finding.name, claim.about, finding.advice(claim), None)


def _of_counters(sentences: Sequence[Sentence]) -> Iterator[ProposedChange]:
    """Yield the proposal to record without counters, where a profiler of counters ran kernels one by one."""
    for finding, claims in sentences:
        for claim in claims_that_are(NoDeviceWorkClaim, claims):
            if claim.counted:
                yield ProposedChange(finding.name, claim.about, finding.advice(claim), None)


def _is_large(damage: Damage) -> bool:
    """Return whether a recording ends early, or lost so many events that conclusions may be about the loss."""
    is_cut = damage.how == "cut"
    is_lost = damage.how == "lost" and damage.share >= LARGE_SHARE
    return is_cut or is_lost


def _measured(results: Results, row: ProposedChange) -> ProposedChange:
    """Return a row whose gain has an interval, by its replay."""
    if row.change is None or row.gain is None or row.gain.low_us < row.gain.high_us:
        return row
    outcome = scenario_of(results.warm_graph, row.options).run()
    gain = gain_of(outcome, results.whole)
    return replace(row, gain=gain, change=replace(row.change, gain=gain))


def _of_recording(finding: Finding, group: Sequence[Claim]) -> ProposedChange:
    """Return the proposal to record a job again, with the part that its recording lacks."""
    return ProposedChange(finding.name, group[0].about, finding.advice(*group), None)


def _proposed(sentences: Sequence[Sentence]) -> Iterator[ProposedChange]:
    """Yield the proposals of claims that gain time."""
    for finding, claims in sentences:
        for claim in claims:
            gain = claim.change.gain if claim.change else claim.gain
            action = finding.advice(claim)
            if gain is not None and gain.value_us > 0 and (action or claim.change):
                is_tuned = isinstance(claim, GainClaim) and claim.is_tuned
                subject = halved_in(claim) if isinstance(claim, GainClaim) else ""
                yield ProposedChange(finding.name, claim.about, action, gain, claim.change, is_tuned, subject)


class _PlaceInList(NamedTuple):
    """The place of a row in the list: rows are sorted by these."""

    group: int
    sure_us: float
    """The sure gain, negative."""
    value_us: float
    """The gain, negative."""
    title: str
    """The name of the change, which decides between equal gains."""


def _order(row: ProposedChange, late: Sequence[StragglerClaim]) -> _PlaceInList:
    """Return the place of a row: known ways first, by the sure gain.

    Work of all ranks that contains the late work of one rank counts by its gain beyond that rank: the reason why the
    rank is late comes first.
    """
    if row.gain is None:
        return _PlaceInList(0, 0.0, 0.0, row.about)
    beyond_us = sum(claim.change.gain.value_us for claim in late if claim.change and row.options == claim.within)
    value_us = row.gain.value_us - beyond_us
    sure_us = row.gain.low_us - beyond_us
    group = 1 if row.is_known else 2
    return _PlaceInList(group, -sure_us, -value_us, row.change.title if row.change else row.about)


def _computes(sentences: Sequence[Sentence]) -> bool:
    """Return whether computation of devices is nearly all of the critical path.

    It bounds the job then, whatever the host does.
    """
    bounds = [claim for finding, claims in sentences for claim in claims if finding is BOUND]
    return any(claim.about == "computation" and claim.figure >= 100 * LIMITS.nearly_all for claim in bounds)
