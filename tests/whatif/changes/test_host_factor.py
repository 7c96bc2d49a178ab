from __future__ import annotations

import htagraph as hg
from tests.whatif.changes.made import CALL_NS, Piece, made


def test_only_the_host_is_slower() -> None:
    graph = made([Piece("gemm", 7, 1)] * 2)
    assert hg.what_if(graph).host_factor(3.0).run().makespan_ns == 2 * 3 * CALL_NS
