"""Arguments of another type than a function takes."""

from __future__ import annotations

import pytest

from htagraph.core.wrong_types import check_type


def test_the_error_says_what_is_taken_and_what_was_given() -> None:
    check_type(3, (int, float), "f takes numbers")
    with pytest.raises(TypeError, match=r"^f takes numbers, not 'a{58,}… \(str\)$"):
        check_type("a" * 1000, (int, float), "f takes numbers")
