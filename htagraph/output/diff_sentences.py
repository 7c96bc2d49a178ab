"""Why steps take longer or shorter after than before, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.output.report import inputs_of
from htagraph.queries.paths import CATEGORY_WORDS

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.differences.diff import Diff

__all__ = ["told"]

_ALIKE = 0.1  # percent of the step time: what is less is no change
_WORTH = 0.05  # of the change: what is less is not worth a sentence
_MOST = 3
_EXPLAINED = 0.7  # of the change
_WIDTH = 100  # letters of a call path
_US_PER_MS = 1000.0


def told(diff: Diff) -> list[str]:
    """Return why the steps of one job take longer than those of the other, the most important first."""
    if not diff.before.makespan_ns and not diff.after.makespan_ns:
        return ["Nothing was recorded: there is nothing to compare."]
    return [_change(diff), *_unlike(diff), *_causes(diff), *_where(diff), *_structure(diff)]


def _change(diff: Diff) -> str:
    numbers = [f"{_time(diff.before_us)}", f"{_time(diff.after_us)}"]
    what = "A step takes on average" if diff.unit == "step" else "The job takes"
    if _same(diff):
        return f"{what} as long as before: {numbers[1]}, before {numbers[0]}."
    word = "longer" if diff.change_us > 0 else "shorter"
    percent = f" ({abs(diff.change_percent):.1f} %)" if diff.before_us else ""
    return f"{what} {_time(abs(diff.change_us))}{percent} {word}: {numbers[1]} instead of {numbers[0]}."


def _unlike(diff: Diff) -> list[str]:
    """Say where the jobs ran on other devices or are of different size, which changes times by itself."""
    said = []
    inputs = [inputs_of(part.graph) for part in diff.parts]
    devices = [", ".join(sorted(set(each["device"]))) for each in inputs]
    if devices[0] != devices[1]:
        said.append(f"The jobs ran on different devices: {devices[0]} before, {devices[1]} after.")
    worlds = [int(each["world_size"].max()) if len(each) else 0 for each in inputs]
    if all(worlds) and worlds[0] != worlds[1]:
        said.append(f"The jobs have different sizes: {worlds[0]} ranks before and {worlds[1]} after.")
    before, after = (len(part.chosen_ranks) for part in diff.parts)
    if before != after:
        said.append(
            f"Different numbers of ranks were read, {before} before and {after} after: how long ranks wait for "
            "each other and transfer differs with that alone."
        )
    without = [word for word, part in zip(("before", "after"), diff.parts, strict=True) if not part.graph.steps]
    if diff.unit == "job" and len(without) == 1:
        counts = next(part for part in diff.parts if part.graph.steps).graph.steps
        other = "after" if without == ["before"] else "before"
        said.append(
            f"The job {without[0]} has no steps, so whole jobs are compared, that {other} with {len(counts)} "
            f"step{'' if len(counts) == 1 else 's'}: record both with profiler.step() to compare steps."
        )
    return said


def _causes(diff: Diff) -> list[str]:
    """Say which work, as long as before, would bring the old time back."""
    if _same(diff):
        return []
    found = diff.effects()
    said = [
        _cause(row, diff) for row in found.to_frame().to_dict("records") if row["effect_us"] / diff.change_us >= _WORTH
    ][:_MOST]
    share = found.explained_us / diff.change_us
    if share < _EXPLAINED:
        said.append(
            f"How long work takes explains only {max(0.0, 100 * share):.0f} % of the change: the rest is in what waits "
            f"for what, and in pauses{_most(diff)}."
        )
    return said


def _most(diff: Diff) -> str:
    """Say where on the critical path that is."""
    table = diff.to_frame()
    table = table[table["change_us"] / diff.change_us >= _WORTH]
    parts = [
        f"{_signed(row['change_us'])} {CATEGORY_WORDS[row['category']]} at {_cut(row['path'])}"
        for row in table.head(_MOST).to_dict("records")
    ]
    return f": {'; '.join(parts)}" if parts else ""


def _cause(row: dict[Any, Any], diff: Diff) -> str:
    change, effect = float(row["change_us"]), float(row["effect_us"])
    if change * effect < 0:
        return (
            f"{row['name']} takes {_signed(change)} per rank and {diff.unit} of its own on average, but where it "
            f"counts it makes the {diff.unit} {_time(abs(effect))} {'longer' if effect > 0 else 'shorter'} "
            f"({100 * effect / diff.change_us:.0f} % of the change)."
        )
    new = " (it is new)" if not row["before_us"] else " (it is gone)" if not row["after_us"] else ""
    return (
        f"{row['name']}{new} takes {_time(abs(change))} {'more' if change > 0 else 'less'} per rank and {diff.unit} of "
        f"its own, which makes the {diff.unit} {_time(abs(effect))} {'longer' if effect > 0 else 'shorter'} "
        f"({100 * effect / diff.change_us:.0f} % of the change)."
    )


def _where(diff: Diff) -> list[str]:
    """Say how the time on the critical path shifted between categories."""
    table = diff.summary()
    mine = table[table["group"] == "category"]
    least = max(_WORTH * abs(diff.change_us), _ALIKE / 100 * diff.before_us)
    mine = mine[mine["change_us"].abs() > least].head(2 * _MOST)
    if not len(mine):
        return []
    parts = [f"{CATEGORY_WORDS[key]} {_signed(us)}" for key, us in zip(mine["key"], mine["change_us"], strict=True)]
    return [f"On the critical path, per {diff.unit}: {', '.join(parts)}."]


def _structure(diff: Diff) -> list[str]:
    said = []
    for table, who in ((diff.added, "after"), (diff.removed, "before")):
        if len(table):
            first = table.iloc[0]
            paths = f"{len(table):,} call path{'' if len(table) == 1 else 's'}"
            said.append(
                f"Only the job {who} has {paths}{', such as' if len(table) > 1 else ':'} {_cut(str(first['path']))} "
                f"({_time(float(first['total_us']))} per rank and {diff.unit})."
            )
    renamed = diff.renamed
    if len(renamed):
        first = renamed.iloc[0]
        kernels = "1 kernel has" if len(renamed) == 1 else f"{len(renamed):,} kernels have"
        said.append(f"{kernels} another name: {_renamed(first)}.")
    return said


def _renamed(row: pd.Series[str]) -> str:
    """Return both names, short ones where these differ."""
    from htagraph.core.naming import short_name

    old, new = short_name(row["before"]), short_name(row["after"])
    if old == new:
        return f"{old} with other template arguments or parameters"
    return f"{_cut(new)} instead of {_cut(old)}"


def _same(diff: Diff) -> bool:
    return abs(diff.change_us) <= _ALIKE / 100 * diff.before_us


def _cut(text: str) -> str:
    """Return a text that fits into a sentence: its end says most."""
    return text if len(text) <= _WIDTH else f"…{text[1 - _WIDTH :]}"


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else '-'}{_time(abs(us))}"


def _time(us: float) -> str:
    if us >= _US_PER_MS:
        return f"{us / 1000:.{2 if us < 10 * _US_PER_MS else 1}f} ms"
    return f"{us:.1f} µs"
