"""Whether patterns are listed shortly and the most frequent is named."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.patterns import other_occurrences, pattern_text, sentences


def test_long_patterns_are_cut_and_say_by_how_much() -> None:
    assert pattern_text("|".join(["op", *"abc"])) == "op: a → b → c"
    assert pattern_text("|".join(["op", *("kl" * 10)])).endswith("→ … 8 more")
    assert pattern_text("|".join(["op", *("k" * 20), "l"])) == "op: 20 × k → l"


def test_the_most_frequent_pattern_is_named() -> None:
    rows = {"count": [2, 5], "kernels": [3, 4], "rank": [0, 1], "kernel_us": [10.0, 90.0], "operator_us": [20.0, 100.0]}
    (line,) = sentences(pd.DataFrame(rows), [], "op", 3)
    assert "7 occurrences of 'op' launched 2 patterns" in line
    assert line.endswith("the most frequent, of 4 kernels, occurred 5 times on rank 1.")
    assert other_occurrences(0, [], "op") == []
    assert "--min-length 1" in other_occurrences(2, [], "op")[0]
