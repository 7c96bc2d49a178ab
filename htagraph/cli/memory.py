"""``htagraph memory``: how much memory was in use, when, and for what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, read, show
from htagraph.cli.targets import Drawn
from htagraph.output.wording import memory as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.cli.options import Format
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report
    from htagraph.trace.profiler_files.memory_snapshot import MemorySnapshot

__all__ = ["memory", "report", "report_on_snapshot", "report_on_timeline"]


def memory(
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 15,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """How much memory was in use at the peak, and what held it.

    PATHS are traces (recorded with profile_memory=True), or one memory timeline (export_memory_timeline) or memory
    snapshot (torch.cuda.memory._dump_snapshot).
    """
    from htagraph.trace.profiler_files.files import kind_of

    what = kind_of(paths[0])
    _refuse_snapshots_in(Path(paths[0]))
    if what != "trace":
        if len(paths) > 1 or ranks or steps:
            msg = f"{paths[0]} is a memory {what}: give it alone, without --ranks and --steps"
            raise typer.BadParameter(msg, param_hint="PATHS")
        _show_file(Path(paths[0]), what, top, form, output)
        return
    graph = read(paths, ranks, steps)
    from htagraph.analyses.memory.timeline import timeline

    show(report(graph, top=top), form, output, paths, lambda: timeline(graph))


def _refuse_snapshots_in(folder: Path) -> None:
    """Refuse a folder that holds only memory snapshots: each is read alone."""
    from htagraph.trace.profiler_files.files import kind_of

    files = sorted(each for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []
    pickles = [file for file in files if ".pickle" in file.name or ".pkl" in file.name]
    if pickles and not any(".json" in file.name for file in files) and kind_of(pickles[0]) == "snapshot":
        msg = f"{folder} holds memory snapshots: give one of them, such as {pickles[0]}"
        raise typer.BadParameter(msg, param_hint="PATHS")


def _show_file(path: Path, what: str, top: int, form: Format | None, output: Path | None) -> None:
    """Show what a memory timeline or snapshot holds."""
    if what == "timeline":
        from htagraph.trace.profiler_files.memory_timeline import read_memory_timeline

        timeline = read_memory_timeline(path)
        show(report_on_timeline(timeline, path), form, output, [str(path)], lambda: timeline)
        return
    from htagraph.trace.profiler_files.memory_snapshot import read_memory_snapshot

    snapshot = read_memory_snapshot(path)
    show(report_on_snapshot(snapshot, top=top), form, output, [str(path)], lambda: snapshot)


def report(graph: DependencyGraph, *, top: int = 15) -> Report:
    """Return the report on the memory events of traces."""
    from htagraph.analyses import memory as analyses
    from htagraph.findings.verbs import memory as findings
    from htagraph.output.report import Wording, report_on

    peaks, whose = analyses.peaks(graph), analyses.at_peak(graph)
    tables = {"memory_peaks": peaks, "memory_at_peak": whose.groupby(["rank", "device"], sort=False).head(top)}
    brief = {
        "memory_peaks": peaks.drop(columns=["activity"]),
        "memory_at_peak": tables["memory_at_peak"].replace({"name": {"": "(before the recording)"}})
        .drop(columns="known"),
    }  # fmt: skip
    return report_on(
        graph, "memory", tables, findings.peak_sentences(peaks), brief=brief, wording=Wording(wording.TITLES)
    )


def report_on_timeline(timeline: pd.DataFrame, path: Path) -> Report:
    """Return the report on what `htagraph.memory.read_timeline` read."""
    import pandas as pd

    from htagraph.findings.verbs import memory as findings

    sizes = timeline.drop(columns=["time_ns", "time_us"])
    names = [str(column).removesuffix("_bytes") for column in sizes.columns]
    at = int(timeline["total_bytes"].to_numpy().argmax()) if len(timeline) else -1
    table = pd.DataFrame(
        {
            "category": pd.array(names, dtype="str"),
            "most_bytes": sizes.max().to_numpy(),
            "at_peak_bytes": sizes.iloc[at].to_numpy() if at >= 0 else 0,
            "first_bytes": sizes.iloc[0].to_numpy() if at >= 0 else 0,
            "last_bytes": sizes.iloc[-1].to_numpy() if at >= 0 else 0,
        }
    )
    sentences = ["The timeline is empty."]
    if at >= 0:
        row = table[table["category"] != "total"]
        largest = row.iloc[int(row["at_peak_bytes"].to_numpy().argmax())]
        peak = float(timeline["total_bytes"].iloc[at]), float(timeline["time_us"].iloc[at])
        sentences = [findings.timeline_sentence(*peak, str(largest["category"]), float(largest["at_peak_bytes"]))]
    window = float(timeline["time_us"].max()) if at >= 0 else 0.0
    return _alone(path, window, {"memory_categories": table}, sentences)


def report_on_snapshot(snapshot: MemorySnapshot, *, top: int = 15) -> Report:
    """Return the report on a memory snapshot."""
    from htagraph.findings.verbs import memory as findings

    devices = snapshot.to_frame()
    tables = {
        "memory_devices": devices,
        "memory_at_peak": snapshot.at_peak().head(top),
        "memory_now": snapshot.in_use().head(top),
    }
    known = {
        name: table.assign(where=table["where"].where(table["stack"] >= 0, "(before the history began)"))
        for name, table in tables.items()
        if name != "memory_devices"
    }
    window = float(snapshot.events["time_us"].max()) if len(snapshot.events) else 0.0
    sentences = [sentence for row in devices.to_dict("records") for sentence in findings.device_sentences(row)]
    brief = {"memory_devices": devices} | {name: table.drop(columns="stack") for name, table in known.items()}
    return _alone(snapshot.path, window, tables, sentences or ["The snapshot holds no memory."], brief)


def _alone(
    path: Path, window: float, tables: dict[str, pd.DataFrame], sentences: list[str],
    brief: dict[str, pd.DataFrame] | None = None,
) -> Report:  # fmt: skip
    import pandas as pd

    from htagraph.output.report import Report, Wording

    inputs = pd.DataFrame({"rank": [-1], "file": [str(path)]})
    issues = pd.DataFrame(columns=["rank", "file", "what", "detail", "count"])
    return Report("memory", inputs, issues, window, tables, sentences, brief=brief, wording=Wording(wording.TITLES))
