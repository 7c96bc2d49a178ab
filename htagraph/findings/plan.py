"""Plan: which changes save most together, of those that findings propose, and what each adds to the others."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from htagraph.core.errors import check_type
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table, described
from htagraph.findings.change import interval_us, per_step, saved_us, steps_of, usual_us
from htagraph.findings.changes import ProposedChange, changes_of
from htagraph.findings.gain import is_unknown, rows_that_gain
from htagraph.findings.limits import MIN_PERCENT, SHORT_LIST
from htagraph.findings.phrases import Suggestion, and_list, command_line, plural, share_text, time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import ChangeError
from htagraph.trace.readers import setting_for
from htagraph.whatif.interval import telling
from htagraph.whatif.options import CHANGES
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.scenario import Scenario
from htagraph.whatif.together import Best, Offer, Savings, best_sets, outcome_of, savings_of

__all__ = ["CURVE", "TABLE", "BestChanges", "offer_of", "offers_of", "plan", "plan_of"]

_MOST_CHANGES = 16
"""How many changes a plan is chosen among at most, those that save most alone, and so the largest budget. Chosen: all
sets of three of them are compared. Doubled, that takes eight times as long, or the best plan is not known."""
_APART = 0.03
"""Share of what a plan saves from which the sum of its parts alone is told to be another figure. Chosen: smaller
differences are within the error of a prediction. Doubled, fewer plans say so."""
TABLE = Table(
    "The best changes together",
    Col("change", "str", "what is done"),
    Col("options", "str", "the options of ``htagraph what-if`` that make it"),
    Col("alone_us", doc="what it saves alone, per usual step; of a job without usual steps, of the whole job"),
    Col("adds_us", doc="what it adds to the changes above it; these add up to what all save"),
    Col("adds_last_us", doc="what it adds to all the others: so much is lost without it"),
)
CURVE = Table(
    "What more changes save",
    Col("changes", "int64", "how many"),
    Col("saved_us", doc="what the best of these sets saves, in the unit of the plan"),
    Col("saved_percent", doc="of a usual step, or of the job"),
    Col("possible_us", doc="what no set of so many of these changes exceeds; `saved_us` where the set is the best one"),
    Col("how", "str", '``"optimal"``, known ways first, or how far from the best one the set may be'),
    Col("which", "str", "the names of the changes"),
)


@dataclass(frozen=True, eq=False)
class BestChanges:
    """The changes that save most together."""

    changes: pd.DataFrame
    """One row per change, in the order of `options`: each adds most to the rows above."""
    curve: pd.DataFrame
    """One row per number of changes, up to the budget."""
    saved_us: float
    """What all save together: per usual step, or of the whole job where it has none, µs."""
    interval_us: tuple[float, float]
    """The 90 % interval of `saved_us` for the recorded run, as `Outcome.saved_range_ns` gives it."""
    per_step: bool
    """Whether figures are per usual step."""
    without_start_up: bool
    """Whether figures are of a job that is shorter than recorded: without its first calls."""
    how: str
    """``"optimal"``: no set of so many changes, known ways first, saves more; or how far from that the set may be."""
    among: int
    """Among how many changes the plan was chosen."""
    left_out: tuple[str, ...]
    """Changes of findings that are in no plan, as nothing describes a set with them; see `Savings.left_out`."""
    left_out_us: tuple[float, ...]
    """What each of these saves alone, in the unit of `saved_us`."""
    unknown_us: float
    """The further gain beside all changes if there were no time without any event, for which no change is known, in the
    unit of `saved_us`; 0 where Python was recorded."""
    outcome: Outcome
    """The prediction with all changes."""
    options: tuple[str, ...]
    """The options of ``htagraph what-if`` that make all changes, in the order of `changes`."""
    among_known: int = 0
    """How many of these have a known way; faster code is put beside such changes, never in their place."""
    proposed: tuple[ProposedChange, ...] = ()
    """The changes as they stand in `htagraph.changes`, the first thing to do first."""
    budget: int = 0
    """How many changes the plan may have."""
    meeting: tuple[str, ...] = ()
    """Changes outside of the plan that mostly shorten time which the plan shortens, or exclude a part of it."""
    leaves_known: bool = False
    """Whether one of these changes has a known way."""

    def __repr__(self) -> str:
        names = " · ".join(self.changes["change"]) or "nothing saves anything"
        return f"BestChanges({names}: {self.saved_us:.1f} µs less, {self.how} of {self.among})"

    def to_frame(self) -> pd.DataFrame:
        """Return `changes`."""
        return self.changes

    @property
    def is_best(self) -> bool:
        """Whether no change that was left out saves more alone than all changes of the plan together."""
        return max(self.left_out_us, default=0.0) <= self.saved_us

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the plan's tables by name: the unit of their times, and whether the changes are the best."""
        unit = ", per step" if self.per_step else ""
        changes = TABLE.title if self.is_best else "Changes that save together"
        return {"plan": f"{changes}{unit}", "curve": f"{CURVE.title}{unit}"}

    def sentences(self, inputs: Sequence[str]) -> list[str]:
        """Return what the plan says; `inputs` are the words that choose what is read."""
        return [self.answer(inputs), *self.caveats(), *self.details()]

    def answer(self, inputs: Sequence[str]) -> str:
        """Return the time that the changes save together, with the command that predicts it."""
        if not len(self.changes):
            return "No change that was compared saves anything."
        unit = " per step" if self.per_step else ""
        rows = self.changes
        low, high = (time_text(end) if end else "0" for end in self.interval_us)
        share = share_text(float(self.curve["saved_percent"].iloc[-1]))
        names = "; ".join(
            f"{name}, {time_text(us)}{' more' if at else ''}"
            for at, (name, us) in enumerate(zip(rows["change"], rows["adds_us"], strict=True))
        )
        scope = "" if self.per_step or self.without_start_up else " of the job"
        saved = f"{time_text(self.saved_us)}{unit} ({share}{scope}; 90 %: {low} to {high})"
        count = f"{plural(len(rows), 'change')} together save" if len(rows) > 1 else "1 change saves"
        said = f"{'Apart from start-up, ' * self.without_start_up}{count} {saved}: {names}"
        with_start_up = "; the command counts start-up, too" * self.without_start_up
        return Suggestion(f"{said}{with_start_up}", command_line("what-if", inputs, *self.options))

    def caveats(self) -> list[str]:
        """Return how sure the best set is, and the gains that are not known."""
        count = len(self.changes)
        least = [f"Among the {self.among} compared, this is {self.how}."] if count and self.how != "optimal" else []
        meeting = self._meeting() if self.leaves_known else []
        return [*least, *meeting, *self._without_change(), *(_doubt(self.outcome) if count else [])]

    def details(self) -> list[str]:
        """Return the changes of the comparison, and how changes bear on each other."""
        rows = self.changes
        if not len(rows):
            return []
        lines = []
        if self.how == "optimal" and self.among > len(rows):
            count, verb = (plural(len(rows), "change"), "save") if len(rows) > 1 else ("change", "saves")
            lines.append(self._beyond(count, verb))
        lines += [] if self.leaves_known else self._meeting()
        alone = float(rows["alone_us"].sum())
        if len(rows) > 1 and abs(alone - self.saved_us) >= _APART * self.saved_us:
            reason = "some of them free time that another change hid"
            if alone > self.saved_us:
                reason = "some of them free the same time"
            lines.append(f"The gains of each change alone add up to {time_text(alone)}: {reason}.")
        return lines

    def _beyond(self, count: str, verb: str) -> str:
        """Return that the plan is the best one, among changes with a known way, and then among others."""
        if not 0 < self.among_known < self.among:
            return f"No other {count} of the {self.among} compared {verb} more."
        if all(row.is_known for row in self.proposed) and len(self.proposed) >= self.budget:
            with_way = f"{self.among_known} for which a way is known"
            left_out = "code that would have to be faster was not compared with them"
            if len(self.proposed) == self.among_known:
                return f"These are all {with_way}; {left_out}."
            return f"No other {count} of the {with_way} {verb} more; {left_out}."
        return f"Changes with a known way come first. Of the {self.among} compared, no other one adds more."

    def _meeting(self) -> list[str]:
        """Return the changes that were compared only by the time that they shorten beside the plan."""
        if not self.meeting:
            return []
        further = len(self.meeting) - SHORT_LIST
        more = [plural(further, "more change")] if further > 0 else []
        names = and_list([*self.meeting[:SHORT_LIST], *more])
        they = "they mostly shorten" if len(self.meeting) > 1 else "it mostly shortens"
        return [f"Not in the set, as {they} the same time once more: {names}."]

    def _without_change(self) -> list[str]:
        """Return what could save time, but is in no plan: changes that add work, and time that nothing describes."""
        lines = []
        if self.left_out:
            gains = zip(self.left_out, self.left_out_us, strict=True)
            names = and_list([f"{name} ({time_text(us)} alone)" for name, us in gains])
            more = ", which saves more than these together" * (not self.is_best)
            lines.append(f"Not compared, as transfers share links then: {names}{more}.")
        if self.unknown_us:
            time = f"{time_text(self.unknown_us)}{' per step' * self.per_step}"
            modules = setting_for(self.outcome.baseline.traces.values(), "modules")
            how = f": record with {modules} to see it" if modules else ""
            no_change = "No further change is known" if len(self.changes) else "No change is known"
            lines.append(f"{no_change} for {time} without any event{how}.")
        return lines


