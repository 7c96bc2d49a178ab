from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import BLOCKING, DEVICE, ActivityKind, EdgeKind


@pytest.mark.parametrize(("vocabulary", "kinds"), [(ActivityKind, DEVICE), (EdgeKind, BLOCKING), (EdgeKind, ())])
def test_a_table_says_what_a_search_says(vocabulary: type[ActivityKind], kinds: tuple[ActivityKind, ...]) -> None:
    column = np.random.default_rng(1).integers(0, len(vocabulary), 500).astype(np.int8)
    assert of_kinds(column, kinds).tolist() == np.isin(column, kinds).tolist()
