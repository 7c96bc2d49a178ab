"""What ``htagraph execution-trace`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.output.phrases import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TITLES", "sentences"]

TITLES = {"names": "Nodes by name, the most frequent first", "links": "Activities and their nodes"}
"""Titles by the name of the table."""


def sentences(nodes: pd.DataFrame, linked: pd.DataFrame | None) -> list[str]:
    """Return how many nodes there are, how many have a schema and shapes, and how many activities are linked.

    Args:
        nodes: result of `htagraph.execution_trace.read`.
        linked: result of `htagraph.execution_trace.link`; None where no trace was given.
    """
    operators, shaped = int((nodes["op_schema"] != "").sum()), int((nodes["input_shapes"].str.len() > 0).sum())
    lines = [
        f"{plural(len(nodes), 'node')} of {plural(nodes['name'].nunique(), 'name')}; {operators:,} are operators with "
        f"a schema, {shaped:,} have input shapes."
    ]
    if linked is None:
        lines.append("Give the trace of the same run behind it to link its activities to the nodes.")
    elif not len(linked):
        lines.append("No activity of the trace has a node: were both recorded in one run, with External ids?")
    else:
        of = plural(linked["et_node"].nunique(), "node")
        lines.append(
            f"{plural(len(linked), 'activity').replace('activitys', 'activities')} of the trace belong to {of}."
        )
    return lines
