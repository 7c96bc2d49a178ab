"""Two jobs that are compared, as the findings on their differences see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.analyses.differences.diff import Diff
from htagraph.analyses.differences.effects import Effects, Key
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import short_name
from htagraph.core.statistics import MOST
from htagraph.findings.finding import Claim
from htagraph.findings.incomplete import Comparison, comparison_of

__all__ = ["ChangedWork", "ComparedJobs", "JobPair", "Side", "compared"]

Side: TypeAlias = Literal["before", "after"]
"""Which of the two jobs."""


class ChangedWork(NamedTuple):
    """Work of one name whose time changed; times are per rank and usual step."""

    name: str
    kind: str
    before_us: float
    after_us: float
    change_us: float
    effect_us: float
    """How much longer the step is because of it, µs."""
    rank: int
    """The rank whose time changed most; -1 where the jobs have different ranks."""
    rank_change_us: float
    """The change on that rank, µs."""
    is_whole: bool
    """Whether the times are of calls with all inside them."""
    plus_minus_us: float
    """Half of the 99 % interval of the change, µs; NaN where it is not known."""
    old_calls: float
    """Activities per rank and step before."""
    new_calls: float
    """Activities per rank and step after."""
    runs_elsewhere: bool
    """Whether both jobs also have the name at other call paths."""
    successor: str
    """The kernel that took its place; empty for none."""

    @property
    def key(self) -> Key:
        """The row of the effects."""
        return self.name, self.kind, self.is_whole

    @property
    def side(self) -> Literal["", "new", "gone"]:
        """Whether only one of the jobs has it, and which."""
        if self.before_us and self.after_us:
            return ""
        return "new" if self.after_us else "gone"

    @property
    def is_beyond_chance(self) -> bool:
        """Whether the change is more than steps of one job differ by."""
        return not abs(self.change_us) <= self.plus_minus_us


class ComparedJobs:
    """Two jobs as they were recorded, and the claims about them, each made once."""

    def __init__(self, parts: Sequence[ComparedPart]) -> None:
        self.parts = parts
        self._claims: dict[Callable[..., Sequence[Claim]], list[Claim]] = {}

    @cached_property
    def records_python(self) -> tuple[bool, bool]:
        """Whether each job has calls of Python functions."""
        before, after = (bool((job.graph.activities.kind == ActivityKind.PYTHON).any()) for job in self.parts)
        return before, after

    def claims(self, when: Callable[..., Sequence[Claim]]) -> list[Claim]:
        """Return the claims of a finding, made once."""
        if when not in self._claims:
            self._claims[when] = list(when(self))
        return self._claims[when]


class JobPair(ComparedJobs):
    """Two jobs, and the results on their difference, each computed once."""

    def __init__(self, diff: Diff) -> None:
        super().__init__(diff.parts)
        self.diff = diff

    @cached_property
    def effects(self) -> Effects:
        """The effects of changed work on the step."""
        return self.diff.effects()

    @cached_property
    def comparison(self) -> Comparison:
        """The parts that the recordings lack, and whether they can be compared."""
        return compared(self.diff.parts)

    @property
    def empty(self) -> list[Side]:
        """The jobs without a recording."""
        sides: dict[Side, int] = {"before": self.diff.before.makespan_ns, "after": self.diff.after.makespan_ns}
        return [side for side, makespan_ns in sides.items() if not makespan_ns]

    @property
    def ranks_count(self) -> int:
        """How many ranks of the job before are compared."""
        return len(self.diff.parts[0].chosen_ranks)

    @property
    def noise_us(self) -> float:
        """How much usual steps of one job differ by, µs; 0 where that is not known."""
        change = self.diff.change
        return self.diff.before_us * change.plus_minus_percent / 100 if change.is_known else 0.0

    @cached_property
    def work(self) -> list[ChangedWork]:
        """The work that changed, the likeliest cause first."""
        effects = self.effects
        renamed = self.diff.renamed.to_dict("records")
        successors = {short_name(row["before"]): short_name(row["after"]) for row in renamed}
        work = []
        for row in effects.to_frame().to_dict("records"):
            name = row["name"]
            of_name = (name, row["kind"])
            old_calls, new_calls = effects.calls.get(of_name, (0.0, 0.0))
            successor = successors.get(name, name)
            work.append(
                ChangedWork(
                    name,
                    row["kind"],
                    row["before_us"],
                    row["after_us"],
                    row["change_us"],
                    row["effect_us"],
                    row["rank"],
                    row["rank_change_us"],
                    row["whole"],
                    row["plus_minus_us"],
                    old_calls,
                    new_calls,
                    bool(row["whole"]) and all(effects.own_us[of_name]),
                    successor if successor != name else "",
                )
            )
        return work

    @cached_property
    def is_other_work(self) -> bool:
        """Whether a job has few of its names, and little of its time, in common with the other job."""
        # of operators or of devices, whichever is more: a compiler replaces operators, not all kernels
        tree = self.diff.alignment
        name = np.unique([short_name(text) for text in tree.names], return_inverse=True)[1]
        operators = np.array([kind == ActivityKind.OP.label for kind in tree.kinds], np.bool_)
        sums = [
            np.bincount(path, graph.activities.duration, len(tree))  # of all that was recorded
            for graph, path in zip(tree.graphs, tree.path, strict=True)
        ]
        common = np.full((2, 2), np.nan)  # by job, of its time and of its names
        for is_compared in (operators, tree.on_device):
            times = [np.bincount(name[is_compared], time[is_compared], len(tree)) for time in sums]
            in_common = (times[0] > 0) & (times[1] > 0)
            with np.errstate(invalid="ignore"):  # a job may have none of these
                shares = [[amount[in_common].sum() / amount.sum() for amount in (time, time > 0)] for time in times]
            common = np.fmax(common, shares)
        return bool((common.min(axis=0) < MOST).all())


def compared(parts: Sequence[ComparedPart]) -> Comparison:
    """Return the parts that two recordings lack, and whether the recordings can be compared."""
    before, after = parts
    return comparison_of(before.graph, after.graph, (len(before.chosen_ranks), len(after.chosen_ranks)))
