from __future__ import annotations

import numpy as np

from htagraph.output.export.row_texts import INTEGER, TEXT, Column, row_texts


def test_parts_of_rows_have_separators_between_them_only() -> None:
    rows = row_texts([Column(TEXT, 0), Column(INTEGER, np.array([1, 22, 333]))], 3, [b"a"])
    assert bytes(rows.joined) == b"a1,\na22,\na333"
    assert [bytes(rows.part(first, last).joined) for first, last in ((0, 1), (1, 3), (2, 2))] == [
        b"a1",
        b"a22,\na333",
        b"",
    ]


def test_no_rows_are_no_text() -> None:
    rows = row_texts([Column(TEXT, 0)], 0, [b"a"])
    assert (len(rows), bytes(rows.joined), bytes(rows.part(0, 0).joined)) == (0, b"", b"")
