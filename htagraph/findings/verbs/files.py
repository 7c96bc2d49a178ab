"""What ``htagraph cache``, ``validate`` and ``execution-trace`` say of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.findings.phrases import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cache_cleared", "cache_contents", "execution_trace_sentences", "no_cache", "validation_sentences"]


def cache_contents(folder: str, count: int, size: int, limit: int) -> list[str]:
    """Return where the cache is and how full; sizes are bytes."""
    return [
        f"{folder} holds {plural(count, 'graph')}, {size / 1e9:.2f} of at most {limit / 1e9:g} GB (HTAGRAPH_CACHE_GB).",
        "Commands on large jobs fill it: --no-cache or HTAGRAPH_NO_CACHE=1 keeps them from it.",
    ]


def cache_cleared(folder: str, count: int, size: int) -> list[str]:
    """Return what was removed; the size is bytes."""
    return [f"{plural(count, 'graph')} removed from {folder}, {size / 1e9:.2f} GB."]


def no_cache() -> list[str]:
    """Return why nothing is cached."""
    return ["There is no cache: HTAGRAPH_NO_CACHE is set, or this user has no folder of their own for it."]


def validation_sentences(problems: int, skipped: int) -> list[str]:
    """Return whether the files can be read, and what that means for other commands."""
    if not problems:
        return ["Nothing had to be repaired or dropped."]
    if not skipped:
        return ["Every file can be read; what is listed above was repaired, kept or left out, as each line says."]
    return [
        f"{plural(skipped, 'file')} cannot be read, and other commands do not answer for a part of a job unasked: give "
        "them the files that can be read."
    ]


def execution_trace_sentences(nodes: pd.DataFrame, linked: pd.DataFrame | None) -> list[str]:
    """Return how many nodes there are, how many have a schema and shapes, and how many activities are linked."""
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
