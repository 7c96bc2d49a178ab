"""Which sequences of kernels repeat and take time: the report of patterns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.analyses.kernel_patterns import TABLE
from htagraph.core.arrays import Ints
from htagraph.core.errors import nearest_words
from htagraph.core.kinds import FRAMES, ActivityKind
from htagraph.core.naming import LINEAR
from htagraph.findings.finding import ATTRIBUTES
from htagraph.findings.limits import MAX_NAMED
from htagraph.findings.verbs import device_time as findings
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.report import Report, gives, report_on
from htagraph.queries.kernel_sequences import containing, launching_most, work_below

__all__ = ["patterns_report", "repeating_operator"]

_MAX_TRIED = 8
"""Names whose sequences are compared: they launch the most device time. Chosen: a training
step and the layers of a model are among them. Doubled, the answer takes twice as long and names the same."""


def repeating_operator(graph: DependencyGraph, min_length: int = 3) -> str:
    """Return the operator, annotation or module whose repeated sequences of kernels take the most device time.

    Of a sequence that occurs n times, all but the first occurrence are repeated. Of names that are alike in that, the
    one whose own time is shortest: it wraps the least.

    Returns:
        The name; `LINEAR` where nothing repeats.

    Example:
        >>> import htagraph as hg
        >>> repeating_operator(hg.load("data/demo"))
        'autograd::engine::evaluate_function: AddmmBackward0'
    """
    best = (0.0, 0.0)
    chosen = LINEAR
    for name in launching_most(graph, min_length, _MAX_TRIED):
        table = hg.kernel_patterns(graph, name, min_length=min_length)
        share_of_repeats = 1 - 1 / table["count"]
        repeated = table["kernel_us"] * share_of_repeats
        repeated_us = round(float(repeated.sum()), 3)
        own_us = float(table["operator_us"].sum())
        score = (repeated_us, -own_us)
        if repeated_us > 0 and (chosen == LINEAR or score > best):
            best = score
            chosen = name
    return chosen


@gives("patterns", {"patterns": "analyses.kernel_patterns.TABLE"}, rests_on=ATTRIBUTES)
def patterns_report(
    graph: DependencyGraph,
    inputs: Sequence[str],
    *,
    operator: str | None = None,
    min_length: int = 3,
    top: int = 5,
) -> Report:
    """Return the report on the sequences of kernels that an operator launches, or of the name that repeats most."""
    is_chosen = operator is None
    name = repeating_operator(graph, min_length) if operator is None else operator
    table = hg.kernel_patterns(graph, name, min_length=min_length)
    shown = _over_ranks(table).head(top)
    brief = shown.drop(columns="pattern")
    brief.insert(0, "number", range(1, len(shown) + 1))
    nothing = f"No operator, annotation or function launched the same {min_length} kernels or more twice."
    sentences = [nothing]
    if len(table) or not is_chosen:
        sentences = _on_patterns(graph, table, inputs, name, min_length)
    sentences += _listed(shown["pattern"].tolist())
    return report_on(
        graph,
        "patterns",
        {"patterns": table},
        sentences,
        brief={"patterns": brief},
        titles={"patterns": f"{TABLE.title}, summed over ranks"} if len(graph.ranks) > 1 else {},
    )


def _over_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return patterns with one row for all ranks that have the same one, and the number of these ranks."""
    patterns = table.groupby(["operator", "pattern", "kernels"], as_index=False, sort=False)
    sums = patterns.agg(
        ranks=("rank", "nunique"),
        count=("count", "sum"),
        kernel_us=("kernel_us", "sum"),
        operator_us=("operator_us", "sum"),
    )
    return sums.sort_values("count", ascending=False, kind="stable", ignore_index=True)


def _listed(patterns: Sequence[str]) -> list[str]:
    """Return patterns as texts behind their numbers in the table; equal patterns are one text."""
    numbers: dict[str, list[str]] = {}
    for number, pattern in enumerate(patterns, 1):
        numbers.setdefault(pattern, []).append(str(number))
    texts = []
    for pattern, rows in numbers.items():
        text = findings.pattern_text(pattern)
        texts.append(f"{', '.join(rows)}: {text}")
    return texts


def _on_patterns(
    graph: DependencyGraph,
    table: pd.DataFrame,
    inputs: Sequence[str],
    operator: str,
    min_length: int,
) -> list[str]:
    """Return the answer about the patterns of an operator, or why it has none."""
    chosen = containing(graph, operator)
    if not chosen.any():
        acts = graph.activities
        codes = acts.name[np.isin(acts.kind, FRAMES)]
        names = {graph.names[code] for code in codes}
        nearest = nearest_words(operator, names) or "."
        return [f"No operator or annotation matches {operator!r}{nearest}"]
    if not len(table):
        alternatives = _launching(graph, min_length)
        return findings.nothing_repeats(inputs, operator, min_length, alternatives)
    outermost = graph.tree.outermost(chosen)
    fewer = len(outermost) - int(table["count"].sum())
    shorter = findings.other_occurrences(fewer, inputs, operator)
    on_device = graph.activities.on_device
    device_ns = graph.activities.duration[on_device].sum()
    device_us = float(device_ns) / 1000
    answer = findings.patterns_sentences(table, operator, device_us)
    communication = _communication_share(graph, outermost)
    return [*answer, *findings.mostly_communication(communication, inputs), *shorter]


def _communication_share(graph: DependencyGraph, roots: Ints) -> float:
    """Return the share of communication in the device time that occurrences launched, 0 to 1.

    Args:
        graph: the job.
        roots: the occurrences, as indices into the activities.
    """
    acts = graph.activities
    work, _ = work_below(graph, graph.tree.parent, roots)
    duration_ns = acts.duration[work]
    communicates = acts.kind[work] == ActivityKind.COMMUNICATION
    total_ns = int(duration_ns.sum())
    return int(duration_ns[communicates].sum()) / total_ns if total_ns else 0.0


def _launching(graph: DependencyGraph, min_length: int) -> list[str]:
    """Return the annotations whose every occurrence launches at least so many kernels, the longest busy first."""
    table = hg.phases(graph)
    is_enough = table["kernels"] >= min_length * table["count"]
    sums = table[is_enough].groupby("phase")["busy_us"].sum()
    sums = sums[sums > 0].sort_values(ascending=False, kind="stable")
    recorded = set(graph.names)  # the names of phases may be shorter
    names = [str(name) for name in sums.index if name in recorded]
    return names[:MAX_NAMED]
