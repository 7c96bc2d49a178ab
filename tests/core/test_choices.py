from __future__ import annotations

import pytest

from htagraph.core.choices import check_choice


@pytest.mark.parametrize("value", ["rank", "job"])
def test_a_word_that_is_allowed_passes(value: str) -> None:
    check_choice("by", value, ("rank", "job"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("ranks", r"^by='ranks' is not known: choose one of 'rank', 'job'; did you mean 'rank'\?$"),
        ("stream", "^by='stream' is not known: choose one of 'rank', 'job'$"),
        ("", "^by='' is not known: choose one of 'rank', 'job'$"),
        (None, "^by=None is not known: choose"), (3, "^by=3 is not known: choose"), (["rank"], "is not known: choose"),
    ],
)  # fmt: skip
def test_any_other_value_is_refused_with_those_allowed(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_choice("by", value, ("rank", "job"))
