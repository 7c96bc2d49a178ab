"""Whether words on two jobs fit their figures."""

from __future__ import annotations

from htagraph.findings.differences.words import calls_text, cut, few, longer, more_or_less, signed


def test_words_follow_the_sign() -> None:
    assert (longer(1.0), longer(-1.0)) == ("longer", "shorter")
    assert (more_or_less(2.0), signed(2.0)) == ("2.0 µs more", "+2.0 µs")
    assert calls_text(1.0, 2.0) == "2 calls instead of 1"


def test_long_texts_and_lists_are_cut() -> None:
    path = "outermost > " + "x" * 200
    assert cut(path).startswith("outermost > …")
    assert len(cut(path)) <= 100
    assert cut("short") == "short"
    names = [str(number) for number in range(20)]
    assert few(names)[-1].endswith(" others")
