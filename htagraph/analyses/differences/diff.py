"""Why one job's steps take longer than another's: the change of the critical path, call path by call path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from htagraph.analyses.differences.alignment import Alignment, align
from htagraph.analyses.differences.compare import change_words
from htagraph.analyses.differences.compared_parts import ComparedPart, parts_of
from htagraph.analyses.differences.effects import Effects, effects
from htagraph.analyses.differences.step_change import StepChange, change_between
from htagraph.core.arrays import Array, texts_of
from htagraph.core.kinds import ADDED, ActivityKind, of_kinds
from htagraph.core.naming import short_name, stable_name
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import IntSelector
from htagraph.queries.paths import CATEGORIES, CriticalPath

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["Diff", "diff"]

_MAX_EQUAL_SHARE = 0.001
"""Share of the step time; chosen: less is no change. Doubled, changes of 0.1 to 0.2 % are called none."""
_ENTRY = ("path", "place", "category", "before_ns", "after_ns", "before_us", "after_us")
TABLE = Table(
    "Change of the critical path per step, by call path",
    Col("path name kind category", "str"),
    Col("before_us after_us"),
    Col("change_us", doc="on the critical path in a usual step; the changes sum to that of the usual step"),
    Col("change_percent", doc="``change_us`` as a share of the step time before"),
    Col("before_count after_count", doc="activities per rank and step, on the critical path or not"),
    Col("change", "str", "``added``, ``removed``, ``more``, ``fewer``, ``same``, by these counts"),
    Col("renamed", "str", "the name in the job after, of device work whose name differs; else empty"),
    Col("before_ns after_ns", "int64", "time on the critical path in all steps; the rows sum to the window"),
)
_ONLY_IN = "Call paths only in the job {side}, per rank and step (critical: with their device work)"
ADDED_PATHS = Table(
    _ONLY_IN.format(side="after"),
    Col("path name kind", "str"),
    Col("count_per_step total_us critical_us"),
)
REMOVED_PATHS = ADDED_PATHS.titled(_ONLY_IN.format(side="before"))
RENAMED = Table("Kernels replaced by others, under the same call path", Col("path before after", "str"))
STEP_TIMES = Table(
    "Steps that were compared", Col("before_step after_step", "int64"), Col("before_us after_us change_us")
)


@dataclass(frozen=True, eq=False)
class Diff:
    """How the critical paths of two jobs differ; made by `htagraph.diff`. Times are per step."""

    before: CriticalPath
    after: CriticalPath
    parts: tuple[ComparedPart, ComparedPart]
    alignment: Alignment
    of_runs: StepChange | None = None
    """The change of the usual step over several runs of the jobs, of which these are two."""

    def __repr__(self) -> str:
        return f"Diff({self.before_us / 1000:,.3f} → {self.after_us / 1000:,.3f} ms per {self.unit})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the change in one line, and a short table of the largest contributions."""
        line = f"{self.before_us / 1000:,.3f} → {self.after_us / 1000:,.3f} ms per {self.unit}"
        columns = ["name", "category", "before_us", "after_us", "change_us", "change"]
        table = self.to_frame().head(8)
        on_device = np.array([ActivityKind[kind.upper()].on_device for kind in table["kind"]], np.bool_)
        table = table.assign(name=table["name"].map(short_name).where(on_device, table["name"]))[columns]
        change = f"{self.change_us / 1000:+,.3f} ms, {self.change_percent:+.1f} %"
        return f"<p><b>{escape(line)}</b> ({change})</p>{table.to_html(index=False, float_format='{:,.1f}'.format)}"

    @property
    def unit(self) -> str:
        """``step``, or ``job`` where whole jobs are compared."""
        return "step" if self.parts[0].steps else "job"

    @property
    def before_us(self) -> float:
        """How long a usual step of the job before takes, µs: the median over steps, from the end of one to the next.

        On hosts, it is from begin to begin. That is the figure of `summary`: neither steps that warm up nor the step at
        the edge of a recording count. Of whole jobs, it is all their time.
        """
        return self.parts[0].usual_ns(self.parts[0].graph.time) / 1000

    @property
    def after_us(self) -> float:
        """How long a usual step of the job after takes, µs."""
        return self.parts[1].usual_ns(self.parts[1].graph.time) / 1000

    @property
    def change_us(self) -> float:
        """Increase of the usual step from before to after, µs; negative if steps became shorter."""
        return self.after_us - self.before_us

    @property
    def change_percent(self) -> float:
        """`change_us` in percent of the time before; infinite where that is 0."""
        if self.before_us:
            return 100 * self.change_us / self.before_us
        return 0.0 if not self.after_us else float("inf")

    @property
    def is_same(self) -> bool:
        """Whether the usual step changed by at most 0.1 %, which is no change."""
        return abs(self.change_us) <= _MAX_EQUAL_SHARE * self.before_us

    @cached_property
    def change(self) -> StepChange:
        """The change of the usual step, with its 99 % interval, as steps of one job differ."""
        return self.of_runs or change_between(self.parts)

    @cached_property
    def entries(self) -> pd.DataFrame:
        """The exact time of each place on the two critical paths.

        One row per ``path``, ``place`` (int64, see `Alignment`) and ``category`` (int64, index into
        `htagraph.queries.paths.CATEGORIES`) with ``before_ns`` and ``after_ns`` (int64), whose sums are the
        lengths of the two windows, and ``before_us`` and ``after_us`` (float64), whose sums are the usual steps.
        """
        both = (self.before, self.after)
        paths = zip(self.parts, both, self.alignment.path, self.alignment.place, (1, 0), strict=True)
        table = pd.concat([_timed(*each) for each in paths])
        return table.groupby(["path", "place", "category"], as_index=False).sum()[[*_ENTRY]]

    @described(TABLE)
    def to_frame(self, *, each: bool = False) -> pd.DataFrame:
        """Return how each call path contributes to the change of the step time, the largest contribution first.

        The time of a call path is the time that its own activities spend on the critical path, without the activities
        inside them; waits, pauses and latencies count for the activity that they delay. ``category`` is documented at
        `CriticalPath.to_frame`.

        Args:
            each: one row per place instead of one per path. A place is a path and a position among equal siblings: the
                first, second, … call of that name.

        Returns:
            One row per call path and category: {columns}.
        """
        by = "place" if each else "path"
        times = {column: (column, "sum") for column in _ENTRY[3:]}
        rows = self.entries.groupby([by, "category"], as_index=False).agg(path=("path", "first"), **times)
        if by == "path":
            rows = rows.loc[:, ~rows.columns.duplicated()]
        path = rows["path"].to_numpy()
        before, after = rows["before_us"], rows["after_us"]
        count, tree = self._counts(by)[:, rows[by].to_numpy()], self.alignment
        table = TABLE.frame({
            "path": texts_of(tree.texts, path),
            "name": texts_of(tree.names, path),
            "kind": texts_of(tree.kinds, path),
            "category": texts_of(CATEGORIES, rows["category"].to_numpy()),
            "before_us": before,
            "after_us": after,
            "change_us": after - before,
            "change_percent": 100 * (after - before) / (self.before_us or np.nan),
            "before_count": count[0] / self.parts[0].repeats,
            "after_count": count[1] / self.parts[1].repeats,
            "change": change_words(count, [part.repeats for part in self.parts]),
            "renamed": [tree.renamed.get(number, "") for number in path.tolist()],
            "before_ns": rows["before_ns"],
            "after_ns": rows["after_ns"],
        })  # fmt: skip
        order = np.lexsort((-table["before_us"].to_numpy(), -table["change_us"].abs().to_numpy()))
        return table.iloc[order].reset_index(drop=True)

    def summary(self) -> pd.DataFrame:
        """Return how the change divides by rank, category, cause, operator, kernel and module.

        Returns:
            One row per ``group`` and ``key`` (str; see `CriticalPath.summary`), of each group the largest change
            first: ``before_us``, ``after_us``, ``change_us`` (float64, on the critical path per step; the changes of
            each group sum to that of the usual step), ``change_percent`` (float64: of the step before).
        """
        sides = []
        for word, part, path in zip(("before", "after"), self.parts, (self.before, self.after), strict=True):
            table = path.summary(part.usual_times(path))
            table["key"] = table["key"].map(stable_name)  # steps have one name
            sides.append(table.groupby(["group", "key"])["time_us"].sum().rename(f"{word}_us"))
        table = pd.concat(sides, axis=1).fillna(0.0).astype("float64")
        table["change_us"] = table["after_us"] - table["before_us"]
        table["change_percent"] = 100 * table["change_us"] / (self.before_us or np.nan)
        table = table.reset_index().astype({"group": "str", "key": "str"})
        order = np.lexsort((-table["change_us"].abs().to_numpy(), table["group"].to_numpy()))
        return table.iloc[order].reset_index(drop=True)

    @property
    def added(self) -> pd.DataFrame:
        """Call paths that only the job after has.

        One row per outermost call path that the other job lacks, the longest or most critical one first: ``path``,
        ``name``, ``kind`` (str), ``count_per_step``, ``total_us`` (float64: its activities per rank and step, and how
        long these calls last), ``critical_us`` (float64: of it and all that lies in it, device work that it launched
        included, on the critical path per step; may be more, as devices work on after the call).
        """
        return self._one_sided(1)

    @property
    def removed(self) -> pd.DataFrame:
        """Call paths that only the job before has; the columns of `added`."""
        return self._one_sided(0)

    @property
    def renamed(self) -> pd.DataFrame:
        """Kernels replaced by others, or renamed, under the same call path: ``path``, ``before``, ``after`` (str)."""
        tree, numbers = self.alignment, np.array(sorted(self.alignment.renamed), np.int64)
        counts = self._counts("path")[:, numbers] if len(numbers) else np.zeros((2, 0))
        numbers = numbers[(counts > 0).all(axis=0)]
        return pd.DataFrame({
            "path": texts_of(tree.texts, numbers),
            "before": texts_of(tree.names, numbers),
            "after": pd.array([tree.renamed[number] for number in numbers.tolist()], dtype="str"),
        })  # fmt: skip

    def causes(self, count: int = 10) -> pd.DataFrame:
        """Return which operators and kernels made the difference: the effect of each one's change on the step time.

        The critical path shows where a step spends its time, not how long the step would take without an activity:
        something else may become critical. So a job is replayed several times, each time with the own time of one
        operator, call or kernel as in the other job, call path by call path. Work that takes longer in the job after is
        set back in the job after; work that takes less is changed in the job before. Work that one of the jobs does not
        have takes 0 in that job, and waits for no device. Where all changes together explain the step time and no sum
        of single changes does, each outermost call that only one job has is replayed with everything inside it: a copy
        and the wait for the copy hide each other.

        Args:
            count: how many names to replay, those whose own time changed most first; and as many of the outermost
                calls.

        Returns:
            One row per name, the likeliest cause first: ``name`` (str: short name; the own time of steps is ``Python
            between operators``), ``kind`` (str), ``before_us``, ``after_us``, ``change_us`` (float64: own time per rank
            and usual step), ``effect_us`` (float64: by how much the usual step is longer because of that), ``rank``
            (int64: the rank whose own time changed most, -1 if the jobs have different ranks), ``rank_change_us``
            (float64: by how much, per step), ``whole`` (bool: times and effect are those of the outermost calls of that
            name that only one job has, with all inside them, and not the own time; what lies inside is in no other
            row), ``plus_minus_us`` (float64: half the 99 % interval of ``change_us``, as steps differ; NaN if unknown).
            Rows whose change lies within that, or whose effect is against the change, come last. Effects need not sum
            to the change: if two things delay the same moment, one alone may have no effect; and dependencies may have
            changed. Waiting for communication on host threads is no own time; its effect counts for the communication.
            Rows are ordered by their effect in the direction of the change; where the step did not change beyond
            chance, by their own time's change.
        """
        return self.effects(count).to_frame()

    def effects(self, count: int = 10) -> Effects:
        """Return the rows of `causes`, and the effect of all changes of work together."""
        if count not in self._effects:
            change = 0.0 if self.is_same or self.change.shows_none else self.change_us
            self._effects[count] = effects(self.alignment, self.parts, count, change)
        return self._effects[count]

    @cached_property
    def _effects(self) -> dict[int, Effects]:
        return {}

    def step_times(self) -> pd.DataFrame:
        """Return each step's time, paired in order.

        Returns:
            One row per pair: ``before_step``, ``after_step`` (int64), ``before_us``, ``after_us``, ``change_us``
            (float64): the times whose median is `before_us` or `after_us`.
        """
        steps, times = zip(*(part.step_lengths(part.graph.time) for part in self.parts), strict=True)
        pairs = min(map(len, steps))
        table = pd.DataFrame({
            "before_step": steps[0][:pairs], "after_step": steps[1][:pairs],
            "before_us": times[0][:pairs] / 1000, "after_us": times[1][:pairs] / 1000,
        })  # fmt: skip
        return table.assign(change_us=table["after_us"] - table["before_us"])

    def plot(self) -> Figure:
        """Return the figure of the difference, a waterfall; see `htagraph.plot.diff`."""
        from htagraph.output.plot.what_if import diff as figure

        return figure(self)

    def sentences(self) -> list[str]:
        """Return in words how much the step time changed and why, the most important first."""
        from htagraph.findings.verbs.diff import diff_sentences

        return diff_sentences(self)

    def _counts(self, by: str) -> Array:
        """Return how many activities of each path or place both jobs have in what is compared."""
        numbers = self.alignment.path if by == "path" else self.alignment.place
        size = max((int(each.max(initial=-1)) for each in numbers), default=-1) + 1
        pairs = zip(numbers, self.parts, strict=True)
        return np.stack([part.sums(each, size)[0] for each, part in pairs])

    def _one_sided(self, side: int) -> pd.DataFrame:
        tree, part = self.alignment, self.parts[side]
        count, total = part.sums(tree.path[side], len(tree))
        only = (count > 0) & (self._counts("path")[1 - side] == 0)
        root = tree.outermost(only)
        sided = self.entries[only[self.entries["path"].to_numpy()]] if len(tree) else self.entries
        critical = np.zeros(len(tree))
        np.add.at(critical, root[sided["path"].to_numpy()], sided["after_us" if side else "before_us"].to_numpy())
        rows = np.flatnonzero(only & (root == np.arange(len(tree))))
        table = ADDED_PATHS.frame({
            "path": texts_of(tree.texts, rows), "name": texts_of(tree.names, rows), "kind": texts_of(tree.kinds, rows),
            "count_per_step": count[rows] / part.repeats, "total_us": total[rows] / part.repeats / 1000,
            "critical_us": critical[rows],
        })  # fmt: skip
        order = np.argsort(-table[["total_us", "critical_us"]].max(axis=1).to_numpy(), kind="stable")
        return table.iloc[order].reset_index(drop=True)


