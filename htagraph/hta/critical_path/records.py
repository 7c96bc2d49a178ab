"""The launch before each recorded CUDA event, and the launch after each wait for one, as HTA's frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from htagraph.hta.shapes.frame import frame_of

if TYPE_CHECKING:
    from htagraph.hta.critical_path.graph import CPGraph

__all__ = ["record_frame", "wait_frame"]


def record_frame(graph: CPGraph) -> pd.DataFrame | None:
    """Return the calls of cudaEventRecord that something waits for; None where the trace has none.

    Returns:
        One row per call in the order of time: ``pid``, ``tid``, ``ts`` (µs), ``index``, ``name``, ``correlation``,
        ``stream``, ``gpu`` (on which it was recorded), ``index_previous_launch`` (the last launch on that stream
        before it, -1 for none) and ``correlation_launch_event`` (of that launch).
    """
    frame = frame_of(graph.job, graph.rank, from_file=False)
    name = graph.job.symbols.sym_index.get("cudaEventRecord")
    waits = frame[frame["wait_on_stream"].gt(-1)].drop_duplicates(["wait_on_cuda_event_record_corr_id"])
    if name is None or waits.empty:
        return None
    waits = waits[["wait_on_cuda_event_record_corr_id", "wait_on_stream", "pid"]]
    waits.columns = pd.Index(["correlation", "stream", "gpu"])
    calls = frame.loc[frame["name"].eq(name), ["pid", "tid", "ts", "index", "name", "correlation"]]
    calls = calls.merge(waits, on="correlation").astype({"stream": "int64", "correlation": "int64"})
    launches = _launches(frame).rename(columns={"launch": "index_previous_launch"})
    launches["correlation_launch_event"] = launches["correlation"]
    calls_and_launches = _beside(
        calls, launches, ["gpu", "stream"], ["index_previous_launch", "correlation_launch_event"], "backward"
    )
    return calls_and_launches.fillna({"index_previous_launch": -1})


def wait_frame(graph: CPGraph) -> pd.DataFrame | None:
    """Return the calls of cudaStreamWaitEvent; None where the trace has none.

    Returns:
        One row per call in the order of time, indexed by its position in the file: ``name``, ``ts`` (µs), ``pid``,
        ``tid``, ``correlation``, ``index_correlation``, ``stream`` (that waits) and ``index_next_launch`` (the thread's
        next launch on that stream, -1 for none).
    """
    frame = frame_of(graph.job, graph.rank, from_file=False)
    index = graph.job.symbols.sym_index
    if "cudaStreamWaitEvent" not in index or "Stream Wait Event" not in index:
        return None
    shown = ["index", "name", "ts", "pid", "tid", "correlation", "index_correlation"]
    calls = frame.loc[frame["name"].eq(index["cudaStreamWaitEvent"]) & frame["index_correlation"].gt(0), shown]
    calls = calls.assign(stream=frame["stream"].reindex(calls["index_correlation"]).to_numpy())
    launches = _launches(frame).rename(columns={"launch": "index_next_launch"})
    calls_and_launches = _beside(calls, launches, ["pid", "tid", "stream"], ["index_next_launch"], "forward")
    return calls_and_launches.fillna({"index_next_launch": -1}).set_index("index")


def _launches(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the launches of device work: thread and time of the call, stream and device of the work."""
    launched = frame["index_correlation"].gt(0) & frame["wait_on_stream"].lt(0) & frame["stream"].ge(0)
    work = frame.loc[launched, ["stream", "pid", "index_correlation", "correlation"]]
    work.columns = pd.Index(["stream", "gpu", "launch", "correlation"])
    calls = frame.loc[frame["stream"].lt(0), ["index", "pid", "tid", "ts"]]
    return work.merge(calls, left_on="launch", right_on="index").drop(columns="index")


def _beside(calls: pd.DataFrame, launches: pd.DataFrame, by: list[str], what: list[str], way: str) -> pd.DataFrame:
    """Return the calls with columns of the launch nearest to each in time, on one side of it."""
    same = {name: "object" for name in by}
    calls = calls.astype(same).sort_values("ts", kind="stable")
    launches = launches.astype(same).sort_values("ts", kind="stable")[[*by, "ts", *what]]
    return pd.merge_asof(calls, launches, on="ts", by=by, direction=way)  # type: ignore[arg-type]
