"""validate: what is wrong with the files, and which analyses they can support."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from htagraph.analyses.critical_path import critical_path
from htagraph.core.kinds import COMMUNICATION, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import is_module_frame
from htagraph.core.tables import SCHEMA_VERSION, Col, Table
from htagraph.findings.incomplete import missing_parts
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import and_list
from htagraph.graph.activities import replayed
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.load import Progress, load
from htagraph.graph.measures.ledger import Part
from htagraph.output.recording import RECORDING, limit_of, recording_of
from htagraph.output.report import gives
from htagraph.queries.arguments import argument_texts
from htagraph.queries.inputs import ISSUES, issues_of
from htagraph.queries.path_segments import bound_of
from htagraph.trace.columns import CHECKED, Trace
from htagraph.trace.discover import TracePaths
from htagraph.trace.readers import reader_of, setting_for

__all__ = ["Check", "Validation", "device_setting", "recorded_checks", "setting", "validate"]

_ISSUES = Table(ISSUES.title, *(col for col in ISSUES.cols if not col.maybe))
_SUPPORT = Table("What these traces can answer", Col("analysis supported why setting", "str"))
_ARGUMENTS = Table(CHECKED.title, Col("rank", "int64"), *CHECKED.cols)
_MIN_LINKED_SHARE = 0.99
"""Share of launches or collectives that are linked; chosen: a few are always cut off by the ends of the recording.
Doubled, everything would be called partly supported."""

_SHAPE_KEYS = ("Input Dims", "Input dims")
"""Arguments of operators: today's profilers write the first, those before 2022 the second."""
_PARTS: Final = frozenset(part.value for part in Part)
_UNKNOWN_ROWS = "another program wrote the file"
_SAMPLE = 64
"""Operators whose arguments are looked at where a header does not say whether shapes were recorded. Chosen: with shapes
nearly every operator has them. Doubled, validation reads up to twice as many blocks of such files."""


@dataclass(frozen=True)
class Validation:
    """The report of `htagraph validate`."""

    usable: bool
    """Whether every file could be read."""
    files: pd.DataFrame
    """One row per issue: ``rank`` (-1 for a file that could not be read), ``file``, ``what``, ``detail``, ``count``."""
    support: pd.DataFrame
    """One row per missing part and per analysis: ``analysis``, ``supported`` (``yes``, ``partly``, ``no``), ``why``,
    ``setting`` (what to record with to have it, empty if it is supported or no setting records it)."""
    recording: pd.DataFrame
    """One row per rank: the ledger of `DependencyGraph.coverage`."""
    arguments: pd.DataFrame | None = None
    """Where asked for: ``rank``, and the columns of `htagraph.check_arguments`."""

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        frames = {"issues": self.files, "support": self.support, "recording": self.recording}
        return frames if self.arguments is None else frames | {"arguments": self.arguments}

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--format json`` prints."""
        rows = {name: frame.to_dict("records") for name, frame in self.tables.items()}
        head = {"schema_version": SCHEMA_VERSION, "tool": "htagraph", "command": "validate", "usable": self.usable}
        return head | rows


@gives(
    "validate",
    {"issues": _ISSUES, "support": _SUPPORT, "recording": RECORDING, "arguments": _ARGUMENTS},
    maybe=("arguments",),
)  # fmt: skip
def validate(
    paths: TracePaths, *, arguments: bool = False, progress: Progress | None = None, captures: TracePaths | None = None
) -> Validation:  # fmt: skip
    """Return what was repaired or lost while files were read, and which questions the files can answer.

    The files themselves are read, never a cached graph.

    Args:
        paths: what `load` takes.
        arguments: also check every argument of every event, as `htagraph.check_arguments` does; takes far longer.
        progress: called with the share done, 0 to 1.
        captures: recordings that name kernels of replayed CUDA graphs, as for `load`.

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
    graph = load(paths, on_error="skip", progress=progress, captures=captures)
    graph.check()
    files, traces = issues_of(graph), sorted(graph.traces.items())
    checked = None
    if arguments:
        parts = {rank: reader_of(trace).check_arguments(trace.path) for rank, trace in traces}
        checked = pd.concat(parts, names=["rank", None]).reset_index("rank").reset_index(drop=True)
    usable = not (files["what"] == "file_skipped").any()
    return Validation(usable, files, _support(graph), recording_of(graph), checked)


