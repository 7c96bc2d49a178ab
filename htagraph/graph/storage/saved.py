"""Save a graph to a folder, and open it again: everything that it answers afterwards is equal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import GraphError, StoredGraphError, TraceError
from htagraph.core.words import check_type
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.storage.array_file import read_file, write_file
from htagraph.graph.storage.parts import SCHEMA, are_within, pack, unpack
from htagraph.graph.tree import Tree
from htagraph.trace.columns import Trace
from htagraph.trace.reading.discover import TracePaths, rank_files
from htagraph.trace.remote import RemotePath, TracePath, fingerprint

__all__ = ["GRAPH_FILE", "open", "read_graph", "save", "write_graph"]


GRAPH_FILE: Final = "graph.htagraph"
"""Name of the file inside the folder."""


def save(graph: DependencyGraph, folder: str | os.PathLike[str]) -> Path:
    """Return the file in a folder that now holds the graph; `htagraph.open` makes the graph of it again.

    The file is there either whole or as it was before, also if several processes write it at once.

    Args:
        graph: any graph.
        folder: where to write; it is made if it is not there.

    Returns:
        The file's path.

    Raises:
        GraphError: the graph holds something that cannot be stored.
        OSError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = hg.save(hg.load("data/demo"), folder)
        ...     hg.open(folder)
        DependencyGraph(4 ranks, 9,526 activities, 21,990 edges)
    """
    check_type(graph, DependencyGraph, "htagraph.save takes a graph (of a job on workers: job.load([0, 1]))")
    path = Path(folder) / GRAPH_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_graph(graph, path, durable=True)
    return path


def write_graph(graph: DependencyGraph, path: Path, *, durable: bool, most_bytes: int | None = None) -> None:
    """Write a graph to a file.

    Args:
        graph: any graph.
        path: the file; its folder must be there.
        durable: wait until the disk has it.
        most_bytes: the most that the file's arrays may take.

    Raises:
        GraphError: the graph holds something that cannot be stored, or takes more.
        OSError: the file cannot be written.
    """
    try:
        content, arrays = pack({"graph": graph, "tree": graph.tree})  # every analysis asks for the tree
    except (RecursionError, TypeError) as error:
        msg = f"this graph cannot be saved: {error}"
        raise GraphError(msg) from error
    if most_bytes is not None and sum(array.nbytes for array in arrays) > most_bytes:
        msg = f"this graph takes more than {most_bytes} bytes"
        raise GraphError(msg)
    write_file(path, {"schema": SCHEMA, "parts": content}, arrays, durable=durable)


def open(folder: str | os.PathLike[str], traces: TracePaths | None = None) -> DependencyGraph:
    r"""Return the graph that `htagraph.save` wrote to a folder.

    Its arrays are mapped into memory: they cannot be written, and processes that open the same graph share them. No
    code of the file is run. `DependencyGraph.event`, overlays and some arguments read the traces again. Those that the
    graph names are read only from disks of this machine, and only if they have the size and time of change that were
    recorded; addresses (``s3://…``, ``https://…``, ``\\host\share``) are not followed: anyone may have written them.

    Args:
        folder: the folder, or the file in it.
        traces: where the traces are now, as `htagraph.load` takes it: needed if they were moved, or lie in a store.

    Returns:
        The graph, equal to the one that was saved.

    Raises:
        StoredGraphError: there is no saved graph, it is damaged, or another release wrote it.
        TraceError: a file in `traces` has another size than that of its rank had.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = hg.save(graph, folder)
        ...     hg.open(folder).names == graph.names
        True
    """
    path = Path(folder)
    file = path / GRAPH_FILE if path.is_dir() else path
    graph = read_graph(file)
    given = {each.rank: each.path for each in rank_files(traces)} if traces is not None else {}
    own: Any = graph.traces  # a dict that only this graph has
    for rank, trace in graph.traces.items():
        own[rank] = (
            _placed(trace, given[rank]) if rank in given else replace(trace, path=_not_followed(trace.path, file))
        )
    return graph


def _placed(trace: Trace, path: TracePath) -> Trace:
    """Return a trace whose file is where the user says, and has the size that it had."""
    now = fingerprint(path)
    if now[0] != trace.fingerprint[0]:
        msg = f"{path}: is not the file of rank {trace.rank}: it has {now[0]:,} bytes, not {trace.fingerprint[0]:,}"
        raise TraceError(msg)
    return replace(trace, path=path, fingerprint=now)


def _not_followed(path: TracePath, graph_file: Path) -> TracePath:
    """Return a path that a saved graph names: one that leads to another machine is not followed."""
    text = path.url if isinstance(path, RemotePath) else str(path)
    elsewhere = isinstance(path, RemotePath) or text.replace("\\", "/").startswith("//")
    return RemotePath(text, named_by=str(graph_file)) if elsewhere else path


def read_graph(path: Path) -> DependencyGraph:
    """Return the graph in a file.

    Raises:
        StoredGraphError: there is none, it is damaged, or another release wrote it.
    """
    try:
        content, arrays = read_file(path)
    except OSError as error:
        msg = f"{path}: cannot be opened ({error.strerror or error}); is it a folder that htagraph.save wrote?"
        raise StoredGraphError(msg) from error
    try:
        if content["schema"] != SCHEMA:
            _refuse(path, "another release of htagraph wrote it")
        parts = unpack(content["parts"], arrays)
        graph, tree = parts["graph"], parts["tree"]
        fits = isinstance(graph, DependencyGraph) and isinstance(tree, Tree) and _fits(graph, tree)
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        _refuse(path, f"it holds no graph ({error})")
    if not fits:
        _refuse(path, "its parts do not belong together")
    vars(graph)["tree"] = tree  # where the property keeps what it has computed
    return graph


def _fits(graph: DependencyGraph, tree: Tree) -> bool:
    """Return whether numbers refer to what is there: compiled code walks along them without looking."""
    acts, edges = graph.activities, graph.edges
    count, vertices = len(acts), graph.vertex_count
    references: list[tuple[Array, int, int]] = [
        (acts.name, 0, len(graph.names)), (acts.category, 0, len(graph.names)), (acts.lane, -1, len(graph.lanes)),
        (acts.parent, -1, count), (acts.cause, -1, count),
        (edges.source, 0, vertices), (edges.target, 0, vertices), (edges.activity, -1, count),
    ]  # fmt: skip
    references += [(column.rows, 0, count) for column in acts.args.values()]
    references += [(tree.parent, -1, count), (tree.order, 0, count), (tree.first, 0, count), (tree.stop, 1, count + 1)]
    if graph.matches is not None:
        members = graph.matches
        references += [(each, -1, count) for each in (members.activity, members.join, members.feeds)]
        references.append((members.collective, 0, members.count))
    same = {len(getattr(acts, name)) for name in SCHEMA["Activities"] if name != "args"} == {count}
    same &= {len(getattr(edges, name)) for name in SCHEMA["Edges"]} == {len(edges)}
    same &= {len(getattr(tree, name)) for name in SCHEMA["Tree"]} == {count}
    above = tree.parent, acts.parent, np.where(acts.on_device, acts.cause, acts.parent)
    return same and are_within(references) and all(_climbs_end(each, tree.first) for each in above)


def _climbs_end(parent: Array, first: Array) -> bool:
    """Return whether no activity is above itself: walks from parent to parent would not end.

    Args:
        parent: of each activity, -1 for none.
        first: position of each activity in the tree, where parents come first, which proves it at once.
    """
    if bool(np.all((parent < 0) | (first[parent] < first))):
        return True
    jump = np.append(parent, -1)
    for _ in range(len(jump).bit_length()):  # each round twice as far up
        jump = jump[jump]
    return not bool((jump >= 0).any())


def _refuse(path: Path, why: str) -> NoReturn:
    msg = f"{path}: cannot be opened: {why}; load the traces and save the graph again"
    raise StoredGraphError(msg)
