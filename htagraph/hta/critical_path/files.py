"""A critical-path graph as a file: columns, text and no code in a zip archive, read without unpacking it."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import TraceError
from htagraph.hta.critical_path.columns import NOBODY, Columns, View
from htagraph.hta.critical_path.graph import CPGraph, Place
from htagraph.hta.critical_path.types import TYPES

if TYPE_CHECKING:
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["restore_cpgraph", "save"]


_FORMAT = "htagraph critical path 1"
_ABOUT, _COLUMNS, _FRAME = "graph.json", "columns.npz", "trace_data.csv"
_NODES = ("event", "vertex", "time", "is_start", "is_blocking", "kind")
_EDGES = ("source", "target", "kind", "weight", "owner")
_PATH, _CHANGED = "critical_path_nodes", "changed_weight"


def save(graph: CPGraph, out_dir: str) -> str:
    """Write a graph, its path and the frame of its events to ``out_dir.zip`` and return that name.

    Changed weights and edges are kept, other data that was put on nodes and edges is not.
    """
    from htagraph.hta.critical_path.breakdown import name_of, named_events

    view, weight = _now(graph)
    arrays = {f"node_{name}": getattr(view, name) for name in _NODES}
    arrays |= {f"edge_{name}": getattr(view.edges, name) for name in _EDGES}
    arrays |= {_PATH: np.array(graph.critical_path_nodes, np.int64), _CHANGED: weight}
    columns = io.BytesIO()
    np.savez(columns, allow_pickle=False, **arrays)
    about = {
        "format": _FORMAT, "rank": graph.rank, "window_ns": graph.window, "first_ns": graph.first_ns,
        "data_load_events": graph.data_load_events,
    }  # fmt: skip
    frame = named_events(graph).copy()
    frame["full_name"] = [name_of(graph, event) for event in frame.index]
    target = Path(f"{out_dir}.zip").expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_ABOUT, json.dumps(about))
        archive.writestr(_COLUMNS, columns.getvalue())
        archive.writestr(_FRAME, frame.to_csv(index_label="_index_"))
    return str(target)


def restore_cpgraph(zip_filename: str, t_full: Any, rank: int) -> CPGraph:  # noqa: ANN401 - a job, or what has one
    """Return the graph that `CPGraph.save` wrote.

    Args:
        zip_filename: what `save` returned.
        t_full: the trace (``TraceAnalysis.t``) or `HtaJob` that the graph was made of; None where that is not at hand:
            the path, its breakdown and summary need no more than the file.
        rank: whose graph it is.

    Raises:
        TraceError: the file is absent, no such graph or of another rank; it is never unpickled nor unpacked.
    """
    job: HtaJob | None = getattr(t_full, "job", t_full)
    try:
        with zipfile.ZipFile(zip_filename) as archive:
            if set(archive.namelist()) != {_ABOUT, _COLUMNS, _FRAME}:
                raise ValueError("it has other parts")  # noqa: EM101 - one message for all that is wrong
            graph = _read(archive, job)
    except (OSError, ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile) as error:
        hint = "HTA's own files hold pickled objects, which may run any code: save the graph again with htagraph"
        msg = f"{zip_filename}: is no critical path that htagraph saved ({error}). {hint}"
        raise TraceError(msg) from error
    if graph.rank != rank:
        msg = f"{zip_filename}: is of rank {graph.rank}, not {rank}"
        raise TraceError(msg)
    return graph


def _read(archive: zipfile.ZipFile, job: HtaJob | None) -> CPGraph:
    import pandas as pd

    about = json.loads(archive.read(_ABOUT))
    if about["format"] != _FORMAT:
        raise ValueError(f"its format is {about['format']!r}")  # noqa: EM102
    with np.load(io.BytesIO(archive.read(_COLUMNS)), allow_pickle=False) as columns:
        edges = Columns(*(columns[f"edge_{name}"] for name in _EDGES))
        view = View(**{name: columns[f"node_{name}"] for name in _NODES}, edges=edges)
        path, weight = columns[_PATH], columns[_CHANGED]
    _check(view, path, weight)
    first, last = about["window_ns"]
    place = Place(int(about["rank"]), (int(first), int(last)), int(about["first_ns"]), job)
    graph = CPGraph.of(view, place, about["data_load_events"], None if np.array_equal(weight, edges.weight) else weight)
    graph.critical_path_nodes = path.tolist()
    frame = pd.read_csv(io.BytesIO(archive.read(_FRAME)), dtype={"pid": object, "tid": object}, low_memory=False)
    graph.saved_frame = frame.set_index("_index_")
    return graph


def _check(view: View, path: Array, weight: Array) -> None:
    """Refuse columns that do not fit one another."""
    edges, nodes = view.edges, len(view.event)
    alike = {len(getattr(view, name)) for name in _NODES} == {nodes}
    alike &= {len(weight), *(len(getattr(edges, name)) for name in _EDGES)} == {len(edges.source)}
    inside = all(((each >= 0) & (each < nodes)).all() for each in (edges.source, edges.target, path))
    if not alike or not inside or ((edges.kind < 0) | (edges.kind >= len(TYPES))).any():
        raise ValueError("its columns do not fit one another")  # noqa: EM101


def _now(graph: CPGraph) -> tuple[View, Array]:
    """Return the nodes and edges of a graph as they are now, and the weights, ns."""
    view = graph.parts
    if not graph.is_filled:
        return view, graph.weight_ns
    rows = [(u, v, data["object"], data["weight"]) for u, v, data in graph.edges(data=True)]
    owner = [graph.edge_to_event_map.get((u, v), NOBODY) for u, v, _, _ in rows]
    edges = Columns(
        np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64),
        np.array([TYPES.index(row[2].type) for row in rows], np.int64),
        np.array([round(row[2].weight * 1000) for row in rows], np.int64), np.array(owner, np.int64),
    )  # fmt: skip
    return replace(view, edges=edges), np.array([round(row[3] * 1000) for row in rows], np.int64)
