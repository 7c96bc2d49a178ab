"""What a pair of recordings is: two jobs that differ in one thing, and how to ask htagraph for the difference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Change = tuple[str, dict[str, Any]]
"""A method of `htagraph.what_if` and its arguments."""

LOADER = "enumerate(DataLoader)*|*[Ll]oader*"
"""What a difference in the data loader may be put down to."""

PYTHON = "*refresh_cache*|*pause*|*sleep*|*Python*|*perf_counter*|ProfilerStep*"
"""What a difference in Python that is in no operator may be put down to."""

FIX: list[Change] = [("fix_straggler", {"rank": "auto"})]
LOADER_HALF: list[Change] = [("inject", {"rank": 0, "kind": "loader", "factor": 0.5})]
LOADS = {"bound": "Bound by the data loader"}


@dataclass(frozen=True)
class Pair:
    """Two jobs that differ in one thing, and what is true of them."""

    job: str
    """The function of `benchmarks.recorded` that runs it: "module.function"."""
    a: dict[str, Any]
    """Settings of A."""
    b: dict[str, Any]
    """What B's settings have on top of A's, or in their place."""
    change: str
    """What B changes, in words."""
    ask: list[Change] | None
    """The what-if on A that says so; None where no what-if can."""
    blame: str
    """Globs, separated by |, one of which must match what a diff names first."""
    more: dict[str, Any] = field(default_factory=dict)
    """`straggler`: the rank to name in A; `bound`: how the verdict begins; `why`: why it cannot be asked for."""

    def truth(self, name: str) -> dict[str, Any]:
        """Return what truth.json says of this pair."""
        return {
            "pair": name,
            "job": self.job,
            "A": self.a,
            "B": {**self.a, **self.b},
            "change": self.change,
            "ask": [list(each) for each in self.ask] if self.ask else None,
            "blame": self.blame,
            "straggler": None,
            "bound": None,
            **self.more,
        }


def scale(factor: float, **criteria: Any) -> list[Change]:  # noqa: ANN401 - those of graph.select
    """Return the what-if in which selected activities take `factor` times as long."""
    return [("scale", {"factor": factor, **criteria})]


def remove(**criteria: Any) -> list[Change]:  # noqa: ANN401 - those of graph.select
    """Return the what-if in which selected activities are left out."""
    return [("remove", criteria)]