def _doubt(outcome: Outcome) -> list[str]:
    """Return why another run may save more or less, if much more or less; the interval is that of the recorded run."""
    if not outcome.doubts:
        return []
    cause = outcome.interval_cause
    more = f"a recording {telling(outcome.baseline, cause)} shows more"
    return [f"Note: another run may save much more or less, as {cause}; {more}."]


@described(TABLE)
def plan(graph: DependencyGraph, *, budget: int = 3) -> BestChanges:
    """Return which changes save most together, among what findings propose and operators twice as fast.

    A change is what a finding proposes: no waiting for the device, a straggler as fast as its peers, a loader that
    keeps up, a remedy; or it makes a kernel, operator, function or group of ranks twice as fast, since none can take no
    time. Start-up, which no change takes away, is left out. Gains do not add up: two changes may free the same time, or
    one may hide behind the other. Each set is predicted as `htagraph.what_if` with these changes predicts it, to the
    ns, but from the job's runs, which are made once; a time that several changes shorten is as short as the one that
    takes most leaves it. A change that adds next to nothing beside the others, such as a part of one of these, is not
    chosen.

    Args:
        graph: the job.
        budget: how many changes at most.

    Returns:
        A `BestChanges`; its ``changes`` have one row per change: {columns}.

    Raises:
        ChangeError: `budget` is no whole number from 1 to 16.

    Example:
        >>> import htagraph as hg
        >>> plan = hg.plan(hg.load("data/demo"), budget=2)
        >>> len(plan.changes), plan.how, bool(abs(plan.changes["adds_us"].sum() - plan.saved_us) < 0.01)
        (2, 'optimal', True)
    """
    check_type(graph, DependencyGraph, "htagraph.plan takes a graph (of a job on workers: job.load([0, 1]))")
    return plan_of(Results(graph), budget)


