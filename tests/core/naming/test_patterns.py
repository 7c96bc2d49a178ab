from __future__ import annotations

import fnmatch
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.naming.patterns import exact_glob, matches, names_like, names_that

names = st.lists(st.text(alphabet="abAB_", max_size=4), min_size=1, max_size=5)
patterns = st.sampled_from(["a", "^b", "A_", "b$", "ab|ba", ""])


@given(patterns, st.text(alphabet="abAB_", max_size=4))
def test_a_pattern_matches_anywhere_whatever_the_case(pattern: str, name: str) -> None:
    assert matches(pattern, name) == (re.search(pattern.lower(), name.lower()) is not None)
    assert matches(pattern, name) == matches(pattern, name.swapcase())


@given(names, patterns, st.data())
def test_codes_are_chosen_by_their_names(known: list[str], pattern: str, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, len(known) - 1), max_size=8))
    mask = names_like(pattern, known, np.array(codes, np.int32))
    assert mask.tolist() == [matches(pattern, known[code]) for code in codes]


@given(names)
def test_names_are_chosen_by_a_predicate(known: list[str]) -> None:
    assert names_that(str.isupper, known).tolist() == [name.isupper() for name in known]


def test_no_names_give_an_empty_mask() -> None:
    assert names_that(str.isupper, ()).tolist() == []


@given(st.text(max_size=8), st.text(max_size=8))
def test_an_exact_glob_is_one_line_that_fits_its_name_and_no_printable_other(name: str, other: str) -> None:
    pattern = exact_glob(name)
    assert pattern.isprintable()
    assert fnmatch.fnmatchcase(name, pattern)
    if name.isprintable() and name != other:
        assert not fnmatch.fnmatchcase(other, pattern)
