"""Does a plan name the best changes? ``python -m benchmarks.planned [--only GLOB] [--job PATH ...]``.

For each job, every set of one, two and three offers of `htagraph.plan` is applied by `htagraph.what_if` and replayed in
full: all offers count, also those beyond the number that a plan compares, and pairs that a plan never combines. The
best of these sets stands beside the plan's set of as many changes. A time that several changes of a set make shorter is
as short as the one that takes most of it leaves it: an operator and its kernel, each twice as fast, are not four times
as fast. (`what_if` multiplies; with ``--multiply``, such sets count as much as it says.)

The jobs were chosen before any plan of these jobs was looked at: of the real jobs the four that different programs
wrote and that show several steps or ranks (a tensor parallel language model, a recommender, a data parallel job on
processors, a language model with stacks), and of the simulated regimes the four with a bottleneck of their own (host,
network, one slow rank, pipeline), each with a seed that no other benchmark has. The repository's own jobs are left out
because tests of plans use these.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.findings.plan import offers_of
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import duration_ns, gain_steps
from htagraph.queries.weights import State, initial
from htagraph.simulate import REGIMES, simulate
from htagraph.whatif.scenario import Scenario
from htagraph.whatif.together import Best as FoundSet
from htagraph.whatif.together import Offer, best_sets, savings_of

SIZES = (1, 2, 3)
"""Numbers of changes. Chosen: three is the budget of a plan unless another one is asked for."""
REAL = ("megatron_tp8_a100", "torchrec_v100_equal", "gloo4_cpu", "tracelens/h100_qwen.json.gz")
"""Jobs below the folder of shared traces."""
SIMULATED = {"host_bound": 9001, "communication_bound": 9002, "straggler": 9003, "pipeline": 9004}
"""Regime → seed."""
JITTER = 0.05
"""Spread of simulated durations. Chosen: without one, changes tie."""
TIE_PERCENT = 0.1
"""Percent of the best set's savings within which another set is as good. Chosen: no report prints more digits."""


class Best(NamedTuple):
    """The best of all sets of some size."""

    saved_ns: float
    """How much shorter a usual step is, or the job where it has no usual steps."""
    offers: tuple[str, ...]


def jobs(only: str = "*") -> Iterator[tuple[str, DependencyGraph]]:
    """Yield the name and the graph of each held-out job."""
    shared = Path(os.environ.get("HTAGRAPH_SHARED", "../shared")) / "traces"
    for name in REAL:
        path = shared / name
        if fnmatch.fnmatch(name, only) and path.exists():
            yield name, hg.load(path if path.is_dir() else {0: path})
    for name, seed in SIMULATED.items():
        if fnmatch.fnmatch(name, only):
            job = REGIMES[name]().model_copy(update={"seed": seed, "jitter": JITTER})
            with tempfile.TemporaryDirectory() as folder:  # arguments of events are read from files when asked for
                simulate(job).write(folder, level=1, truth=False)
                yield name, hg.load(folder)


