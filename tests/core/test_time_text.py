from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.time_text import time_text


@given(st.floats(0.1, 1e12))
def test_a_time_keeps_its_first_digits(us: float) -> None:
    figure, unit = time_text(us).split()
    assert float(figure) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit] == pytest.approx(us, rel=0.05, abs=0.06)
