from __future__ import annotations

import pytest

from htagraph.hta import filters
from htagraph.hta.common import trace_filter


@pytest.mark.parametrize("name", trace_filter.__all__)
def test_a_filter_is_found_at_its_former_place_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"is now htagraph\.hta\.common\.trace_filter\.{name}"):
        assert getattr(filters, name) is getattr(trace_filter, name)


def test_what_was_never_there_is_not_found() -> None:
    with pytest.raises(AttributeError):
        filters.NoSuchFilter  # noqa: B018 - asking is the test
