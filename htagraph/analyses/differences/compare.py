"""How often each name occurs in two jobs, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from htagraph.analyses.differences.alignment import align
from htagraph.analyses.differences.compared_parts import ComparedPart, parts_of
from htagraph.core.arrays import Array, distinct
from htagraph.core.errors import check_choice
from htagraph.core.naming import short_name, stable_name
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import IntSelector

__all__ = ["CHANGES", "change_words", "compare"]

TABLE = Table(
    "Activities of both jobs, per rank and step",
    Col("name", "str"),
    Col("on_device", "bool"),
    Col("before_count after_count", "int64"),
    Col("change_count", "int64", "after - before"),
    Col("before_us after_us", doc="summed durations in each job"),
    Col("change_us", doc="after - before"),
    Col("before_per_step_count after_per_step_count change_per_step_count", doc="per rank and step"),
    Col("before_per_step_us after_per_step_us change_per_step_us", doc="per rank and step"),
    Col("change", "str", "``added``, ``removed``, ``more``, ``fewer`` or ``same``, by counts per rank and step"),
)

CHANGES = ("same", "more", "fewer", "added", "removed")
"""How often something occurs after, compared with before, per rank and step."""


@described(TABLE)
def compare(  # noqa: PLR0913 - one keyword per criterion
    before: DependencyGraph,
    after: DependencyGraph,
    *,
    by: Literal["name", "short_name", "path"] = "name",
    device: Literal["all", "host", "device"] = "all",
    steps: IntSelector = None,
    steps_after: IntSelector = None,
    ranks: IntSelector = None,
) -> pd.DataFrame:
    """Return how often and how long each activity occurs in two jobs, name by name.

    A duration is that of the whole activity, with everything inside it. Counts and times per step are divided by the
    number of pairs of rank and step that each job recorded, so that jobs of different size can be compared. Parts of
    names that differ between runs are left out: numbers of steps and lines, addresses, and the linker's mangling.

    Args:
        before: a job.
        after: another.
        by: ``"name"``; ``"short_name"``: without template arguments, parameters and return type; ``"path"``: by call
            path, the names of operators, annotations and modules around it.
        device: only activities on the ``"host"`` or the ``"device"``.
        steps: the steps of both jobs, all from the first to the last given; None for all, and for the whole jobs where
            one of them has no steps.
        steps_after: the steps of `after`, where they are others.
        ranks: the ranks of both jobs; None for all.

    Returns:
        One row per name and side, those first whose time per step changed most: {columns}.

    Raises:
        SelectionError: a step or rank that one of the jobs does not have, or no step.
        TypeError: a job is no graph.
        ValueError: `by` or `device` is something else.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> hg.compare(graph, graph)["change"].unique().tolist()
        ['same']
    """
    check_choice("by", by, ("name", "short_name", "path"))
    check_choice("device", device, ("all", "host", "device"))
    parts = parts_of(before, after, steps, steps_after, ranks)
    key, names, on_device = _keys(parts, by)
    chosen = np.ones(len(names), np.bool_) if device == "all" else on_device == (device == "device")
    sums = [part.sums(each, len(names)) for part, each in zip(parts, key, strict=True)]
    count, time = (np.stack(each) for each in zip(*sums, strict=True))
    rows = np.flatnonzero(chosen & (count.sum(axis=0) > 0))
    count, time, repeats = count[:, rows], time[:, rows], [part.repeats for part in parts]
    columns: dict[str, Any] = {
        "name": pd.array(np.array(names, object)[rows], dtype="str"),
        "on_device": on_device[rows],
    }
    shown = {"count": count, "us": time / 1000}
    for word, (old, new) in shown.items():
        columns |= {f"before_{word}": old, f"after_{word}": new, f"change_{word}": new - old}
    for word, values in shown.items():
        old, new = (each / many for each, many in zip(values, repeats, strict=True))
        columns |= {f"before_per_step_{word}": old, f"after_per_step_{word}": new}
        columns[f"change_per_step_{word}"] = new - old
    columns["change"] = change_words(count, repeats)
    table = pd.DataFrame(columns)
    order = np.lexsort((table["name"], -table["change_per_step_us"].abs().to_numpy()))
    return table.iloc[order].reset_index(drop=True)


def change_words(count: Array, repeats: Sequence[int]) -> pd.api.extensions.ExtensionArray:
    """Return the word of `CHANGES` for each column of counts (before, after), which were recorded so many times."""
    old, new = count[0] * repeats[1], count[1] * repeats[0]
    code = np.select([old == new, old == 0, new == 0, new > old], [0, 3, 4, 1], 2)
    return pd.array(np.array(CHANGES, object)[code], dtype="str")


def _keys(parts: tuple[ComparedPart, ComparedPart], by: str) -> tuple[tuple[Array, Array], list[str], Array]:
    """Return (the key of each activity of both jobs, the name of each key, whether it is on the device)."""
    if by == "path":
        tree = align(parts[0].graph, parts[1].graph)
        return tree.path, tree.texts, tree.on_device
    shown = short_name if by == "short_name" else str
    codes: dict[str, int] = {}
    keys = []
    for part in parts:
        names, acts = part.graph.names, part.graph.activities
        used = distinct(acts.name[part.activities], len(names))
        table = np.full(len(names) + 1, -1, np.int64)
        for i in used.tolist():
            table[i] = codes.setdefault(shown(stable_name(names[i])), len(codes))
        code = table[acts.name]
        keys.append(np.where(code < 0, -1, 2 * code + acts.on_device))
    names_of = [name for name in codes for _ in range(2)]
    return (keys[0], keys[1]), names_of, np.arange(len(names_of)) % 2 == 1
