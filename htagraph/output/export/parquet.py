"""A graph as Parquet tables, for pandas, Polars, DuckDB, Spark: its activities, its edges, and what was wrong."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, marked
from htagraph.core.errors import HtagraphError, check_type
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind, Provenance
from htagraph.graph.activities import BETWEEN
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.storage import saved
from htagraph.output.render import plain
from htagraph.output.whole_files import write_whole
from htagraph.trace.columns import TEXTS

try:  # pandas imports it where it is installed; without it, functions say what is lacking
    import pyarrow as pa
except ImportError:
    pa = None

__all__ = ["table_bytes", "to_parquet", "write_tables"]


def to_parquet(graph: DependencyGraph, folder: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Write a graph as three Parquet files; needs pyarrow (``pip install 'htagraph[parquet]'``).

    Each file is there whole or not at all. Texts are dictionaries: each text is stored once. A value that an activity
    does not have is null.

    Args:
        graph: any graph.
        folder: where to write; it is made if it is not there, and files of these names in it are replaced.

    Returns:
        The paths of

        ``activities.parquet``: ``activity`` (int32, its number), ``rank`` (int32, null for JOINs), ``kind``, ``name``,
        ``category`` (text), ``lane`` (text: its thread or stream), ``device``, ``stream`` (int64, null on host
        threads), ``step`` (int32, null outside of steps), ``start_ns`` (int64, on the clock of the rank), ``start_us``
        (float64, on the common clock, since the job's first activity), ``duration_ns`` (int64), ``parent`` (int32: what
        encloses it, across threads and launches), ``caller`` (int32: the same on its own thread only), ``cause``
        (int32: the launch behind device work), ``event`` (int32: its place in the file, null if the graph added it),
        ``start_gap_ns``, ``end_gap_ns`` (int64: how much later it came than its edges allow), ``start_gap``,
        ``end_gap`` (text: `GapKind`), and an ``arg_…`` per argument that any event had.

        ``edges.parquet``: ``source``, ``target`` (int32, activities), ``from_end``, ``to_end`` (bool: which of their
        ends), ``lag_ns`` (int64), ``kind``, ``provenance`` (text), ``confidence_percent`` (int8), ``owner`` (int32: the
        activity whose time the lag is), ``binding`` (bool: whether it decided when its target came).

        ``issues.parquet``: ``rank`` (int32, null if unknown), ``file``, ``what``, ``detail`` (text), ``count`` (int64).

    Raises:
        HtagraphError: pyarrow is not installed.
        OSError: a file cannot be written.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> import pyarrow.parquet
        >>> activities, edges, issues = hg.to_parquet(hg.load("data/demo"), tempfile.mkdtemp())
        >>> pyarrow.parquet.read_table(activities, columns=["rank", "duration_ns"]).num_rows
        9526
    """
    try:
        from pyarrow import parquet
    except ImportError as error:
        msg = "Parquet needs pyarrow: pip install 'htagraph[parquet]'"
        raise HtagraphError(msg) from error
    check_type(graph, DependencyGraph, "htagraph.to_parquet takes a graph (of a job on workers: job.load([0, 1]))")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    tables: dict[str, Callable[[DependencyGraph], pa.Table]] = {
        "activities": _activities, "edges": _edges, "issues": _issues,
    }  # fmt: skip
    written = []
    for name, table_of in tables.items():
        table = table_of(graph).replace_schema_metadata({"htagraph": version("htagraph")})
        written.append(target / f"{name}.parquet")
        saved.write_whole(written[-1], partial(parquet.write_table, table, compression="zstd"), durable=True)
    return written[0], written[1], written[2]