def _across_ranks(graph: DependencyGraph, communicating: int) -> tuple[Check, ...]:
    """Return what matched collectives and the replay say of critical paths, stragglers and what-ifs."""
    matched = 0 if graph.matches is None else len(np.unique(graph.matches.activity))
    some = f"only {matched} of {communicating} collective calls have partners on other ranks"
    none = "no collective has partners on other ranks"
    path = critical_path(graph)
    unexplained = bound_of(path).unexplained_percent
    missing = [missing.lost.value for missing in missing_parts(graph)]
    gaps = f"unexplained pauses are {unexplained:.0f} % of the critical path: see htagraph summary"
    if missing:
        gaps = f"the recording lacks {and_list(missing)}"
    whole = unexplained < MIN_PERCENT and not missing
    ranks = setting(graph, "ranks") if communicating else ""
    return (
        Check("stragglers, collectives", matched > 0, none, matched > _MIN_LINKED_SHARE * communicating, some, ranks),
        Check("critical_path, what_if", path.makespan_ns > 0, "no activity", whole, gaps),
    )


def _several_ranks(graph: DependencyGraph) -> Check:
    """Return whether the files are those of all ranks, as far as they say how many there are."""
    world = max((trace.facts.world_size for trace in graph.traces.values()), default=0)
    here = len(graph.ranks)
    one = "one rank: waits for others look like communication"
    some = f"{here} of {world} ranks: waits for the others look like communication"
    record = "" if world == 1 else setting(graph, "ranks")
    return Check("several ranks", here > 1, some if world > 1 else one, here >= world, some, record)


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
    no_steps = setting(graph, "no_steps")
    checks: tuple[Check, ...] = (
        *(
            Check(missing.lost.value, possible=False, missing=missing.why, setting=missing.advice)
            for missing in missing_parts(graph)
        ),
        Check("temporal_breakdown", some, "no activity", on_device, f"{no_device}: threads are analyzed instead", both),
        Check("overlap", bool(communication.any()), "no collective was recorded"),
        Check("kernel_breakdown", some, "no activity", on_device, f"{no_device}: operators are listed instead", both),
        Check("idle_breakdown", on_device, no_device, share > _MIN_LINKED_SHARE, lost, both),
        Check("launch_stats", bool(launched.any()), no_launch, share > _MIN_LINKED_SHARE, lost, both),
        Check("step_times", bool(graph.steps), no_steps, every, "", setting(graph, "steps")),
        Check("forward to backward links", has_autograd, "no fwdbwd flow or sequence number"),
        _several_ranks(graph),
        *_across_ranks(graph, int(communication.sum())),
        *recorded_checks(graph),
        *_replays(graph),
    )
    rows = [_answer(_as_recorded(graph, check)) for check in checks]
    return pd.DataFrame(rows, columns=list(_SUPPORT.types))


def _answer(check: Check) -> list[str]:
    """Return the row of a check: whether the analysis is supported, why not, and the setting that would record it."""
    if not check.possible:
        return [check.analysis, "no", check.missing, check.setting]
    if not check.full:
        return [check.analysis, "partly", check.limit, check.setting]
    return [check.analysis, "yes", "", ""]


def _as_recorded(graph: DependencyGraph, check: Check) -> Check:
    """Return a check as the ledger limits it: no full answer rests on a missing part, and none on unknown rows.

    A check of a part itself stays as it is, with the advice how to record the part.
    """
    if Part.MEANING in graph.ledger.lacks and check.analysis not in _PARTS:
        missing = _UNKNOWN_ROWS if check.possible else check.missing
        return check._replace(possible=False, missing=missing, setting="")
    limit = limit_of(graph, check.analysis)
    return check._replace(full=False, limit=limit, setting="") if limit and check.possible else check


def _replays(graph: DependencyGraph) -> tuple[Check, ...]:
    """Return how much of the time of replayed CUDA graphs has operators, if there are any."""
    acts = graph.activities
    work = replayed(acts, graph.names)
    if not work.any():
        return ()
    share = float(acts.duration[work & (acts.parent >= 0)].sum() / max(1, acts.duration[work].sum()))
    none = "kernels of replayed CUDA graphs have no operators"
    limit = f"{100 * share:.1f} % of the time of replayed CUDA graphs has operators"
    setting = "--captures DIR: a recording of the warm-up with the profiler on, see docs/recording.md"
    return (Check("operators of CUDA graphs", share > 0, none, share >= _MIN_LINKED_SHARE, limit, setting),)


