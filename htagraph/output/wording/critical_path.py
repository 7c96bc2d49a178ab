"""What ``htagraph critical-path`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.output.phrases import and_list, category_words, command_line, glob_of, plural, time_text
from htagraph.whatif.change_options import CHANGES, criteria_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.queries.paths import CriticalPath

__all__ = ["HEADINGS", "TITLES", "sentences"]

TITLES = {
    "path_category": "Critical path by category",
    "path_rank": "Critical path by rank",
    "path_operator": "Critical path by operator",
    "path_kernel": "Critical path by kernel",
    "hops": "Where the critical path moves to another rank (the second rank waits for the first)",
    "near": "Next-critical work (slack: how much longer it may take before it is critical)",
    "segments": "Critical path, segment by segment",
}
"""Titles by the name of the table."""
HEADINGS = {"main": "main work"}
"""Headings of columns whose names do not say enough."""

_MIN_PERCENT = 5.0
"""Percent of the path from which a category is named; chosen: the table has the rest. Doubled, fewer are named."""
_HALVED = ("communication", "computation", "memory")
_REMEDY = {
    "host": ("--infinite-host",), "launch": ("--no-launch-overhead",), "data_loading": ("--free-dataloader",),
    "sync": ("--remove-sync", "kind=sync"),
}  # fmt: skip
"""The change that predicts the job without a category."""


def sentences(path: CriticalPath, whole: pd.DataFrame, hops: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return what the path consists of, where it lies, and what its largest part could save.

    Args:
        path: the critical path.
        whole: its `CriticalPath.summary`.
        hops: its `CriticalPath.hops`.
        inputs: the words of the command line that choose what is read.
    """
    if not path.makespan_ns:
        return ["Nothing was recorded: there is no critical path."]
    by_category = whole[whole["group"] == "category"]
    parts = [
        f"{category_words(key)} {share:.0f} %"
        for key, share in zip(by_category["key"], by_category["share_percent"], strict=True)
        if share >= _MIN_PERCENT
    ]
    total = time_text(path.makespan_ns / 1000)
    return [
        f"The critical path is {total} long: {and_list(parts) if parts else 'many small parts'}.",
        *_where(path, whole, hops, inputs),
        *_saving(path, whole, inputs),
    ]


def _where(path: CriticalPath, whole: pd.DataFrame, hops: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Say on which rank the path lies, and whether others are waited for."""
    if len(path.graph.ranks) < 2:
        return []
    first = whole[whole["group"] == "rank"].iloc[0]
    share = f"{first['share_percent']:.0f} % of the path is on rank {first['key']}"
    if not len(hops):
        return [f"{share}; it waits for no other rank."]
    why = command_line("stragglers", inputs)
    return [
        f"{share}; it moves to another rank {plural(len(hops), 'time')}, where one rank waits for another. "
        f"To see why: {why}"
    ]


def _saving(path: CriticalPath, whole: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Say what the largest part could save at most, and how to predict what it really would."""
    first = whole[whole["group"] == "category"].iloc[0]
    category, time = str(first["key"]), float(first["time_us"])
    what = category_words(category)
    if category in _HALVED:
        name, time = (what, time) if category == "communication" else _longest(path, category)
        options = ["--network", "0.5"] if name == what else ["--scale", f"{criteria_text({'name': glob_of(name)})}:0.5"]
        percent = 50 * time / (path.makespan_ns / 1000)
        start = (
            f"If {name} took half its time, at most {time_text(time / 2)} ({percent:.0f} %) would be saved; predicted "
            "by replay, the whole job"
        )
    elif category in _REMEDY:  # these take away more than their category: an upper limit of the saving is not known
        start, options = f"Predicted by replay without {what}, the whole job", list(_REMEDY[category])
    else:
        return [f"Most of the path is {what}, which cannot be sped up directly; list what comes before: --segments."]
    line = command_line("what-if", inputs, *options)
    return [f"{start} {_predicted(path, options)}.", f"To try it together with other changes: {line}"]


def _predicted(path: CriticalPath, options: list[str]) -> str:
    """Return in words what a change would save: less than its time where something else becomes critical."""
    from htagraph.core.errors import SelectionError
    from htagraph.whatif.what_if import what_if

    option, *value = options
    try:
        outcome = CHANGES[option.removeprefix("--")].read("".join(value)).apply(what_if(path.graph)).run()
    except SelectionError as error:
        return f"cannot be predicted: {error}"
    if outcome.saved_ns <= 0:
        return "would not be shorter, because something else is critical then"
    percent = 100 * outcome.saved_ns / outcome.baseline_ns
    return f"would be shorter by {time_text(outcome.saved_ns / 1000)} ({percent:.0f} %)"


def _longest(path: CriticalPath, category: str) -> tuple[str, float]:
    """Return (short name, µs) of the work of a category that has most of the path."""
    from htagraph.core.naming import short_name

    table = path.to_frame()
    by_name = table[table["category"] == category].groupby("name")["duration_us"].sum()
    by_short_name = by_name.groupby([short_name(str(name)) for name in by_name.index]).sum()
    return str(by_short_name.idxmax()), float(by_short_name.max())
