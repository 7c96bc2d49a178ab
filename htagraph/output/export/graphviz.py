"""Critical paths and selections as pictures: Graphviz digraphs with a cluster per rank, thread and stream."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.core.naming import short_name
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import Selection
from htagraph.output.export.endings import PICTURES, check_ending
from htagraph.output.whole_files import write_whole
from htagraph.queries.paths import CriticalPath

if TYPE_CHECKING:
    import graphviz

__all__ = ["draw", "to_graphviz"]

Array: TypeAlias = npt.NDArray[Any]

_MAX_NODES = 1500
"""Nodes of a picture; dot takes minutes for more, and nobody could read it. Doubled, it takes several times as long."""
_MIN_UNFOLDED_SHARE = 0.01
"""Share of the makespan from which a node is never folded; chosen. Doubled, fewer nodes stand alone."""
_MAX_LETTERS = 40
"""Letters of a node's name; chosen. Doubled, nodes are up to twice as wide."""
_SOURCES = ("dot", "gv")
_COLORS = {
    "computation": "#a6d8a8", "communication": "#f4b183", "memory": "#b4c7e7", "launch": "#ffe699", "sync": "#e2c1e6",
    "folded": "#eeeeee", "dataloader": "#f8cbad", "step": "#d9d9d9",
}  # fmt: skip
_OTHER_COLOR = "#fff8e7"
_CRITICAL = {"color": "#d00000", "penwidth": "2.5", "fontcolor": "#d00000"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass
class _Node:
    activity: int
    lane: int
    rank: int
    name: str
    kind: str
    length_ns: int
    critical: bool
    keep: bool = False
    """Whether the node is never folded into a chain."""
    count: int = 1
    """How many activities the node stands for."""


@dataclass
class _Picture:
    graph: DependencyGraph
    nodes: dict[int, _Node] = field(default_factory=dict)
    edges: dict[tuple[int, int], tuple[str, bool, bool]] = field(default_factory=dict)
    """(source, target) → (label, whether it is critical, whether it leads to what is inside)."""


def to_graphviz(what: CriticalPath | Selection, *, most_nodes: int = _MAX_NODES) -> graphviz.Digraph:
    """Return a picture of a critical path, or of selected activities and the dependencies between them.

    Ranks, and in them threads and streams, are boxes. Critical edges are bold and red; edges say their kind and weight
    (µs: the lag and the gap behind it). Dashed edges lead from an activity to what is inside it. Chains of a thread or
    stream that nothing branches off from are folded into one node, but for what is at their ends and, on a path, takes
    a hundredth of it.

    Args:
        what: `htagraph.critical_path` of a graph, or activities of a graph (``graph.select(step=4, rank=0)``).
        most_nodes: refuse a picture of more nodes, after folding.

    Returns:
        The digraph; its ``source`` is the same for the same graph. Draw it with ``.render("picture", format="svg")``,
        for which Graphviz itself must be installed.

    Raises:
        SelectionError: there are too many nodes, or none.
        TypeError: it is neither of these.

    Example:
        >>> import htagraph as hg
        >>> picture = hg.to_graphviz(hg.critical_path(hg.load("data/demo")))
        >>> picture.source.splitlines()[0]
        'digraph {'
    """
    if not isinstance(what, CriticalPath | Selection):
        msg = f"a {type(what).__name__} is not drawn: give a critical path, or activities such as graph.select(rank=0)"
        raise TypeError(msg)
    picture = _of_path(what) if isinstance(what, CriticalPath) else _of_selection(what)
    if not picture.nodes:
        msg = "nothing to draw: the path or selection has no activities"
        raise SelectionError(msg)
    _fold(picture)
    if len(picture.nodes) > most_nodes:
        msg = (
            f"{len(picture.nodes):,} nodes would be drawn, more than {most_nodes:,}: nobody could read it. Select "
            "fewer, by rank=, step=, kind= or op=, such as graph.select(rank=0, step=4), or raise most_nodes="
        )
        raise SelectionError(msg)
    return _digraph(picture)


def draw(what: CriticalPath | Selection, target: str | Path) -> Path:
    """Write a picture: ``.svg``, ``.pdf`` or ``.png`` by Graphviz, or its source as ``.dot`` or ``.gv``.

    Args:
        what: see `to_graphviz`.
        target: the file to write; its folder is made.

    Returns:
        The file.

    Raises:
        SelectionError: see `to_graphviz`.
        HtagraphError: the suffix is unknown, Graphviz is not installed, or the file cannot be written.
    """
    target = Path(target)
    suffix = target.suffix.removeprefix(".").lower()
    check_ending(target, PICTURES, "pictures")
    picture = to_graphviz(what)
    data = picture.source.encode() if suffix in _SOURCES else _rendered(picture, suffix, target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data)
    except OSError as error:
        msg = f"{target}: cannot be written ({error.strerror or error})"
        raise HtagraphError(msg) from error
    return target


def _rendered(picture: graphviz.Digraph, suffix: str, target: Path) -> bytes:
    import graphviz

    try:
        data: bytes = picture.pipe(format=suffix)
    except graphviz.ExecutableNotFound as error:
        msg = (
            "Graphviz's dot is not installed (apt install graphviz, brew install graphviz); "
            f"without it, write its source: {target.with_suffix('.dot')}"
        )
        raise HtagraphError(msg) from error
    return data


def _of_path(path: CriticalPath) -> _Picture:
    """Return the chain of the path's segments, those of one activity joined."""
    graph, parts = path.graph, path.segments
    acts, picture = graph.activities, _Picture(graph)
    labels: dict[int, list[str]] = {}
    last = -1
    for at in range(len(parts)):
        activity, lane = int(parts.activity[at]), int(acts.lane[parts.place[at]])
        own = parts.edge[at] == EdgeKind.BODY
        length = int(parts.length[at])
        if not own:
            word = EdgeKind(parts.edge[at]).label if parts.edge[at] >= 0 else "head"
            labels.setdefault(last, []).append(f"{word} {_us(length)}")
        if last >= 0 and (picture.nodes[last].lane, picture.nodes[last].activity) == (lane, activity):
            picture.nodes[last].length_ns += length * own
            continue
        node = _node(graph, activity, lane, int(acts.rank[parts.place[at]]))
        node.length_ns, node.critical = length * own, True
        node.keep = length >= _MIN_UNFOLDED_SHARE * path.makespan_ns
        picture.nodes[at] = node
        if last >= 0:
            picture.edges[last, at] = "\n".join(_few(labels.get(last, []))), True, False
        last = at
    return picture


def _of_selection(selection: Selection) -> _Picture:
    from htagraph.analyses.critical_path import critical_path

    graph, picture = selection.graph, _Picture(selection.graph)
    acts, edges = graph.activities, graph.edges
    path = critical_path(graph)
    on_path = np.zeros(len(acts), np.bool_)
    on_path[path.segments.activity] = True
    for activity in selection.activities.tolist():
        node = _node(graph, activity, int(acts.lane[activity]), int(acts.rank[activity]))
        node.length_ns, node.critical = int(acts.duration[activity]), bool(on_path[activity])
        picture.nodes[activity] = node
    inside = np.zeros(len(acts), np.bool_)
    inside[selection.activities] = True
    source, target = edges.source >> 1, edges.target >> 1
    critical = np.zeros(len(edges), np.bool_)
    critical[path.edges] = True
    back = acts.parent[source] == target  # the end of what is inside allows the end of what is around it
    for edge in np.flatnonzero(inside[source] & inside[target] & (source != target) & ~back).tolist():
        first, second = int(source[edge]), int(target[edge])
        lasted = int(graph.time[edges.target[edge]] - graph.time[edges.source[edge]])
        label = f"{EdgeKind(edges.kind[edge]).label} {_us(lasted)}"
        if (first, second) not in picture.edges and (second, first) not in picture.edges:
            within = bool(acts.parent[second] == first)
            picture.edges[first, second] = "" if within else label, bool(critical[edge]), within
    return picture


def _node(graph: DependencyGraph, activity: int, lane: int, rank: int) -> _Node:
    kind = ActivityKind(graph.activities.kind[activity]).label
    return _Node(activity, lane, rank, _name(graph, activity), kind, length_ns=0, critical=False)


def _name(graph: DependencyGraph, activity: int) -> str:
    name = _CONTROL.sub(" ", short_name(graph.names[graph.activities.name[activity]]))
    return name if len(name) <= _MAX_LETTERS else name[: _MAX_LETTERS - 1] + "…"


def _fold(picture: _Picture) -> None:
    """Fold chains: nodes with one predecessor and one successor, both on their lane, all critical or all not."""
    ahead, behind = _neighbours(picture.edges)
    links: dict[int, int] = {}  # node → the next one of its chain
    for (first, second), (_, critical, _) in picture.edges.items():
        two = picture.nodes[first], picture.nodes[second]
        alike = two[0].lane == two[1].lane and two[0].critical == two[1].critical == critical
        if alike and all(_inner(each, picture, ahead, behind) for each in (first, second)):
            links[first] = second
    inside: dict[int, int] = {}  # folded node → the one that stands for its chain
    for begin in sorted(links.keys() - set(links.values())):
        chain = [begin]
        while chain[-1] in links:
            chain.append(links[chain[-1]])
        if len(chain) > 2:
            inside |= dict.fromkeys(chain, begin)
            picture.nodes[begin] = _folded([picture.nodes.pop(each) for each in chain])
    ends = {(a, b): (inside.get(a, a), inside.get(b, b)) for a, b in picture.edges}
    picture.edges = {(a, b): picture.edges[pair] for pair, (a, b) in ends.items() if a != b}


def _neighbours(edges: Iterable[tuple[int, int]]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    ahead: dict[int, list[int]] = {}
    behind: dict[int, list[int]] = {}
    for first, second in edges:
        ahead.setdefault(first, []).append(second)
        behind.setdefault(second, []).append(first)
    return ahead, behind


def _inner(node: int, picture: _Picture, ahead: dict[int, list[int]], behind: dict[int, list[int]]) -> bool:
    """Return whether a node may be folded: between two of its lane, and not notable."""
    around = ahead.get(node, []), behind.get(node, [])
    if picture.nodes[node].keep or any(len(each) != 1 for each in around):
        return False
    return all(picture.nodes[each[0]].lane == picture.nodes[node].lane for each in around)


def _folded(nodes: list[_Node]) -> _Node:
    most, count = Counter(node.name for node in nodes).most_common(1)[0]
    what = f"mostly {most}" if count > 1 else f"{nodes[0].name} to {nodes[-1].name}"
    total = sum(node.length_ns for node in nodes)
    first = nodes[0]
    count = sum(node.count for node in nodes)
    return _Node(first.activity, first.lane, first.rank, what, "folded", total, first.critical, count=count)


def _digraph(picture: _Picture) -> graphviz.Digraph:
    import graphviz

    out = graphviz.Digraph(
        graph_attr={"rankdir": "LR", "fontname": "sans-serif", "ranksep": "0.3", "nodesep": "0.15", "newrank": "true"},
        node_attr={"shape": "box", "style": "filled,rounded", "fontname": "sans-serif", "fontsize": "10"},
        edge_attr={"fontname": "sans-serif", "fontsize": "8", "color": "#888888", "fontcolor": "#666666"},
    )
    by_lane: dict[int, dict[int, list[int]]] = {}
    for number in sorted(picture.nodes):
        node = picture.nodes[number]
        by_lane.setdefault(node.rank, {}).setdefault(node.lane, []).append(number)
    for rank in sorted(by_lane):
        name = f"rank {rank}" if rank >= 0 else "between ranks"
        with out.subgraph(name=f"cluster_rank_{rank}") as box:
            box.attr(label=name, labeljust="l", style="rounded", color="#999999")
            for lane in sorted(by_lane[rank]):
                label = picture.graph.lanes[lane].label if lane >= 0 else ""
                with box.subgraph(name=f"cluster_lane_{lane}") as track:
                    track.attr(
                        label=_text(label), labeljust="l", style="rounded,filled", fillcolor="#fafafa", color="#cccccc"
                    )
                    for number in by_lane[rank][lane]:
                        _add_node(track, number, picture.nodes[number])
    for (first, second), (label, critical, within) in sorted(picture.edges.items()):
        style = {"style": "dashed"} if within else {}
        out.edge(f"n{first}", f"n{second}", label=_text(label), **(style | (_CRITICAL if critical else {})))
    return out


def _add_node(box: graphviz.Digraph, number: int, node: _Node) -> None:
    size = f"… {node.count:,} activities, {_us(node.length_ns)}" if node.count > 1 else _us(node.length_ns)
    lines = (size, node.name) if node.count > 1 else (node.name, size) if node.length_ns else (node.name,)
    border = {"color": _CRITICAL["color"], "penwidth": "2"} if node.critical else {"color": "#888888"}
    color = _COLORS.get(node.kind, _OTHER_COLOR)
    box.node(f"n{number}", label=_text("\n".join(lines)), fillcolor=color, **border)


def _few(words: list[str]) -> list[str]:
    return words if len(words) <= 2 else [*words[:1], f"… {len(words) - 1} more"]


def _us(nanoseconds: int) -> str:
    """Return a time as text: in µs, or in ms from one ms."""
    return f"{nanoseconds / 1000:,.1f} µs" if nanoseconds < 1_000_000 else f"{nanoseconds / 1_000_000:,.2f} ms"


def _text(text: str) -> str:
    """Return a label that shows its characters as they are: no escapes, HTML or entities; lines end as given."""
    import graphviz

    return graphviz.nohtml(str(graphviz.escape(text.replace("&", "&amp;"))).replace("\n", "\\n"))
