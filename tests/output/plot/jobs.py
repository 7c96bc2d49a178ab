"""Results of jobs for every figure, usual ones and odd ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd

import htagraph as hg
from htagraph import DependencyGraph
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load, op, step

__all__ = ["HOSTILE", "JOBS", "job", "result_of"]

HOSTILE = (
    '</script><script>document.title="owned"</script><img src=x onerror=alert(1)> <b>&amp; "\'$a$ \u202e' + "x" * 10_000
)
"""A name that is markup, a formula and 10 kB long, and turns the direction of writing."""
JOBS: dict[str, Callable[[], DependencyGraph]] = {
    "demo": lambda: graph_of(DATA / "demo"),
    "CPU only": lambda: graph_of(DATA / "gloo_ddp"),
    "one rank": lambda: hg.load(DATA / "demo", ranks=[0]),
    "no events": lambda: load({0: []}),
    "host only": lambda: load([step(1, 0, 30), op("a", 2, 20), op("b", 5, 3)]),
    "an empty kernel": lambda: load([kernel(COMPUTE, 0, 0)]),
    "a rank without events": lambda: load({0: [launch(0, 1, 1), kernel(COMPUTE, 3, 5, 1)], 1: []}),
    "hostile names": lambda: load([
        op(HOSTILE, 0, 9), launch(1, 1, 1), kernel(HOSTILE, 3, 5, 1), launch(3, 1, 2), kernel(f"{HOSTILE}<", 9, 5, 2),
        launch(5, 1, 3), kernel(COMMUNICATE, 15, 5, 3, stream=9),
    ]),
}  # fmt: skip


@cache
def job(name: str) -> DependencyGraph:
    """Return a job by its name; made once."""
    return JOBS[name]()


def result_of(name: str, graph: DependencyGraph) -> Any:
    """Return what a figure is drawn of."""
    made: dict[str, Callable[[], Any]] = {
        "timeline": lambda: graph,
        "sweep": lambda: hg.sweep(graph, lambda each, _: each, [1.0]),
        "what_if": lambda: hg.what_if(graph).run(),
        "diff": lambda: hg.diff(graph, graph),
        "memory_timeline": lambda: hg.memory.timeline(graph),
    }
    return made[name]() if name in made else getattr(hg, name)(graph)


def many_ranks(table: pd.DataFrame, ranks: int = 512) -> pd.DataFrame:
    """Return the rows of a table's first rank once for each of many ranks."""
    first = table[table["rank"] == table["rank"].min()]
    return pd.concat([first.assign(rank=rank) for rank in range(ranks)], ignore_index=True)
