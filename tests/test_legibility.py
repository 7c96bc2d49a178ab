"""The ratchet: no module becomes harder to read than it was, and a new module keeps to the goals."""

from __future__ import annotations

from tests.legibility import GOAL, Legibility, ceilings, grown, measure, package

_DENSE = '''"""Return those of which others know."""
def pair(own: int) -> tuple[int, int, int]:
    each, known = own, own
    return each, known, own
'''
_PLAIN = '''"""Return the number of kernels."""
def kernel_count(kernels: list[int]) -> int:
    count = len(kernels)
    return count
'''


def test_no_module_is_harder_to_read_than_it_was() -> None:
    recorded = ceilings()
    worse = {module: grown(now, recorded.get(module, GOAL)) for module, now in package().items()}
    assert {module: measures for module, measures in worse.items() if measures} == {}


def test_ceilings_are_of_modules_that_exist() -> None:
    assert set(ceilings()) <= set(package())


def test_each_measure_counts_one_thing() -> None:
    dense = measure(_DENSE)
    assert dense.doubles_per_1000_lines == 250
    assert dense.filler_names_percent == 100
    assert dense.unnamed_tuples == 1
    assert dense.pronouns_per_100_words == 50
    assert len(grown(dense, GOAL)) == 5
    assert grown(measure(_PLAIN), GOAL) == []


def test_a_ceiling_holds_although_the_goal_is_missed() -> None:
    ceiling = Legibility(9.0, 30.0, 10.0, 2.0, 3.0, 4.0)
    assert grown(ceiling, ceiling) == []
    assert grown(ceiling._replace(tokens_per_line=9.5), ceiling) == ["tokens_per_line 9.50 (at most 9.00)"]
