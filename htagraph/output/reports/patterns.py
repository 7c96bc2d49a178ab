"""Which sequences of kernels repeat and take time: the report of patterns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.core.arrays import Ints
from htagraph.core.errors import SelectionError, nearest_words
from htagraph.core.kinds import FRAMES, ActivityKind
from htagraph.core.naming import LINEAR, exact_glob
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.findings.finding import ATTRIBUTES
from htagraph.findings.incomplete import missing_parts
from htagraph.findings.limits import MAX_NAMED
from htagraph.findings.phrases import Suggestion, command_line
from htagraph.findings.results import Results
from htagraph.findings.steady_gain import steady_gain
from htagraph.findings.verbs import patterns as findings
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.report import Report, gives, report_on
from htagraph.queries.device_record import DeviceRecord, device_record
from htagraph.queries.kernel_sequences import containing, launching_most, work_below
from htagraph.whatif.options import criteria_text

__all__ = ["patterns_report", "repeating_operator"]

_MAX_TRIED = 8
"""Names whose sequences are compared: they launch the most device time. Chosen: a training
step and the layers of a model are among them. Doubled, the answer takes twice as long and names the same."""
_FEW_KERNELS = 6
"""Kernels of a sequence that is listed in full beside the longest one. Chosen: one or two lines. Doubled, five fill a
screen."""


def repeating_operator(graph: DependencyGraph, min_length: int = 3) -> str:
    """Return the operator, annotation or module whose repeated sequences of kernels take the most device time.

    Of a sequence that occurs n times, all but the first occurrence are repeated. Of names that are alike in that, the
    one whose own time is shortest: it wraps the least. A name that holds most kernels of a step comes last: that steps
    repeat is known.

    Args:
        graph: the job.
        min_length: how many kernels a sequence has at least.

    Returns:
        The name; `LINEAR` where nothing repeats.

    Example:
        >>> import htagraph as hg
        >>> repeating_operator(hg.load("data/demo"))
        'autograd::engine::evaluate_function: AddmmBackward0'
    """
    best = (0.0, 0.0)
    chosen = LINEAR
    names = launching_most(graph, min_length, _MAX_TRIED)
    smaller = [name for name in names if not _holds_a_step(graph, name)]
    for name in smaller or names:
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


def _holds_a_step(graph: DependencyGraph, name: str) -> bool:
    """Return whether activities of a name hold most kernels of their steps: they repeat as the steps do.

    Args:
        graph: the job.
        name: the name of the activities.
    """
    acts = graph.activities
    on_device = acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)
    steps = acts.step[on_device]
    if not (steps >= 0).any():
        return False
    roots = np.flatnonzero(acts.name == graph.names.index(name))
    work, owner = work_below(graph, graph.tree.parent, roots)
    kernels_each = np.bincount(owner, minlength=len(acts))[roots]
    keys = np.stack((acts.rank[on_device], steps))[:, steps >= 0]
    kernels_of_steps = np.unique(keys, axis=1, return_counts=True)[1]
    if not len(work):
        return False
    usual_each = float(np.median(kernels_each))
    usual_of_step = float(np.median(kernels_of_steps))
    return usual_each > MOST * usual_of_step


@gives("patterns", {"patterns": "analyses.kernel_patterns.TABLE"}, rests_on=ATTRIBUTES)
def patterns_report(
    graph: DependencyGraph,
    inputs: Sequence[str],
    *,
    operator: str | None = None,
    min_length: int = 3,
    top: int = 5,
) -> Report:
    """Return the report on the sequences of kernels that an operator launches, or of the name that repeats most.

    Args:
        graph: the job.
        inputs: the words of the command line that choose the job.
        operator: the name that launches the sequences; None for the name that repeats most.
        min_length: how many kernels a sequence has at least.
        top: how many sequences are shown.
    """
    is_chosen = operator is None
    name = repeating_operator(graph, min_length) if operator is None else operator
    table = hg.kernel_patterns(graph, name, min_length=min_length)
    shown = _over_ranks(table).head(top)
    several = " of all ranks" if len(graph.ranks) > 1 else ""
    if len(table) or not is_chosen:
        sentences = _on_patterns(graph, table, inputs, name, min_length)
    else:
        sentences = _on_nothing(graph, inputs, min_length)
    sentences += _listed(shown["pattern"].tolist())
    return report_on(
        graph,
        "patterns",
        {"patterns": table},
        sentences,
        brief={"patterns": _brief(shown)},
        titles={"patterns": f"Kernel sequences{several}, the most device time first"},
    )


def _brief(shown: pd.DataFrame) -> pd.DataFrame:
    """Return sequences as a reader sees them: numbered, with short names of kernels and the time of one occurrence."""
    sequences = [findings.sequence_text(kernels) for kernels in _differing(shown["pattern"].tolist())]
    brief = shown.drop(columns="pattern")
    if brief["operator"].nunique() == 1:
        brief = brief.drop(columns="operator")
    brief.insert(0, "number", range(1, len(shown) + 1))
    brief.insert(len(brief.columns), "each_us", shown["kernel_us"] / shown["count"])
    brief.insert(len(brief.columns), "sequence", sequences)
    return brief


def _differing(patterns: Sequence[str]) -> list[list[str]]:
    """Return the kernels of sequences without their common beginning, which tell no sequences apart."""
    split = [pattern.split("|")[1:] for pattern in patterns]
    if len(split) <= 1:
        return split
    places = zip(*split, strict=False)
    common = takewhile(lambda names: len(set(names)) == 1, places)
    same = len(list(common))
    return [["…", *kernels[same:]] if same else kernels for kernels in split]


def _over_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return patterns with one row for all ranks that have the same one, and the number of these ranks."""
    patterns = table.groupby(["operator", "pattern", "kernels"], as_index=False, sort=False)
    sums = patterns.agg(
        ranks=("rank", "nunique"),
        count=("count", "sum"),
        kernel_us=("kernel_us", "sum"),
        operator_us=("operator_us", "sum"),
    )
    return sums.sort_values("kernel_us", ascending=False, kind="stable", ignore_index=True)