class Check(NamedTuple):
    """Whether something can be answered."""

    analysis: str
    possible: bool
    missing: str
    """Why it is not possible."""
    full: bool = True
    limit: str = ""
    """What is missing where it is possible, but not in full."""
    setting: str = ""
    """With which setting of the profiler it would be, empty if with none."""


def setting(graph: DependencyGraph, gives: str) -> str:
    """Return with which setting of the job's profiler something is recorded; see `Reader.SETTINGS`."""
    return setting_for(graph.traces.values(), gives)


def device_setting(graph: DependencyGraph) -> str:
    """Return the setting for launches and device work, or nothing where it was set or the job has no device."""
    known = any(trace.facts.devices for trace in graph.traces.values())
    called = graph.activities.kind == ActivityKind.LAUNCH
    uses_device = known or called.any() or graph.activities.on_device.any()
    was_set = called.any() and Part.DEVICE in graph.ledger.lacks  # then another cause lost the device's work
    return setting(graph, "device") if uses_device and not was_set else ""


def recorded_checks(graph: DependencyGraph) -> tuple[Check, ...]:
    """Return what the optional settings of the profiler have recorded, on how many ranks."""
    traces = [trace for _, trace in sorted(graph.traces.items())]
    # a reader may have left the frames of modules out of a large file
    with_modules = [trace.facts.has_stacks or any(map(is_module_frame, trace.names)) for trace in traces]
    with_shapes = [_has_shapes(graph, trace) for trace in traces]
    return (
        _on_ranks("roofline, kernels by shape", with_shapes, "input shapes", setting(graph, "shapes")),
        _on_ranks("module_breakdown", with_modules, "frames of modules", setting(graph, "modules")),
        _on_ranks("memory", [len(t.instants) > 0 for t in traces], "allocations", setting(graph, "memory")),
        *_sync_checks(traces, setting(graph, "records")),
        *_lacks(traces),
    )


def _on_ranks(analysis: str, has: list[bool], what: str, setting: str) -> Check:
    some, lacking = any(has), len(has) - sum(has)
    limit = f"{lacking} of {len(has)} ranks have no {what}"
    return Check(analysis, some, f"no {what} were recorded", lacking == 0, limit, setting)


def _has_shapes(graph: DependencyGraph, trace: Trace) -> bool:
    """Return whether operators have shapes: as the header says, else as some of them have."""
    acts = graph.activities
    own = acts.of_rank(trace.rank)
    operators = own.start + np.flatnonzero(acts.kind[own] == ActivityKind.OP)
    if trace.facts.has_shapes:  # a header alone has nothing with a shape
        return len(operators) > 0
    sample = operators[:: max(1, len(operators) // _SAMPLE)][:_SAMPLE]
    # the first one, which is read at once, has them in nearly every file with shapes
    return any(any(map(any, argument_texts(graph, _SHAPE_KEYS, some).values())) for some in (sample[:1], sample[1:]))


def _lacks(traces: list[Trace]) -> Iterator[Check]:
    """Yield what the files say that they lack, each once."""
    for question, why, record in dict.fromkeys(lack for trace in traces for lack in trace.facts.lacks):
        ranks = [trace.rank for trace in traces if (question, why, record) in trace.facts.lacks]
        yield Check(question, len(ranks) < len(traces), why, full=False, limit=why, setting=record)


def _sync_checks(traces: list[Trace], record: str) -> tuple[Check, ...]:
    """Return whether synchronization was recorded, for jobs on CUDA: other profilers do not have it."""
    cuda = [trace for trace in traces if trace.facts.on_cuda and "kernel" in trace.categories]
    if not cuda:
        return ()
    has = [
        trace.facts.names_records
        and ("cuda_sync" in trace.categories or trace.facts.settings.get("sync_events") is True)
        for trace in cuda
    ]
    limit = "streams that waited for each other are known from calls and times alone"
    return (Check("waits between streams", bool(cuda), "", all(has), limit, record),)