def plan_of(results: Results, budget: int = 3) -> BestChanges:
    """Return what `plan` does of a job of which some results may be known already."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or not 1 <= budget <= _MOST_CHANGES:
        msg = f"budget={str(budget)[:40]}: give a whole number of changes from 1 to {_MOST_CHANGES}"
        raise ChangeError(msg)
    graph = results.warm_graph
    steps = results.steps
    proposed = _proposed(results)
    proposed = proposed[:1] if budget == 1 else proposed  # what to do first
    head = proposed[0].gain if proposed else None
    is_whole = steps > 1 and head is not None and head.scope == "job"
    savings = savings_of(graph, [offer_of(row) for row in proposed], is_whole=is_whole)
    steps = 1 if is_whole else steps
    job_ns = 1000 * head.makespan_us / max(steps, 1) if head else results.makespan_ns / max(steps, 1)
    known = {row.options for row in proposed if row.is_known}
    first = [number for number, offer in enumerate(savings.changes) if offer.options in known]
    found = best_sets(savings, int(budget), job_ns, first)
    order = _as_commanded(savings, found[-1].changes) if found else ()
    chosen = [savings.changes[number] for number in order]
    outcome = outcome_of(graph, chosen)
    saved = found[-1].saved / 1000 if found else 0.0
    ends = interval_us(outcome) if is_whole else saved_us(outcome)[1]
    changed = _changes(savings, order) if found else TABLE.frame({name: [] for name in TABLE.types})
    low = min(per_step(ends[0], steps), saved) - _unsure_us(proposed, changed)
    high = max(per_step(ends[1], steps), saved)
    has_start_up = bool(results.first_calls) and steps < 2
    alone = {row.change.name: row.gain.per_step_us for row in proposed if row.change and row.gain}
    unknown_us = _unknown_us(results, chosen, outcome, is_whole=is_whole)
    chosen_options = {offer.options for offer in chosen}
    meeting = _meeting(savings, found[-1].changes) if found else ()
    ways = {offer_of(row).name for row in proposed if row.is_known}
    return BestChanges(
        changes=changed,
        curve=_curve(savings, found, job_ns),
        saved_us=saved,
        interval_us=(max(low, 0.0), high),
        per_step=steps > 1,
        without_start_up=has_start_up,
        how=_how(found[-1]) if found else "optimal",
        among=len(savings.changes),
        left_out=savings.left_out,
        left_out_us=tuple(alone[name] for name in savings.left_out),
        unknown_us=per_step(unknown_us, steps),
        outcome=outcome,
        options=tuple(word for offer in chosen for word in offer.options),
        among_known=len(first),
        proposed=tuple(row for row in proposed if row.options in chosen_options),
        budget=int(budget),
        meeting=meeting,
        leaves_known=bool(ways.intersection(meeting)),
    )


def _as_commanded(savings: Savings, which: tuple[int, ...]) -> tuple[int, ...]:
    """Return a set in the order in which a command makes its changes: changes that replace work come first."""
    first = tuple(number for number in which if number < savings.in_place)
    return (*first, *(number for number in which if number not in first))


def _unknown_us(results: Results, chosen: Sequence[Offer], planned: Outcome, *, is_whole: bool) -> float:
    """Return how much more time is saved without the time without any event, beside the changes of a plan, µs.

    It is 0 where Python was recorded or nothing is unknown, and where the rest is too short to be named.
    """
    kind = results.graph.activities.kind
    rows = [] if (kind == ActivityKind.PYTHON).any() else rows_that_gain(results)
    targets = [str(row["target"]) for row in rows if is_unknown(results, str(row["name"]))]
    if not targets:
        return 0.0
    offers = [_offer_of("time without any event", ("--scale", f"{target}:0")) for target in targets]
    outcome = outcome_of(results.warm_graph, [*chosen, *offers])
    of_job_us = (outcome.saved_ns - planned.saved_ns) / 1000
    further_us = of_job_us if is_whole else usual_us(outcome) - usual_us(planned)
    is_small = 100_000 * further_us < MIN_PERCENT * results.makespan_ns
    return 0.0 if is_small else further_us


def _meeting(savings: Savings, chosen: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of changes that add less than half of their gain alone to the chosen set, or cannot."""
    names = []
    saved = savings.of(tuple(sorted(chosen)))
    for number, offer in enumerate(savings.changes):
        if number in chosen:
            continue
        together = tuple(sorted((*chosen, number)))
        adds = savings.of(together) - saved if savings.may_be(together) else 0.0
        if adds < MOST * savings.of((number,)):
            names.append(offer.name)
    return tuple(names)


