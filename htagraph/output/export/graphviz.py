"""Pictures by Graphviz: critical paths on a time axis, and selections with a cluster per rank, thread and stream."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from htagraph.core.arrays import marked, occurring
from htagraph.core.errors import HtagraphError, SelectionError, time_text
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened
from htagraph.graph.activities import BETWEEN
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import Selection
from htagraph.output.export.path_drawing import dot_text, draw_path, one_line
from htagraph.output.scene import KIND_COLORS, tint
from htagraph.output.whole_files import PICTURES, check_ending, write_whole
from htagraph.queries.paths import CriticalPath

if TYPE_CHECKING:
    import graphviz

__all__ = ["draw", "to_graphviz"]

_PATH_NODES, _MAX_NODES = 40, 1500
"""Boxes of a path's picture, and nodes of a selection. Chosen: as many labels as a screen shows; dot takes minutes for
more nodes, and nobody could read them. Doubled, a path's picture is about twice as high, and dot takes several times
as long."""
_MAX_LETTERS = 40
"""Letters of a node's name; chosen. Doubled, nodes are up to twice as wide."""
_SOURCES = ("dot", "gv")
_COLORS = {kind: tint(color) for kind, color in KIND_COLORS.items()} | {"folded": "#eeeeee"}
_OTHER_COLOR = "#fff8e7"
_CRITICAL = {"color": "#d00000", "penwidth": "2.5", "fontcolor": "#d00000"}


def to_graphviz(what: CriticalPath | Selection, *, max_nodes: int | None = None) -> graphviz.Digraph:
    """Return a picture of a critical path, or of selected activities and the dependencies between them.

    A path is drawn on a time axis, a row per rank (in a job of one rank, per thread and stream): boxes are as wide as
    their time, colored by category, and together hold all of it. Consecutive segments of one rank and category are one
    box, but segments that take at least a hundredth of the path have their own; if there are too many boxes, neighbours
    join, the shortest first. A box is labelled with the activity that takes most of its time; full names and the
    division by category and rank are in the tooltips of SVG. Red arrows lead from rank to rank and say how long the
    later one had waited.

    In the picture of a selection, ranks are boxes, and threads and streams are boxes inside them. Critical edges are
    bold and red; edges say their kind and weight (µs: the lag and the gap behind it). Dashed edges lead from an
    activity to the activities inside it. Chains of a thread or stream without branches are folded into one node, except
    for the activities at their ends.

    Args:
        what: `htagraph.critical_path` of a graph, or activities of a graph (``graph.select(step=4, rank=0)``).
        max_nodes: of a path, fold it to at most so many boxes, by default 40; of a selection, refuse a picture of more
            nodes, by default 1,500.

    Returns:
        The digraph; its ``source`` is the same for the same graph. Draw it with ``.render("picture", format="svg")``,
        for which Graphviz itself must be installed.

    Raises:
        SelectionError: there are too many nodes, or none, or `max_nodes` is less than 1.
        TypeError: `what` is neither a path nor a selection.

    Example:
        >>> import htagraph as hg
        >>> picture = hg.to_graphviz(hg.critical_path(hg.load("data/demo")), max_nodes=12)
        >>> picture.source.splitlines()[0]
        'digraph {'
    """
    if not isinstance(what, CriticalPath | Selection):
        msg = f"a {type(what).__name__} is not drawn: give a critical path, or activities such as graph.select(rank=0)"
        raise TypeError(msg)
    if max_nodes is not None and max_nodes < 1:
        msg = f"max_nodes={max_nodes}: a picture has 1 node or more"
        raise SelectionError(msg)
    if not len(what.segments if isinstance(what, CriticalPath) else what.activities):
        msg = "nothing to draw: the path or selection has no activities"
        raise SelectionError(msg)
    if isinstance(what, CriticalPath):
        return draw_path(what, max_nodes or _PATH_NODES)
    return _draw_selection(what, max_nodes or _MAX_NODES)


def draw(what: CriticalPath | Selection, target: str | Path) -> Path:
    """Write a picture: ``.svg``, ``.pdf`` or ``.png`` by Graphviz, or its source as ``.dot`` or ``.gv``.

    Returns:
        The file. Where Graphviz is not installed, of ``out.svg`` its source ``out.dot``, for ``dot -Tsvg out.dot``.
    """
    from graphviz import ExecutableNotFound

    target = Path(target)
    suffix = target.suffix.removeprefix(".").lower()
    check_ending(target, PICTURES, "pictures")
    picture = to_graphviz(what)
    data = picture.source.encode()
    if suffix not in _SOURCES:
        try:
            data = picture.pipe(format=suffix, quiet=True)
        except ExecutableNotFound:
            target = target.with_suffix(".dot")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data)
    except OSError as error:
        msg = f"{target}: cannot be written ({error.strerror or error})"
        raise HtagraphError(msg) from error
    return target


def _draw_selection(selection: Selection, max_nodes: int) -> graphviz.Digraph:
    picture = _of_selection(selection)
    _fold(picture)
    if len(picture) > max_nodes:
        msg = (
            f"{len(picture):,} nodes would be drawn, more than {max_nodes:,}: nobody could read it. Select "
            "fewer, by rank=, step=, kind= or op=, such as graph.select(rank=0, step=4), or raise max_nodes="
        )
        raise SelectionError(msg)
    return _digraph(selection.graph, picture)


