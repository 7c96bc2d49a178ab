"""Changes in words: numbers that may be taken for the opposite have their meaning beside them."""

from __future__ import annotations

import pytest

from htagraph.whatif.asked import asked_text, factor_note
from htagraph.whatif.options import CHANGES


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("2", "transfers taking twice as long"),
        ("2x", "transfers twice as fast"),
        ("0.25", "transfers 4 times as fast"),
        ("4x", "transfers 4 times as fast"),
        ("1.3", "transfers taking 1.3 times as long"),
        ("0", "transfers taking no time"),
    ],
)
def test_a_network_is_said_in_words_that_no_reader_takes_for_the_opposite(given: str, means: str) -> None:
    change = CHANGES["network"].read(given)
    assert asked_text(change, f"--network {given}") == f"{means} (--network {given})"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("scale", "op=aten::mm:0.5"), ("set", "op=aten::mm:3us"), ("remove", "op=aten::mm"), ("network", "latency=9us"),
        ("device", "L4"), ("host-factor", "2"), ("fix-straggler", "auto"), ("no-launch-overhead", ""),
        ("no-interruptions", ""), ("infinite-host", ""), ("infinite-gpu", ""), ("cuda-graph", "step=4"),
        ("inject", "rank=2:1.3"), ("free-dataloader", ""), ("free-outside", ""), ("exclusive-device", ""),
        ("remove-sync", "op=aten::item"), ("pin-memory", ""), ("perfect-overlap", ""), ("no-overlap", ""),
        ("fuse", "op=aten::mm"), ("move-to-stream", "op=aten::mm:3"), ("batch", "32:64"),
    ],
)  # fmt: skip
def test_each_change_is_said_in_words_before_what_was_asked_for(option: str, text: str) -> None:
    asked = f"--{option} {text}".strip()
    said = asked_text(CHANGES[option].read(text), asked)
    assert said.endswith(f" ({asked})")
    assert "{" not in said


def test_only_a_factor_above_one_is_told_with_its_opposite() -> None:
    assert "2x is twice as fast" in factor_note([CHANGES["scale"].read("op=aten::mm:2")])
    assert not factor_note([CHANGES["scale"].read("op=aten::mm:0.5"), CHANGES["infinite-host"].read("")])
