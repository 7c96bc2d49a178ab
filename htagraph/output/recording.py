"""The ledger of a recording as its reader sees it, and the parts that the answers of analyses rest on."""

from __future__ import annotations

from typing import Final

import pandas as pd

from htagraph.core.tables import Col, Table
from htagraph.findings.finding import ATTRIBUTES, JUDGES, MEASURES, PREDICTS
from htagraph.findings.incomplete import missing_parts
from htagraph.findings.phrases import and_list, ranks_text
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["LACKING", "NEEDS", "RECORDING", "lacking_parts", "limit_of", "notes_on_ranks", "recording_of"]

RECORDING = Table(
    "What the recording holds",
    Col("rank", "int64"),
    Col("writer", "str", "the program that wrote the file"),
    Col("operators", "int64", "operators, Python functions and communication on host threads"),
    Col("launches", "int64", "calls that enqueue device work"),
    Col("lost_launches", "int64", "calls whose work should be in the file, and is not", heading="without their work"),
    Col("graph_launches", "int64", "of CUDA graphs", heading="of graphs"),
    Col("device_work", "int64", "kernels, copies and memsets", heading="kernels and copies"),
    Col("steps steps_without_work", "int64"),
    Col("sync_us sync_without_work_us", doc="time in calls that wait for a device; the part in which no work ran"),
    Col("devices_listed devices_used", "int64", "devices in the header, and devices with recorded work"),
    Col("allocations", "int64", "samples of the allocator's counters"),
)
LACKING = Table(
    "Parts that the recordings of ranks lack",
    Col("rank", "int64"),
    Col("part", "str", "the name of the missing part"),
    Col("sentence advice", "str", "the figures that show the gap, and how to record the part"),
)
NEEDS: Final = {
    "temporal_breakdown": MEASURES,
    "kernel_breakdown": MEASURES,
    "idle_breakdown": JUDGES,
    "launch_stats": JUDGES,
    "overlap": MEASURES,
    "stragglers, collectives": MEASURES,
    "critical_path, what_if": PREDICTS,
    "roofline, kernels by shape": ATTRIBUTES,
    "module_breakdown": ATTRIBUTES,
}
"""The parts of a recording that the answer of an analysis rests on."""


def limit_of(graph: DependencyGraph, analysis: str) -> str:
    """Return that the recording lacks parts that an analysis rests on, in words; empty where it holds every part.

    Example:
        >>> import htagraph as hg
        >>> limit_of(hg.load("data/demo"), "idle_breakdown")
        ''
    """
    needs = NEEDS.get(analysis, frozenset())
    lost = [missing.lost.value for missing in missing_parts(graph) if missing.lost in needs]
    return f"the recording lacks {and_list(lost)}" if lost else ""


def recording_of(graph: DependencyGraph) -> pd.DataFrame:
    """Return the launches, device work, steps and operators in the recording of each rank.

    Args:
        graph: the job.

    Returns:
        One row for each rank, with the columns of `RECORDING`.

    Example:
        >>> import htagraph as hg
        >>> recording_of(hg.load("data/demo"))["lost_launches"].tolist()
        [0, 0, 0, 0]
    """
    table = graph.coverage(by="rank")
    for waited in ("sync", "sync_without_work"):
        table[f"{waited}_us"] = table[f"{waited}_ns"] / 1000
    return RECORDING.frame(table)


@rank_by_rank
def lacking_parts(graph: DependencyGraph) -> pd.DataFrame:
    """Return the parts that the recording of each rank lacks, read alone.

    Workers read one rank at a time, so that other ranks are no missing part here.

    Args:
        graph: the job, or a job on workers.

    Returns:
        One row per rank and missing part, with the columns of `LACKING`.

    Example:
        >>> import htagraph as hg
        >>> len(lacking_parts(hg.load("data/demo")))
        0
    """
    rows = [
        (rank, missing.lost.name, missing.sentence, missing.advice)
        for missing in missing_parts(graph)
        for rank in missing.ranks
        if missing.lost != Part.PEERS
    ]
    return LACKING.frame(rows)


def notes_on_ranks(lacking: pd.DataFrame) -> list[str]:
    """Return the sentences on missing parts of ranks, one for each part, with the figures of the first rank.

    Example:
        >>> notes_on_ranks(LACKING.frame([(1, "DEVICE", "No work.", "Record."), (3, "DEVICE", "None.", "Record.")]))
        ['On ranks 1 and 3: No work. Record.']
    """
    notes = []
    for _, rows in lacking.groupby("part", sort=False):
        first = rows.iloc[0]
        notes.append(f"On {ranks_text(rows['rank'].tolist())}: {first['sentence']} {first['advice']}")
    return notes
