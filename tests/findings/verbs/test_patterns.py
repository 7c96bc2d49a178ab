"""Whether patterns says how long each occurrence takes, and what fusing gains."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.steady_gain import SteadyGain
from htagraph.findings.verbs.patterns import (
    FusionGain,
    host_repeats,
    nothing_repeats,
    other_occurrences,
    pattern_text,
    patterns_sentences,
)


def test_long_patterns_are_cut_and_say_by_how_much() -> None:
    assert pattern_text("|".join(["op", *"abc"])) == "op: a → b → c"
    assert pattern_text("|".join(["op", *("kl" * 10)])).endswith("→ … 8 more")
    assert pattern_text("|".join(["op", *("k" * 20), "l"])) == "op: 20 × k → l"


def test_the_pattern_that_takes_most_time_is_named_with_its_share() -> None:
    rows = {"count": [2, 5, 4], "kernels": [3, 4, 4], "rank": [0, 0, 1], "kernel_us": [10.0, 50.0, 40.0]}
    patterns = pd.DataFrame(rows | {"pattern": ["op|a|b|c", "op|a|b|c|d", "op|a|b|c|d"], "operator": "op"})
    answer, others = patterns_sentences(patterns, "o*", 180.0, ["x"])
    assert (
        answer
        == "op launched the same 4 kernels 9 times over 2 ranks: 10.0 µs each, 90.0 µs in all (50 % of device time)."
    )
    assert others == "Of 'o*', 2 other occurrences launched 1 other sequence."
    assert other_occurrences(0, [], "op") == []
    assert "--min-length 1" in other_occurrences(2, [], "op")[0]
    assert nothing_repeats([], "op", 3, ["a", "b"])[0].endswith(
        "but a and b did: htagraph patterns --operator a --min-length 3"
    )


def test_fusing_is_advised_only_where_the_job_gains() -> None:
    rows = {
        "count": [24],
        "kernels": [49],
        "rank": [0],
        "kernel_us": [31_700.0],
        "pattern": ["op|a|b"],
        "operator": "op",
    }
    patterns = pd.DataFrame(rows)
    gains = FusionGain(("--fuse", "op=op"), SteadyGain(4.0))
    said = patterns_sentences(patterns, "op", 45_000.0, ["x"], gains)
    assert said[1].endswith("would be 4 % shorter: htagraph what-if x --fuse op=op")
    little = patterns_sentences(patterns, "op", 45_000.0, ["x"], FusionGain(("--fuse", "op=op"), SteadyGain(0.5)))
    assert little[1].startswith("Fusing its kernels would hardly make the job shorter.")


def test_a_job_without_devices_says_what_repeats_on_the_host() -> None:
    operators = pd.DataFrame({"name": ["aten::mm", "step"], "count": [24, 1], "host_self_us": [900.0, 5000.0]})
    assert host_repeats(operators, ["x"]) == [
        "Nothing ran on a device, so no kernels repeat.",
        "On the host, aten::mm runs 24 times, 900.0 µs in all: htagraph kernels x",
    ]
    assert len(host_repeats(operators.head(0), ["x"])) == 1