def _unsure_us(proposed: Sequence[ProposedChange], changed: pd.DataFrame) -> float:
    """Return what changes that may gain nothing add to a plan, µs.

    Args:
        proposed: the changes that the plan was chosen among.
        changed: the rows of the plan.
    """
    unsure = {row.change.name for row in proposed if row.change and row.gain and row.gain.low_us <= 0}
    return float(changed.loc[changed["change"].isin(unsure), "adds_us"].sum())


def offers_of(results: Results) -> list[Offer]:
    """Return the changes that may be in a plan, the first thing to do first."""
    return [offer_of(row) for row in _proposed(results)]


def _proposed(results: Results) -> list[ProposedChange]:
    """Return the changes that a plan is chosen among, the first thing to do first.

    What may gain nothing is left out where a way is known for something else: a host that takes no time contains every
    change of host code.
    """
    rows = [row for row in changes_of(results) if row.change and row.gain]
    rows = [row for row in rows if row.is_known or not row.is_tuned]  # nobody writes a library anew
    is_any_sure = any(row.is_known and row.gain and row.gain.low_us > 0 for row in rows)
    rows = [row for row in rows if not is_any_sure or (row.gain and row.gain.low_us > 0)]
    return rows[:_MOST_CHANGES]


def offer_of(row: ProposedChange) -> Offer:
    """Return a change for sets of changes."""
    return _offer_of(row.change.name if row.change else row.about, row.options)


def _offer_of(name: str, options: tuple[str, ...]) -> Offer:
    """Return the change that options of the command line describe, for sets of changes."""
    steps = steps_of(options)

    def apply(scenario: Scenario) -> Scenario:
        return reduce(lambda so_far, step: CHANGES[step[0]].read(step[1]).apply(so_far), steps, scenario)

    return Offer(name, options, apply)


def _changes(savings: Savings, which: tuple[int, ...]) -> pd.DataFrame:
    def of(some: Iterable[int]) -> float:
        return savings.of(tuple(sorted(some))) / 1000

    rows = [savings.changes[number] for number in which]
    return TABLE.frame({
        "change": [offer.name for offer in rows],
        "options": [shlex.join(offer.options) for offer in rows],
        "alone_us": [of([number]) for number in which],
        "adds_us": [of(which[: at + 1]) - of(which[:at]) for at in range(len(which))],
        "adds_last_us": [of(which) - of([other for other in which if other != each]) for each in which],
    })  # fmt: skip


def _curve(savings: Savings, found: list[Best], job_ns: float) -> pd.DataFrame:
    return CURVE.frame({
        "changes": [len(each.changes) for each in found],
        "saved_us": [each.saved / 1000 for each in found],
        "saved_percent": [100 * each.saved / job_ns for each in found],
        "possible_us": [each.possible / 1000 for each in found],
        "how": [_how(each) for each in found],
        "which": ["; ".join(savings.changes[number].name for number in each.changes) for each in found],
    })  # fmt: skip


def _how(best: Best) -> str:
    short = best.possible - best.saved
    return f"within {share_text(100 * short / best.possible)} of the best possible" if short > 0 else "optimal"
