"""Changes in words: numbers that may be taken for the opposite have their meaning beside them."""

from __future__ import annotations

import pytest

from htagraph.whatif.asked import asked_text
from htagraph.whatif.options import CHANGES


@pytest.mark.parametrize(("given", "times"), [("2", "2"), ("2x", "0.5"), ("0.25", "0.25"), ("4x", "0.25")])
def test_a_network_is_said_to_take_as_long_as_its_factor_means(given: str, times: str) -> None:
    change = CHANGES["network"].read(given)
    assert asked_text(change, f"--network {given}") == f"--network {given} (transfers take {times} times as long)"


def test_every_other_change_is_said_as_it_was_asked_for() -> None:
    change = CHANGES["scale"].read("op=aten::mm:0.5")
    assert asked_text(change, "--scale op=aten::mm:0.5") == "--scale op=aten::mm:0.5"