def diff(
    before: DependencyGraph,
    after: DependencyGraph,
    *,
    steps: IntSelector = None,
    steps_after: IntSelector = None,
    ranks: IntSelector = None,
) -> Diff:
    """Return why the steps of one job take longer than those of another.

    A step lasts from its end to the end of the next one, on hosts from begin to begin (see `Diff.before_us`). The
    critical path of each job tiles the time of all steps; of those that do not stand out by their length, what lies on
    the path makes up the usual step, so that its change is the sum of the changes of what lies on the path. Activities
    are aligned by call path: the names of the annotations, operators and modules around the activity, for device work
    around its launch. Siblings of equal names are aligned by order. Steps, ranks and threads are taken together.

    Args:
        before: a job.
        after: another, such as the same after a change.
        steps: the steps of both jobs, all from the first to the last given; None for all, and for the whole jobs where
            one of them has no steps.
        steps_after: the steps of `after`, where they are others.
        ranks: the ranks among which the rank that says how long a step takes is chosen, None for all.

    Returns:
        The difference: `Diff.change_us`, `.to_frame()` (call path by call path; the changes sum to that of the step
        time), `.summary()` (by rank, category, cause, operator, kernel, module), `.added`, `.removed`, `.renamed`,
        `.causes()` (which changes of work made the difference, by replay), `.step_times()`, `.sentences()`.

    Raises:
        SelectionError: a step or rank that one of the jobs does not have, or no step.
        TypeError: a job is no graph.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> change = hg.diff(graph, graph, steps=6, steps_after=7)
        >>> bool(abs(change.to_frame()["change_us"].sum() - change.change_us) < 1e-6)
        True
    """
    parts = parts_of(before, after, steps, steps_after, ranks)
    paths = [part.path() for part in parts]
    return Diff(paths[0], paths[1], parts, align(before, after))


def _timed(part: ComparedPart, path: CriticalPath, number: Array, place: Array, first: int) -> pd.DataFrame:
    """Return the time of each segment; with `first` that of the job before."""
    segments = path.segments
    kind = path.graph.activities.kind[segments.activity]
    whose = np.where(of_kinds(kind, ADDED), segments.place, segments.activity)
    length, usual = segments.length.astype(np.int64), part.usual_times(path) / 1000
    return pd.DataFrame({
        "path": number[whose], "place": place[whose], "category": segments.category.astype(np.int64),
        "before_ns": length * first, "after_ns": length * (1 - first),
        "before_us": usual * first, "after_us": usual * (1 - first),
    })  # fmt: skip