class Replays:
    """Savings of sets of offers, each by a replay of the whole job."""

    def __init__(self, graph: DependencyGraph, offers: list[Offer], *, multiply: bool = False) -> None:
        """Note what each offer does to the job alone."""
        self.graph = graph
        self.multiply = multiply
        self.offers = offers
        self.start = initial(graph)
        self.before_ns = self._duration_ns(Scenario(graph, self.start))
        self.reorders = [self._adds_work(offer) for offer in self.offers]
        self.saved = dict[tuple[int, ...], float]()

    def _duration_ns(self, scenario: Scenario) -> float:
        outcome = scenario.run()
        return duration_ns(outcome.state.graph, outcome.time, self.graph)

    def _adds_work(self, offer: Offer) -> bool:
        """Return True if an offer does more than make times shorter, so that the order of changes may matter."""
        changed = offer.apply(Scenario(self.graph, self.start)).state
        return changed.graph is not self.graph or _is_longer(self.start, changed)

    def saved_ns(self, members: tuple[int, ...]) -> float:
        """Return the savings of a set in the best order of its changes; -inf if these exclude each other."""
        orders: Iterator[tuple[int, ...]] = iter([members])
        if any(self.reorders[member] for member in members):
            orders = permutations(members)
        return max(self._saved_in_order_ns(order) for order in orders)

    def _saved_in_order_ns(self, order: tuple[int, ...]) -> float:
        first = [member for member in order if self.reorders[member]]
        after = [member for member in order if not self.reorders[member]]
        scenario = Scenario(self.graph, self.start)
        try:
            for member in first:
                scenario = self.offers[member].apply(scenario)
            after_ns = self._duration_ns(self._shortened(scenario, after))
        except SelectionError:  # an earlier change has left nothing of what a later one changes
            return float("-inf")
        return (self.before_ns - after_ns) / max(gain_steps(self.graph), 1)

    def _shortened(self, scenario: Scenario, members: list[int]) -> Scenario:
        """Return the job in which each time is the shortest that any of some changes leaves."""
        changed = scenario
        for member in members:
            alone = self.offers[member].apply(changed if self.multiply else scenario)
            if self.multiply:
                changed = alone
                continue
            lag = np.minimum(changed.state.lag, alone.state.lag)
            gap = np.minimum(changed.state.gap, alone.state.gap)
            changed = replace(changed, state=replace(changed.state, lag=lag, gap=gap))
        return changed

    def best(self, size: int) -> Best:
        """Return the best set of at most `size` offers."""
        sets = (members for count in range(1, size + 1) for members in combinations(range(len(self.offers)), count))
        best = Best(0.0, ())
        for members in sets:
            if members not in self.saved:
                self.saved[members] = self.saved_ns(members)
            if self.saved[members] > best.saved_ns:
                best = Best(self.saved[members], tuple(self.offers[member].name for member in members))
        return best


def _is_longer(start: State, changed: State) -> bool:
    return bool((changed.lag > start.lag).any() or (changed.gap > start.gap).any())


def compared(graph: DependencyGraph, *, multiply: bool = False) -> pd.DataFrame:
    """Return one row per number of changes: the set that a search finds beside the best of all, per usual step in µs.

    Offers count alike: a plan itself puts changes with a known way first.
    """
    results = Results(graph)
    offers = offers_of(results)
    savings = savings_of(results.warm_graph, offers)
    job_ns = results.makespan_ns / max(results.steps, 1)
    sets = best_sets(savings, max(SIZES), job_ns)
    replays = Replays(results.warm_graph, offers, multiply=multiply)
    rows = []
    for size in SIZES:
        found = sets[:size][-1] if sets else FoundSet((), 0.0, 0.0)
        found_us = found.saved / 1000
        best = replays.best(size)
        best_us = best.saved_ns / 1000
        lost_percent = 100 * (best_us - found_us) / best_us if best_us > 0 else 0.0
        rows.append({
            "changes": size, "offers": len(replays.offers), "plan_us": found_us, "best_us": best_us,
            "lost_percent": lost_percent, "is_best": lost_percent <= TIE_PERCENT,
            "plan": "; ".join(savings.changes[number].name for number in found.changes), "best": "; ".join(best.offers),
        })  # fmt: skip
    return pd.DataFrame(rows)


def main() -> None:
    """Read the command line."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--only", default="*", help="glob on the names of held-out jobs")
    command.add_argument("--job", type=Path, nargs="*", help="other jobs in their place")
    command.add_argument("--multiply", action="store_true", help="let the factors of changes of one time multiply")
    options = command.parse_args()
    chosen = ((str(path), hg.load(path)) for path in options.job) if options.job else jobs(options.only)
    tables = []
    for name, graph in chosen:
        table = compared(graph, multiply=options.multiply)
        tables.append(table.assign(job=name))
        print(f"\n{name}: {table['offers'].iloc[0]} offers", flush=True)
        print(table[["changes", "plan_us", "best_us", "lost_percent", "is_best"]].round(2).to_string(index=False))
        for row in table[~table["is_best"]].itertuples():
            print(f"{row.changes} changes\n  plan: {row.plan}\n  best: {row.best}", flush=True)
    every = pd.concat(tables)
    counts = every.groupby("changes")["is_best"].agg(["sum", "count"])
    for size, (best, count) in zip(counts.index, counts.to_numpy(), strict=True):
        lost = every.loc[every["changes"] == size, "lost_percent"].max()
        print(
            f"{size} changes: the plan is the best of all sets in {best} of {count} jobs; it loses {lost:.1f} % at most"
        )
    whole = every.groupby("job")["is_best"].all()
    print(f"best with every number of changes: {whole.sum()} of {len(whole)} jobs")


if __name__ == "__main__":
    main()