def _on_nothing(graph: DependencyGraph, inputs: Sequence[str], min_length: int) -> list[str]:
    """Return that no sequence of kernels repeats, and the next place to look.

    Args:
        graph: the job.
        inputs: the words of the command line that choose the job.
        min_length: how many kernels a sequence has at least.
    """
    record = device_record(graph)
    if record is DeviceRecord.UNUSED:
        return findings.host_repeats(hg.operator_breakdown(graph), inputs)
    if record.is_lost:
        return [f"Which kernels repeat is not known: {record.value}."]
    nothing = f"No operator, annotation or function launched the same {min_length} kernels or more twice"
    return [Suggestion(f"{nothing}. To see which kernels take the time", command_line("kernels", inputs))]


def _listed(patterns: Sequence[str]) -> list[str]:
    """Return patterns as texts behind their numbers in the table: the first, and each that is as short as a line.

    Args:
        patterns: the patterns in the order of the table.
    """
    texts = []
    for number, pattern in enumerate(patterns, 1):
        is_short = pattern.count("|") <= _FEW_KERNELS
        if number == 1 or is_short:
            texts.append(f"{number}: {findings.pattern_text(pattern)}")
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
    communication = _communication_share(graph, outermost)
    fusion = _fusion(graph, table) if communication <= MOST else None
    answer = findings.patterns_sentences(table, operator, device_us, inputs, fusion)
    return [*answer, *findings.mostly_communication(communication, inputs), *shorter]


def _fusion(graph: DependencyGraph, table: pd.DataFrame) -> findings.FusionGain | None:
    """Return the gain of the job if kernels of the longest repeated sequence become one; None where it is not known.

    Args:
        graph: the job.
        table: the result of `htagraph.kernel_patterns`.
    """
    sums = table.groupby(["operator", "pattern"], as_index=False)[["count", "kernel_us"]].sum()
    most = sums.iloc[int(sums["kernel_us"].argmax())]
    if most["count"] < SEVERAL or missing_parts(graph):
        return None
    options = ("--fuse", criteria_text({"op": exact_glob(str(most["operator"]))}))
    with suppress(SelectionError):  # no two of its kernels follow each other
        return findings.FusionGain(options, steady_gain(Results(graph), options))
    return None


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
    communication_ns = int(duration_ns[communicates].sum())
    return communication_ns / total_ns if total_ns else 0.0


def _launching(graph: DependencyGraph, min_length: int) -> list[str]:
    """Return the annotations whose every occurrence launches at least so many kernels, the longest busy first."""
    table = hg.phases(graph)
    is_enough = table["kernels"] >= min_length * table["count"]
    sums = table[is_enough].groupby("phase")["busy_us"].sum()
    sums = sums[sums > 0].sort_values(ascending=False, kind="stable")
    recorded = set(graph.names)  # the names of phases may be shorter
    names = [str(name) for name in sums.index if name in recorded]
    return names[:MAX_NAMED]
