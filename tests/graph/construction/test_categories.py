"""Complete events that are no activities are counted by category."""

from __future__ import annotations

from pathlib import Path

import htagraph as hg
from tests.damage import END, kernel, kineto_text, op, written


def test_events_of_unknown_categories_are_counted_by_category(tmp_path: Path) -> None:
    odd = [op(3, cat=f"mine{number}") for number in range(7)] + [op(4, cat="mine0"), op(5, cat="\x1b[31m" * 50)]
    bare = {key: value for key, value in op(6).items() if key != "cat"}
    graph = hg.load(written(tmp_path / "rank-0.json", kineto_text([op(1), kernel(1), *odd, bare, bare, END])))
    found = {issue.what: issue for issue in graph.issues}
    assert len(graph.activities) == 2
    assert found["category_missing"].count == 2
    assert found["unknown_category"].count == 9
    assert "'mine0' (2), 'mine1' (1)" in found["unknown_category"].detail
    assert found["unknown_category"].detail.endswith("…")
    assert found["unknown_category"].detail.isprintable()
