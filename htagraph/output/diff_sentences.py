"""Why steps take longer or shorter after than before, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.output.phrases import CATEGORY_WORDS, time_text
from htagraph.output.report import inputs_of

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.differences.diff import Diff

__all__ = ["diff_sentences"]

_MAX_EQUAL_PERCENT = 0.1
"""Percent of the step time; chosen: less is no change. Doubled, changes of 0.1 to 0.2 % are called none."""
_MIN_SHARE = 0.05
"""Share of the change; chosen: less is not worth a sentence. Doubled, causes of 5 to 10 % of it are not named."""
_MAX_SENTENCES = 3
"""Causes that are named; chosen: more do not fit on a screen. Doubled, six are."""
_MIN_EXPLAINED_SHARE = 0.7
"""Share of the change that durations explain; below it, a sentence says where the rest is. Chosen; doubled, always."""
_MAX_LETTERS = 100
"""Letters of a call path in a sentence; chosen: about one line. Doubled, two lines."""


def diff_sentences(diff: Diff) -> list[str]:
    """Return why the steps of one job take longer than those of the other, the most important first."""
    if not diff.before.makespan_ns and not diff.after.makespan_ns:
        return ["Nothing was recorded: there is nothing to compare."]
    return [_change(diff), *_unlike(diff), *_causes(diff), *_where(diff), *_structure(diff)]


def _change(diff: Diff) -> str:
    before, after = time_text(diff.before_us), time_text(diff.after_us)
    what = "On average, a step" if diff.unit == "step" else "The job"
    if _same(diff):
        return f"{what} takes as long as before: {after} ({before} before)."
    word = "longer" if diff.change_us > 0 else "shorter"
    percent = f" ({abs(diff.change_percent):.1f} %)" if diff.before_us else ""
    return f"{what} is {time_text(abs(diff.change_us))}{percent} {word}: {after} instead of {before}."


def _unlike(diff: Diff) -> list[str]:
    """Say where the jobs ran on other devices or are of different size, which changes times by itself."""
    lines = []
    inputs = [inputs_of(part.graph) for part in diff.parts]
    devices = [", ".join(sorted(set(each["device"]))) for each in inputs]
    if devices[0] != devices[1]:
        lines.append(f"The jobs ran on different devices: {devices[0]} before, {devices[1]} after.")
    worlds = [int(each["world_size"].max()) if len(each) else 0 for each in inputs]
    if all(worlds) and worlds[0] != worlds[1]:
        lines.append(f"The jobs have different sizes: {worlds[0]} ranks before and {worlds[1]} after.")
    before, after = (len(part.chosen_ranks) for part in diff.parts)
    if before != after:
        lines.append(
            f"Different numbers of ranks were read, {before} before and {after} after: how long ranks wait for "
            "each other and transfer differs for that reason alone."
        )
    without = [word for word, part in zip(("before", "after"), diff.parts, strict=True) if not part.graph.steps]
    if diff.unit == "job" and len(without) == 1:
        counts = next(part for part in diff.parts if part.graph.steps).graph.steps
        other = "after" if without == ["before"] else "before"
        lines.append(
            f"The job {without[0]} has no steps, so whole jobs are compared; the job {other} has {len(counts)} "
            f"step{'' if len(counts) == 1 else 's'}. Record both with profiler.step() to compare steps."
        )
    return lines


def _causes(diff: Diff) -> list[str]:
    """Say which work, as long as before, would bring the old time back."""
    if _same(diff):
        return []
    effects = diff.effects()
    rows = [row for row in effects.to_frame().to_dict("records") if row["effect_us"] / diff.change_us >= _MIN_SHARE]
    lines = [_cause(row, diff) for row in rows[:_MAX_SENTENCES]]
    share = effects.explained_us / diff.change_us
    if share < _MIN_EXPLAINED_SHARE:
        lines.append(
            f"Longer or shorter work explains only {max(0.0, 100 * share):.0f} % of the change; the rest is in what "
            f"waits for what, and in pauses{_largest_parts(diff)}."
        )
    return lines


def _largest_parts(diff: Diff) -> str:
    """Say where on the critical path that is."""
    table = diff.to_frame()
    table = table[table["change_us"] / diff.change_us >= _MIN_SHARE]
    parts = [
        f"{_signed(row['change_us'])} {CATEGORY_WORDS[row['category']]} at {_cut(row['path'])}"
        for row in table.head(_MAX_SENTENCES).to_dict("records")
    ]
    return f": {'; '.join(parts)}" if parts else ""


def _cause(row: dict[Any, Any], diff: Diff) -> str:
    change, effect = float(row["change_us"]), float(row["effect_us"])
    if change * effect < 0:
        return (
            f"{row['name']} takes {_more_or_less(change)} own time per rank and {diff.unit} on average, but where the "
            f"{diff.unit} waits for it, it makes the {diff.unit} {time_text(abs(effect))} "
            f"{'longer' if effect > 0 else 'shorter'} ({100 * effect / diff.change_us:.0f} % of the change)."
        )
    new = " (it is new)" if not row["before_us"] else " (it is gone)" if not row["after_us"] else ""
    return (
        f"{row['name']}{new} takes {_more_or_less(change)} own time per rank and {diff.unit}, which makes the "
        f"{diff.unit} {time_text(abs(effect))} {'longer' if effect > 0 else 'shorter'} "
        f"({100 * effect / diff.change_us:.0f} % of the change)."
    )


def _more_or_less(us: float) -> str:
    return f"{time_text(abs(us))} {'more' if us > 0 else 'less'}"


def _where(diff: Diff) -> list[str]:
    """Say how the time on the critical path shifted between categories."""
    table = diff.summary()
    by_category = table[table["group"] == "category"]
    smallest = max(_MIN_SHARE * abs(diff.change_us), _MAX_EQUAL_PERCENT / 100 * diff.before_us)
    by_category = by_category[by_category["change_us"].abs() > smallest].head(2 * _MAX_SENTENCES)
    if not len(by_category):
        return []
    parts = [
        f"{CATEGORY_WORDS[key]} {_signed(us)}"
        for key, us in zip(by_category["key"], by_category["change_us"], strict=True)
    ]
    return [f"On the critical path, per {diff.unit}: {', '.join(parts)}."]


def _structure(diff: Diff) -> list[str]:
    lines = []
    for table, who in ((diff.added, "after"), (diff.removed, "before")):
        if len(table):
            first = table.iloc[0]
            paths = f"{len(table):,} call path{'' if len(table) == 1 else 's'}"
            lines.append(
                f"Only the job {who} has {paths}{', such as' if len(table) > 1 else ':'} {_cut(str(first['path']))} "
                f"({time_text(float(first['total_us']))} per rank and {diff.unit})."
            )
    renamed = diff.renamed
    if len(renamed):
        first = renamed.iloc[0]
        kernels = "1 kernel has" if len(renamed) == 1 else f"{len(renamed):,} kernels have"
        lines.append(f"{kernels} another name: {_renamed(first)}.")
    return lines


def _renamed(row: pd.Series[str]) -> str:
    """Return both names, short ones where these differ."""
    from htagraph.core.naming import short_name

    old, new = short_name(row["before"]), short_name(row["after"])
    if old == new:
        return f"{old} with other template arguments or parameters"
    return f"{_cut(new)} instead of {_cut(old)}"


def _same(diff: Diff) -> bool:
    return abs(diff.change_us) <= _MAX_EQUAL_PERCENT / 100 * diff.before_us


def _cut(text: str) -> str:
    """Return a text that fits into a sentence: its end says most."""
    return text if len(text) <= _MAX_LETTERS else f"…{text[1 - _MAX_LETTERS :]}"


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else '-'}{time_text(abs(us))}"
