"""Whether gains are those of replays, worded with their figures, and only what can be changed is tried."""

from __future__ import annotations

import re

import pytest

import htagraph as hg
from htagraph.findings.change import usual_us
from htagraph.findings.changes import ranked
from htagraph.findings.finding import Claim
from htagraph.findings.gain import GAIN
from htagraph.findings.results import Results
from tests.findings.claims_by_hand import blocking, gain
from tests.reach import DATA, graph_of
from tests.strategies import annotation, load, op, step


def test_of_a_rank_only_what_exceeds_its_peers_is_named() -> None:
    """All work of a rank takes some time on any device; `rank 2` is a row of the table, and no advice."""
    graph = graph_of(DATA / "demo")
    results = Results(graph)
    assert "rank 2" in set(results.opportunities["name"])
    claims = {claim.about: claim for claim in GAIN.when(results)}
    assert "rank 2" not in claims
    fixed = hg.what_if(graph).fix_straggler(rank=2).run()
    assert claims["rank 2 beyond its peers'"].figure == pytest.approx(usual_us(fixed))


def test_a_row_that_no_replay_confirms_is_left_out() -> None:
    graph = graph_of(DATA / "demo")
    table = hg.opportunities(graph, top=4)
    assert GAIN.when(Results(graph, opportunities=table.assign(gain_us=table["gain_us"] * 2))) == []


def test_gains_share_a_sentence_with_their_figures() -> None:
    gains = [
        gain("void gemm<4>(int)", 4200.0, 17.0),
        gain("rank 2 beyond its peers'", 900.0, 3.0, "straggler", ranks=(2,)),
    ]
    assert "kernel gemm, 4.20 ms (17 %); the work of rank 2 beyond its peers', 900.0 µs (3 %)" in GAIN.whole(*gains)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (
            gain("aten::mm", 100.0, 20.0, "operator", steps=2),
            "Most you could win per step, each alone: operator aten::mm, 50.0 µs (20 %).",
        ),
        (gain("x", 4200.0, 17.0, steps=10, interval=(0.0, 9000.0)), "420.0 µs (17 %; likely 0 to 900.0 µs)"),
        (gain("x", 4200.0, 17.0, interval=(4100.0, 9000.0)), "likely 4.10 ms to 9.00 ms"),
        (gain("x", 4200.0, 17.0, interval=(4100.0, 4300.0)), "x, 4.20 ms (17 %)."),
        (gain("0 default_pg [0, 1, 2]", 4200.0, 17.0, "group"), "group default_pg (ranks 0-2), 4.20 ms (17 %)."),
        (gain("aten::mm", 100.0, 20.0, is_interrupted=True), "each alone (interruptions inside it counted): "),
    ],
)  # fmt: skip
def test_a_gain_is_worded_with_what_is_known_of_it(claim: Claim, words: str) -> None:
    assert words in GAIN.short(claim)


def test_a_part_names_its_whole() -> None:
    regions = [annotation("all", 0, 900), annotation("part", 0, 500), op("a", 0, 500), op("b", 500, 400)]
    words = GAIN.whole(*GAIN.when(Results(load([*regions, op("c", 1000, 450)]))))
    assert re.findall(r"(\w+), [^()]*\([^()]*part of (\w+)", words) == [("part", "all"), ("b", "all")], words


def test_a_node_around_the_products_is_no_part_of_them() -> None:
    """All of the node's time is products; other products run outside of it."""
    events = []
    for at in (0, 1000):
        events += [op("Node", at, 502), op("mm", at + 1, 500), op("mm", at + 502, 300), op("c", at + 802, 150)]
    words = GAIN.whole(*GAIN.when(Results(load(events))))
    assert "operator Node, 1.00 ms (51 %; nearly all of it in operator mm)" in words
    assert "part of" not in words


def test_a_gain_of_which_most_is_in_one_step_names_the_step() -> None:
    """Four steps of 100 µs; the product takes 60 µs in step 2 and 10 in the others: 22.5 µs per step on average."""
    events = []
    for number, product in enumerate((10, 10, 60, 10)):
        at = 100 * number
        events += [step(number, at, 100), op("mm", at, product), op("c", at + product, 98 - product)]
    words = GAIN.whole(*GAIN.when(Results(load(events))))
    assert re.search(r"operator mm, 22\.5 µs \(\d+ %; most of it in step 2\)", words)
    assert re.search(r"operator c, 75\.5 µs \(\d+ %\)", words)


def test_kernels_of_one_short_name_are_told_apart() -> None:
    first, second = "void copy<float, 4>(int)", "void copy<half, 8>(int)"
    sentence = GAIN.whole(gain(first, 4200.0, 17.0), gain(second, 900.0, 3.0))
    assert "kernel copy<float>, 4.20 ms" in sentence
    assert "kernel copy<half>, 900" in sentence


def test_an_annotation_around_all_or_that_numbers_parts_is_no_finding() -> None:
    """It is measured: how much it encloses, and whether each name occurs once; the same name again and again stays."""

    def named(names: list[str], lasts: float) -> list[str]:
        events = [annotation(name, 100 * at, lasts) for at, name in enumerate(names)]
        events += [op(name, 100 * at + 1, 50) for at in range(len(names)) for name in ("aten::mm",)]
        return [claim.about for claim in GAIN.when(Results(load(events)))]

    assert "epoch_2" not in named(["epoch_2"] * 3, 99)
    assert "batch 7" not in named(["batch 6", "batch 7", "batch 8"], 60)
    assert "encode" in named(["encode"] * 3, 60)


def test_what_contains_another_gain_leaves_the_trial_to_it() -> None:
    outer, inner = gain("backward", 500.0, 50.0, "phase", is_around=True), gain("x", 400.0, 40.0, inside="backward")
    assert "backward, 500.0 µs (50 %); kernel x, 400.0 µs (40 %; part of backward)" in GAIN.short(outer, inner)
    assert not GAIN.advice(outer, inner)  # its name is no advice
    assert outer.change is None


def test_the_change_that_gains_most_as_predicted_is_tried_first() -> None:
    half = gain("aten::mm", 100.0, 20.0, "operator", target="op=aten::mm", half_us=40.0, steps=2)
    straggler = gain("rank 2 beyond its peers'", 50.0, 9.0, "straggler", target="", ranks=(2,), steps=2)
    first, *others = ranked([half, blocking(60.0, 6.0, steps=2), straggler])
    assert first.options == ("--remove-sync=op=aten::item",)
    assert first.text.endswith("No waiting for the device in aten::item: 30.0 µs less per step (6 %).")
    assert [row.options[0] for row in others] == ["--fix-straggler", "--scale"]
    assert ranked([]).first is None


def test_a_gain_that_may_be_nothing_is_said_with_up_to() -> None:
    (row,) = ranked([gain("aten::mm", 100.0, 20.0, half_us=40.0, steps=2, interval=(0.0, 110.0))])
    assert "up to 27.5 µs less" in row.expected


def test_a_region_that_is_nearly_all_one_operator_names_it() -> None:
    events = [op("aten::mm", 400 * number, 20) for number in range(3)]
    events += [annotation("evaluate", 400 * number + 100, 210) for number in range(3)]
    events += [op("aten::mm", 400 * number + 101, 200) for number in range(3)]
    said = GAIN.short(*GAIN.when(Results(load(events))))
    assert "evaluate, 630.0 µs (57 %), nearly all in aten::mm; Python" in said
