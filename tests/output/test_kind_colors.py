from __future__ import annotations

import pytest

from htagraph.core.kinds import ActivityKind
from htagraph.output.kind_colors import KIND_COLORS, tint
from htagraph.output.plot.style import text_color
from htagraph.queries.path_segments import CATEGORIES


def test_every_category_of_a_path_and_kind_of_device_work_has_a_color() -> None:
    assert set(CATEGORIES) <= set(KIND_COLORS)
    assert {each.label for each in (ActivityKind.COMPUTATION, ActivityKind.MEMORY)} <= set(KIND_COLORS)


@pytest.mark.parametrize("color", sorted(set(KIND_COLORS.values())))
def test_black_letters_can_be_read_on_a_tint(color: str) -> None:
    assert text_color(tint(color)) == "#000000"