def _activities(graph: DependencyGraph) -> pa.Table:
    acts, names = graph.activities, [_plain(name) for name in graph.names]
    lanes = [*graph.lanes, BETWEEN]  # whose number is -1
    lane_codes, lane_names = pd.factorize(np.array([_plain(lane.label) for lane in lanes], np.object_))
    columns_ = {
        "activity": pa.array(np.arange(len(acts), dtype=np.int32)),
        "rank": _known(acts.rank),
        "kind": _texts(acts.kind, [kind.label for kind in ActivityKind]),
        "name": _texts(acts.name, names),
        "category": _texts(acts.category, names),
        "lane": _texts(lane_codes[acts.lane], lane_names.tolist()),
        "device": _known(np.array([lane.device for lane in lanes], np.int64)[acts.lane]),
        "stream": _known(np.array([lane.stream for lane in lanes], np.int64)[acts.lane]),
        "step": _known(acts.step),
        "start_ns": pa.array(acts.start),
        "start_us": pa.array((graph.time[0::2] - graph.origin_ns) / 1000),
        "duration_ns": pa.array(acts.duration),
        "parent": _known(graph.tree.parent.astype(np.int32)),
        "caller": _known(acts.parent),
        "cause": _known(acts.cause),
        "event": _known(acts.event),
    }
    for end, first in (("start", 0), ("end", 1)):
        columns_[f"{end}_gap_ns"] = pa.array(graph.gap[first::2])
        columns_[f"{end}_gap"] = _texts(graph.gap_kind[first::2], [kind.label for kind in GapKind])
    for name, sparse in acts.args.items():
        values, absent = sparse.dense(len(acts)), np.ones(len(acts), np.bool_)
        absent[sparse.rows] = False
        columns_[f"arg_{name}"] = _texts(values, names, absent) if name in TEXTS else pa.array(values, mask=absent)
    return pa.table(columns_)


def _edges(graph: DependencyGraph) -> pa.Table:
    edges = graph.edges
    return pa.table(
        {
            "source": pa.array(edges.source >> 1),
            "from_end": pa.array((edges.source & 1).astype(np.bool_)),
            "target": pa.array(edges.target >> 1),
            "to_end": pa.array((edges.target & 1).astype(np.bool_)),
            "lag_ns": pa.array(edges.lag),
            "kind": _texts(edges.kind, [kind.label for kind in EdgeKind]),
            "provenance": _texts(edges.provenance, [each.label for each in Provenance]),
            "confidence_percent": pa.array(edges.confidence),
            "owner": _known(edges.activity),
            "binding": pa.array(marked(graph.binding[graph.binding >= 0], len(edges))),
        }
    )


def _issues(graph: DependencyGraph) -> pa.Table:
    found = graph.issues
    return pa.table(
        {
            "rank": _known(np.array([issue.rank for issue in found], np.int32)),
            "file": pa.array([_plain(issue.file) for issue in found], pa.string()),
            "what": pa.array([issue.what for issue in found], pa.string()),
            "detail": pa.array([_plain(issue.detail) for issue in found], pa.string()),
            "count": pa.array([int(issue.count) for issue in found], pa.int64()),
        }
    )


def _known(values: Array) -> pa.Array:
    """Return numbers of which -1 says that there is none."""
    return pa.array(values, mask=values < 0)


def _texts(codes: Array, words: Sequence[str], absent: Array | None = None) -> pa.Array:
    numbers = np.asarray(codes, np.int32)
    mask = (numbers < 0) | (numbers >= len(words)) if absent is None else absent
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=mask), pa.array(words, pa.string()))


def _plain(text: str) -> str:
    """Return a text that can be encoded: names may hold halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def write_tables(frames: Mapping[str, pd.DataFrame], folder: Path, form: Literal["csv", "parquet"]) -> list[Path]:
    """Write a file per table, each whole or not at all, and return their paths."""
    contents = {folder / f"{name}.{form}": table_bytes(frame, form) for name, frame in frames.items()}
    folder.mkdir(exist_ok=True)
    for path, data in contents.items():
        write_whole(path, data)
    return list(contents)


def table_bytes(frame: pd.DataFrame, form: Literal["csv", "parquet"]) -> bytes:
    """Return a table as the content of a file; texts that are no Unicode have replacements."""
    if form == "csv":
        return plain(frame).to_csv(index=False).encode("utf-8", "replace")
    try:
        import pyarrow.parquet as pq
    except ImportError:
        msg = "--format parquet needs pyarrow: pip install 'htagraph[parquet]'"
        raise HtagraphError(msg) from None
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    columns = {
        str(name): pa.array([None if value is None else _plain(str(value)) for value in frame[name]], type=pa.string())
        if name in texts
        else pa.array(frame[name], from_pandas=True)
        for name in frame.columns
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()
