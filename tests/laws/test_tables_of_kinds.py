"""Every table keyed by a kind says which members it leaves out, so that a new member cannot be forgotten in any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import EnumType
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from htagraph.core import kinds
from htagraph.core.kinds import EDGES, TRAITS, ActivityKind, EdgeKind, GapKind
from htagraph.queries.blame import CAUSES
from htagraph.queries.path_segments import CATEGORIES
from tests.reach import REPOSITORY

PACKAGE = REPOSITORY / "htagraph"
ENUMS: dict[str, type[ActivityKind] | type[EdgeKind] | type[GapKind]] = {
    "ActivityKind": ActivityKind, "EdgeKind": EdgeKind, "GapKind": GapKind,
}  # fmt: skip
SETS = {name: value for name, value in vars(kinds).items() if name.isupper() and isinstance(value, tuple)}


def _tables() -> Iterator[tuple[str, str, frozenset[str]]]:
    """Return (file and name, enum, members) of each assignment of two or more members as keys or elements."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == PACKAGE / "core" / "kinds.py":
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(enum in text for enum in ENUMS) else ():
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                members = list(_members(node.value))
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if len(members) > 1 and ast.unparse(target).lstrip("_").isupper():
                    name = f"{path.relative_to(PACKAGE).with_suffix('').as_posix()}.{ast.unparse(target)}"
                    yield name, members[0][0], frozenset(member for _, member in members)


def _members(value: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    if isinstance(value, ast.BinOp):
        yield from _members(value.left)
        yield from _members(value.right)
    parts = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    for part in parts:
        if isinstance(part, ast.Starred) and isinstance(part.value, ast.Name) and part.value.id in SETS:
            yield from ((type(kind).__name__, kind.name) for kind in SETS[part.value.id])
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in ENUMS:
            yield part.value.id, part.attr


@cache
def tables() -> dict[str, tuple[str, frozenset[str]]]:
    """Return (enum, members) of each table by its name."""
    return {name: (enum, members) for name, enum, members in _tables()}


LEFT_OUT = {
    line.split()[0]: frozenset(line.split()[1:])
    for line in (Path(__file__).with_name("tables_of_kinds.txt").read_text(encoding="utf-8").splitlines())
    if line and not line.startswith("#")
}
"""Table → the members that do not belong into it, as somebody decided for each."""


def test_a_table_of_kinds_knows_every_member() -> None:
    unknown, twice = {}, {}
    for name, (enum, members) in tables().items():
        left_out = LEFT_OUT.get(name, frozenset())
        unknown[name] = sorted(frozenset(ENUMS[enum].__members__) - members - left_out)
        twice[name] = sorted(members & left_out)
    assert len(unknown) > 12
    assert not any(unknown.values()), f"not known: {unknown}; add them, or name them in tables_of_kinds.txt"
    assert not any(twice.values()), f"known and named in tables_of_kinds.txt: {twice}"


def test_each_line_is_of_a_table_that_is_there() -> None:
    assert set(LEFT_OUT) <= set(tables())
    assert all(left_out <= set(ENUMS[tables()[name][0]].__members__) for name, left_out in LEFT_OUT.items())


def test_one_row_decides_a_kind_of_edges() -> None:
    """No other table lists kinds of edges, so that a new edge rule needs one row."""
    assert list(EDGES) == list(EdgeKind)
    assert {word for each in EDGES.values() for word in each.traits.split()} == set(TRAITS)
    assert {each.cause for each in EDGES.values()} <= {*CAUSES, ""}
    assert {each.category for each in EDGES.values()} <= {*CATEGORIES, "waiting"}
    assert not [name for name, (enum, _) in tables().items() if enum == "EdgeKind"]


@pytest.mark.parametrize("enum", ENUMS.values())
def test_each_member_says_of_every_trait_whether_it_has_it(enum: EnumType) -> None:
    """The sets of `core.kinds` come from properties, so that a member is in exactly those whose property it has."""
    traits = [name for name, value in vars(enum).items() if isinstance(value, property)]
    kinds_of: list[Any] = list(enum)
    sizes = {trait: sum(bool(getattr(kind, trait)) for kind in kinds_of) for trait in traits}
    assert all(0 < size < len(kinds_of) for size in sizes.values()), sizes
    for name, members in SETS.items():
        if type(members[0]) is enum and name != "HOST":
            assert tuple(sorted(members)) == members, f"{name} is not in the order of the enum"
