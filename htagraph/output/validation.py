"""validate: what is wrong with the files, and which analyses they can support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from htagraph.analyses.critical_path import critical_path
from htagraph.core.kinds import COMMUNICATION, EdgeKind, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.load import Progress, load
from htagraph.output.recorded_settings import (
    ONE_FILE_PER_RANK,
    STEPS,
    Check,
    device_setting,
    recorded_checks,
)
from htagraph.queries.path_segments import bound_of
from htagraph.trace.discover import TracePaths
from htagraph.trace.kineto.arguments import check_arguments

__all__ = ["Validation", "validate"]

_MIN_LINKED_SHARE = 0.99
"""Share of launches or collectives that are linked; chosen: a few are always cut off by the ends of the recording.
Doubled, everything would be called partly supported."""
_MAX_UNEXPLAINED_PERCENT = 2.0
"""Percent of the critical path; chosen: less does not change a prediction. Doubled, 2 to 4 % go without a warning."""


@dataclass(frozen=True)
class Validation:
    """The report of `htagraph validate`."""

    usable: bool
    """Whether every file could be read."""
    files: pd.DataFrame
    """One row per issue: ``rank`` (-1 for a file that could not be read), ``file``, ``what``, ``detail``, ``count``."""
    support: pd.DataFrame
    """One row per analysis: ``analysis``, ``supported`` (``yes``, ``partly``, ``no``), ``why``, ``setting`` (what to
    record with to have it, empty if it is supported or no setting records it)."""
    arguments: pd.DataFrame | None = None
    """Where asked for: ``rank``, and the columns of `htagraph.check_arguments`."""

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--format json`` prints."""
        frames = {"issues": self.files, "support": self.support}
        frames |= {} if self.arguments is None else {"arguments": self.arguments}
        rows = {name: frame.to_dict("records") for name, frame in frames.items()}
        return {"schema_version": 1, "tool": "htagraph", "command": "validate", "usable": self.usable, **rows}


def validate(paths: TracePaths, *, arguments: bool = False, progress: Progress | None = None) -> Validation:
    """Return what was repaired or lost in reading files, and what can be asked of them.

    The files are read, never what is cached of them.

    Args:
        paths: what `load` takes.
        arguments: also check every argument of every event, as `htagraph.check_arguments` does; takes far longer.
        progress: called with the share done, 0 to 1.

    Returns:
        Whether all files could be read, what was wrong with each, and which analyses they support.

    Raises:
        TraceError: no file could be read at all.
        RankError: the files do not form one job.

    Example:
        >>> import htagraph as hg
        >>> hg.validate("data/demo").usable
        True
    """
    graph = load(paths, on_error="skip", progress=progress)
    graph.check()
    rows = [(issue.rank, issue.file, issue.what, issue.detail, issue.count) for issue in graph.issues]
    files = pd.DataFrame(rows, columns=["rank", "file", "what", "detail", "count"])
    checked = _checked(graph) if arguments else None
    return Validation(not (files["what"] == "file_skipped").any(), files, _support(graph), checked)


def _checked(graph: DependencyGraph) -> pd.DataFrame:
    parts = [check_arguments(trace.path).assign(rank=rank) for rank, trace in sorted(graph.traces.items())]
    whole = pd.concat(parts, ignore_index=True)
    return whole[["rank", *whole.columns.drop("rank")]]


def _across_ranks(graph: DependencyGraph, communicating: int) -> tuple[Check, ...]:
    """Return what matched collectives and the replay say of critical paths, stragglers and what-ifs."""
    matched = 0 if graph.matches is None else len(np.unique(graph.matches.activity))
    some = f"only {matched} of {communicating} collective calls have partners on other ranks"
    none = "no collective has partners on other ranks"
    path = critical_path(graph)
    unexplained = bound_of(path).unexplained_percent
    gaps = f"unexplained pauses are {unexplained:.0f} % of the critical path: see htagraph summary"
    ranks = ONE_FILE_PER_RANK if communicating else ""
    return (
        Check("stragglers, collectives", matched > 0, none, matched > _MIN_LINKED_SHARE * communicating, some, ranks),
        Check(
            "critical_path, what_if", path.makespan_ns > 0, "no activity", unexplained < _MAX_UNEXPLAINED_PERCENT, gaps
        ),
    )


def _several_ranks(graph: DependencyGraph) -> Check:
    """Return whether the files are those of all ranks, as far as they say how many there are."""
    infos = [trace.header.distributed_info for trace in graph.traces.values()]
    world = max((info.world_size or 0 for info in infos if info is not None), default=0)
    here = len(graph.ranks)
    one = "one rank: waits for others look like communication"
    some = f"{here} of {world} ranks: waits for the others look like communication"
    setting = "" if world == 1 else ONE_FILE_PER_RANK
    return Check("several ranks", here > 1, some if world > 1 else one, here >= world, some, setting)


def _support(graph: DependencyGraph) -> pd.DataFrame:
    acts = graph.activities
    device = acts.on_device
    some, on_device = len(acts) > 0, bool(device.any())
    launched = device & (acts.cause >= 0)
    communication = of_kinds(acts.kind, COMMUNICATION)
    has_autograd = bool((graph.edges.kind == EdgeKind.AUTOGRAD).any())
    share = float(launched.sum() / max(1, device.sum()))
    no_device = "no device work was recorded"
    lost = f"only {100 * share:.0f} % of device work has its launch in the file"
    every, no_launch, both = True, "no launch is linked to device work", device_setting(graph)
    no_steps = "no ProfilerStep annotation: call prof.step() in the loop"
    checks: tuple[Check, ...] = (
        Check("temporal_breakdown", some, "no activity", on_device, f"{no_device}: threads are analyzed instead", both),
        Check("overlap", bool(communication.any()), "no collective was recorded"),
        Check("kernel_breakdown", some, "no activity", on_device, f"{no_device}: operators are listed instead", both),
        Check("idle_breakdown", on_device, no_device, share > _MIN_LINKED_SHARE, lost, both),
        Check("launch_stats", bool(launched.any()), no_launch, share > _MIN_LINKED_SHARE, lost, both),
        Check("step_times", bool(graph.steps), no_steps, every, "", STEPS),
        Check("forward to backward links", has_autograd, "no fwdbwd flow or sequence number"),
        _several_ranks(graph),
        *_across_ranks(graph, int(communication.sum())),
        *recorded_checks(graph),
    )
    return pd.DataFrame([_row(check) for check in checks], columns=["analysis", "supported", "why", "setting"])


def _row(check: Check) -> tuple[str, str, str, str]:
    if check.possible and check.full:
        return check.analysis, "yes", "", ""
    if check.possible:
        return check.analysis, "partly", check.limit, check.setting
    return check.analysis, "no", check.missing, check.setting