def _of_selection(selection: Selection) -> nx.DiGraph:
    """Return the selected activities and the dependencies between them, with what the picture says of each."""
    from htagraph.analyses.critical_path import critical_path

    graph, picture = selection.graph, nx.DiGraph()
    acts, edges, path = graph.activities, graph.edges, critical_path(graph)
    on_path, critical = set(path.segments.activity.tolist()), set(path.edges.tolist())
    used = occurring(acts.name[selection.activities])
    names = {each: shortened(one_line(short_name(graph.names[each])), _MAX_LETTERS) for each in used}
    for each in selection.activities.tolist():
        picture.add_node(
            each, rank=int(acts.rank[each]), lane=int(acts.lane[each]), kind=ActivityKind(acts.kind[each]).label,
            name=names[int(acts.name[each])], length_ns=int(acts.duration[each]), critical=each in on_path, count=1,
        )  # fmt: skip
    inside = marked(selection.activities, len(acts))
    source, target = edges.source >> 1, edges.target >> 1
    back = acts.parent[source] == target  # the end of what is inside allows the end of what is around it
    for edge in np.flatnonzero(inside[source] & inside[target] & (source != target) & ~back).tolist():
        first, second = int(source[edge]), int(target[edge])
        if picture.has_edge(first, second) or picture.has_edge(second, first):
            continue
        lasted = int(graph.time[edges.target[edge]] - graph.time[edges.source[edge]])
        within = bool(acts.parent[second] == first)
        label = "" if within else f"{EdgeKind(edges.kind[edge]).label} {time_text(lasted / 1000)}"
        picture.add_edge(first, second, label=label, critical=edge in critical, within=within)
    return picture


def _fold(picture: nx.DiGraph) -> None:
    """Fold chains: nodes with one predecessor and one successor, both on their lane, all critical or all not."""
    lane, critical = (dict(picture.nodes(data=name)) for name in ("lane", "critical"))
    crossing = {node for edge in picture.edges if lane[edge[0]] != lane[edge[1]] for node in edge}
    inner = {node for node in picture if len(picture.pred[node]) == 1 == len(picture.succ[node])} - crossing
    links = nx.DiGraph(
        (a, b)
        for a, b, is_critical in picture.edges(data="critical")
        if {a, b} <= inner and critical[a] == critical[b] == is_critical
    )
    for begin in [node for node, count in links.in_degree() if not count]:
        chain = list(nx.dfs_preorder_nodes(links, begin))
        if len(chain) > 2:
            ((_, behind, edge),) = picture.out_edges(chain[-1], data=True)
            nodes = [picture.nodes[each] for each in chain]
            most, count = Counter(node["name"] for node in nodes).most_common(1)[0]
            name = f"mostly {most}" if count > 1 else f"{nodes[0]['name']} to {nodes[-1]['name']}"
            length = sum(node["length_ns"] for node in nodes)
            picture.nodes[begin].update(name=name, kind="folded", length_ns=length, count=len(nodes))
            picture.remove_nodes_from(chain[1:])
            picture.add_edge(begin, behind, **edge)


def _digraph(graph: DependencyGraph, picture: nx.DiGraph) -> graphviz.Digraph:
    import graphviz

    out = graphviz.Digraph(
        graph_attr={"rankdir": "LR", "fontname": "sans-serif", "ranksep": "0.3", "nodesep": "0.15", "newrank": "true"},
        node_attr={"shape": "box", "style": "filled,rounded", "fontname": "sans-serif", "fontsize": "10"},
        edge_attr={"fontname": "sans-serif", "fontsize": "8", "color": "#888888", "fontcolor": "#666666"},
    )
    nodes: Any = pd.DataFrame.from_dict(dict(picture.nodes(data=True)), orient="index").sort_index()
    for rank, of_rank in nodes.groupby("rank"):
        with out.subgraph(name=f"cluster_rank_{rank}") as box:
            name = f"rank {rank}" if rank >= 0 else BETWEEN.label
            box.attr(label=name, labeljust="l", style="rounded", color="#999999")
            for lane, of_lane in of_rank.groupby("lane"):
                with box.subgraph(name=f"cluster_lane_{lane}") as track:
                    label = graph.lanes[lane].label if lane >= 0 else ""
                    track.attr(label=dot_text(label), labeljust="l", style="rounded,filled", fillcolor="#fafafa",
                               color="#cccccc")  # fmt: skip
                    for node in of_lane.itertuples():
                        _add_node(track, node)
    for first, second, edge in sorted(picture.edges(data=True), key=lambda each: each[:2]):
        style = ({"style": "dashed"} if edge["within"] else {}) | (_CRITICAL if edge["critical"] else {})
        out.edge(f"n{first}", f"n{second}", label=dot_text(edge["label"]), **style)
    return out


def _add_node(box: graphviz.Digraph, node: Any) -> None:  # noqa: ANN401 - a row of a frame
    lasted = time_text(node.length_ns / 1000)
    size = f"… {node.count:,} activities, {lasted}" if node.count > 1 else lasted
    lines = (size, node.name) if node.count > 1 else (node.name, size) if node.length_ns else (node.name,)
    border = {"color": _CRITICAL["color"], "penwidth": "2"} if node.critical else {"color": "#888888"}
    color = _COLORS.get(node.kind, _OTHER_COLOR)
    box.node(f"n{node.Index}", label=dot_text("\n".join(lines)), fillcolor=color, **border)
