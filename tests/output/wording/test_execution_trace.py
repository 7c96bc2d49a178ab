"""What ``htagraph execution-trace`` says."""

from __future__ import annotations

import pandas as pd

from htagraph.output.wording.execution_trace import sentences

NODES = pd.DataFrame({"name": ["a", "a", "b"], "op_schema": ["a()", "", ""], "input_shapes": [[[2]], [], []]})


def test_nodes_schemas_and_links_are_counted() -> None:
    first, second = sentences(NODES, pd.DataFrame({"et_node": [1, 1, 2]}))
    assert first == "3 nodes of 2 names; 1 are operators with a schema, 1 have input shapes."
    assert second == "3 activities of the trace belong to 2 nodes."
    assert "Give the trace" in sentences(NODES, None)[1]
