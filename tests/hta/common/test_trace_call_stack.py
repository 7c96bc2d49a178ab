"""CallStackGraph: walks over nodes, against walks written out on any tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.common.trace_call_stack import CallStackNode, StackWalks


class Tree(StackWalks):
    root_index = -1

    def __init__(self, parents: list[int]) -> None:
        self.nodes = {-1: CallStackNode(-1)} | {i: CallStackNode(parent) for i, parent in enumerate(parents)}
        for i, parent in enumerate(parents):
            self.nodes[parent].children.append(i)


@st.composite
def parents(draw: st.DrawFn) -> list[int]:
    count = draw(st.integers(1, 12))
    return [draw(st.integers(-1, i - 1)) for i in range(count)]


@given(parents())
def test_walks_agree_with_one_another(above: list[int]) -> None:
    tree = Tree(above)
    for node in range(len(above)):
        path = tree.get_path_to_root(node)
        assert path[0] == node
        assert path[-1] == tree.get_root(node) == -1
        under = {other for other in range(len(above)) if node in tree.get_path_to_root(other)}
        assert set(tree.get_descendants(node)) == under
        leaves = {other for other in under if other not in above}
        assert set(tree.get_leaf_nodes(node)) == leaves
        assert {way[-1] for way in tree.get_paths_to_leaves(node)} == leaves
        assert all(way == path_down(tree, node, way[-1]) for way in tree.get_paths_to_leaves(node))


def path_down(tree: Tree, first: int, last: int) -> list[int]:
    path = tree.get_path_to_root(last)
    return path[: path.index(first) + 1][::-1]


@given(parents())
def test_a_traversal_enters_each_node_before_and_leaves_it_after_what_is_below(above: list[int]) -> None:
    tree, seen = Tree(above), list[tuple[str, int]]()
    tree.dfs_traverse(lambda number, _: seen.append(("in", number)), lambda number, _: seen.append(("out", number)))
    for node, parent in enumerate(above):
        assert seen.index(("in", parent)) < seen.index(("in", node)) < seen.index(("out", node))
        assert seen.index(("out", node)) < seen.index(("out", parent))
    assert len(seen) == 2 * (len(above) + 1)
