"""Two jobs side by side, name by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["counts_diff", "duration_diff"]

_TOTAL = "_total_duration"


def counts_diff(table: pd.DataFrame) -> Figure:
    """Return bars of how often each name occurs in either job, and the difference.

    Args:
        table: result of `TraceDiff.compare_traces`.
    """
    return _bars(table, "_counts", "diff_counts").update_layout(barmode="group", title_text="Ops Count Comparison")


def duration_diff(table: pd.DataFrame) -> Figure:
    """Return bars of how long each name takes in either job, and the difference; the table as for `counts_diff`."""
    return _bars(table, _TOTAL, "diff_duration").update_layout(
        barmode="group", title_text="Ops Duration Comparison", yaxis_title="Total Duration (us)",
        autosize=True, width=1000, height=1000,
    )  # fmt: skip


def _bars(table: pd.DataFrame, suffix: str, difference: str) -> Figure:
    from plotly.graph_objects import Bar, Figure

    labels = [str(name).removesuffix(_TOTAL) for name in table.columns if str(name).endswith(_TOTAL)]
    if len(labels) != 2:
        msg = f"the table has {len(labels)} columns that end with {_TOTAL}: pass the result of compare_traces"
        raise ValueError(msg)
    columns = {label: f"{label}{suffix}" for label in labels} | {"Difference": difference}
    return Figure([Bar(name=name, x=table.index, y=table[column]) for name, column in columns.items()])
