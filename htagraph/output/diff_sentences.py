"""Why steps take longer or shorter after than before, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.core.naming import short_name
from htagraph.output.phrases import CATEGORY_WORDS, time_text
from htagraph.output.report import inputs_of

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.differences.compared_parts import Part
    from htagraph.analyses.differences.diff import Diff
    from htagraph.analyses.differences.effects import Effects

__all__ = ["diff_sentences"]

_TRANSFERS = frozenset(kind.label for kind in COMMUNICATION)
_MIN_SHARE = 0.05
"""Share of the change; chosen: less is not worth a sentence. Doubled, causes of 5 to 10 % of it are not named."""
_MIN_PATH_SHARE = 0.001
"""Share of the step time; chosen: less of a category is no change. Doubled, changes of 0.1 to 0.2 % are not listed."""
_MAX_SENTENCES = 3
"""Causes that are named; chosen: more do not fit on a screen. Doubled, six are."""
_MIN_EXPLAINED_SHARE = 0.7
"""Share of the change that durations explain; below it, a sentence says where the rest is. Chosen; doubled, always."""
_ONE_RANK_SHARE = 0.8
"""Share of a change of own time that is one rank's, for it to be called that rank's. Chosen; doubled, none is."""
_MAX_NAMES = 4
"""Names in a sentence; chosen: more do not fit on two lines. Doubled, eight."""
_MAX_FACTOR_DIFFERENCE = 0.1
"""How much relative changes of own time that have one cause differ, as a share of the larger. Chosen: operators that
one change halves are recorded as 49.5 to 50.5 % shorter. Doubled, -20 % and -24 % are called one cause."""
_MIN_WAITING = 2.0
"""How many times its own time a call that only one job has must change the step time, for it to be said to make the
host wait. Chosen: its own time alone cannot do that. Doubled, waits as long as the call are not named."""
_CHANGE = {"rank": "rank_change_us"}
_MAX_LETTERS = 100
"""Letters of a call path in a sentence; chosen: about one line. Doubled, two lines."""


def diff_sentences(diff: Diff) -> list[str]:
    """Return why the steps of one job take longer than those of the other, the most important first."""
    if not diff.before.makespan_ns and not diff.after.makespan_ns:
        return ["Nothing was recorded: there is nothing to compare."]
    effects = diff.effects()
    return [_change(diff, effects), *_unlike(diff), *_causes(diff, effects), *_where(diff), *_structure(diff)]


def _change(diff: Diff, effects: Effects) -> str:
    before, after = time_text(diff.before_us), time_text(diff.after_us)
    what = "On average, a step" if diff.unit == "step" else "The job"
    if diff.is_same:
        return f"{what} takes as long as before: {after} ({before} before)."
    percent = f" ({abs(diff.change_percent):.1f} %)" if diff.before_us else ""
    chance = "; steps of one job differ by that much, too" if effects.is_chance else ""
    change = f"{time_text(abs(diff.change_us))}{percent} {_longer(diff.change_us)}"
    return f"{what} is {change}: {after} instead of {before}{chance}."


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


def _causes(diff: Diff, effects: Effects) -> list[str]:
    """Say which work, as long as before, would bring the old time back; causes of one origin in one sentence."""
    rows = effects.to_frame().to_dict("records")
    if not effects.change_us:
        return _beside(rows[0], diff) if rows else []
    bullets: dict[tuple[str, Any], list[dict[Any, Any]]] = {}
    for row in rows:
        if (row["effect_us"] / diff.change_us + effects.likely_us(row) / abs(diff.change_us)) >= _MIN_SHARE:
            origin = _origin(row, diff)
            alike = [each for each, (first, *_) in bullets.items() if each[0] == origin[0] and _in_step(first, row)]
            bullets.setdefault(alike[0] if alike and origin[0] == row["kind"] else origin, []).append(row)
    lines = [_cause(origin, each, effects, diff) for origin, each in [*bullets.items()][:_MAX_SENTENCES]]
    share = effects.explained_us / diff.change_us
    if share < _MIN_EXPLAINED_SHARE:
        lines.append(
            f"Longer or shorter work explains only {max(0.0, 100 * share):.0f} % of the change; the rest is in what "
            f"waits for what, and in pauses{_largest_parts(diff)}."
        )
    return lines


def _origin(row: dict[Any, Any], diff: Diff) -> tuple[str, Any]:
    """Return what rows must have in common to be one cause: transfers, work of one rank, being new or gone."""
    if row["kind"] in _TRANSFERS:
        return "transfers", None
    ranks = len(diff.parts[0].chosen_ranks)
    alike = ranks > 1 and row["rank"] >= 0 and row["rank_change_us"] * row["change_us"] > 0
    if alike and abs(row["rank_change_us"]) >= _ONE_RANK_SHARE * ranks * abs(row["change_us"]):
        return "rank", row["rank"]
    if not row["before_us"] or not row["after_us"]:
        return ("new" if row["after_us"] else "gone"), None
    return row["kind"], row["name"]


def _in_step(first: dict[Any, Any], row: dict[Any, Any]) -> bool:
    """Return whether two rows' own times changed by the same factor, as by another clock rate or input size."""
    factors = [each["change_us"] / each["before_us"] if each["before_us"] else 0.0 for each in (first, row)]
    return abs(factors[0] - factors[1]) <= _MAX_FACTOR_DIFFERENCE * max(map(abs, factors))


def _beside(row: dict[Any, Any], diff: Diff) -> list[str]:
    """Say what changed most although the step time did not, or not beyond chance."""
    origin = _origin(row, diff)
    if abs(row[_CHANGE.get(origin[0], "change_us")]) < _MIN_SHARE * diff.before_us:
        return []
    if diff.is_same:
        return [f"{_own(origin, [row], diff)}, which does not change how long the {diff.unit} takes."]
    return [f"{_own(origin, [row], diff)}; steps differ too much to say whether that changed the step time."]


def _largest_parts(diff: Diff) -> str:
    """Say where on the critical path that is."""
    table = diff.to_frame()
    table = table[table["change_us"] / diff.change_us >= _MIN_SHARE]
    parts = [
        f"{_signed(row['change_us'])} {CATEGORY_WORDS[row['category']]} at {_cut(row['path'])}"
        for row in table.head(_MAX_SENTENCES).to_dict("records")
    ]
    return f": {'; '.join(parts)}" if parts else ""


def _cause(origin: tuple[str, Any], rows: list[dict[Any, Any]], effects: Effects, diff: Diff) -> str:
    """Say how much the work of one origin changed, and what that did to the step time."""
    unit, change = diff.unit, sum(row[_CHANGE.get(origin[0], "change_us")] for row in rows)
    effect = float(rows[0]["effect_us"])
    if len(rows) > 1:
        effect = effects.replayed([(row["name"], row["kind"]) for row in rows])
    if sum(effects.likely_us(row) for row in rows) > abs(effect):
        return (
            f"{_own(origin, rows, diff)}, which is likely why the {unit} is {_longer(diff.change_us)}: "
            "what waits for it was not recorded, and no replay can tell."
        )
    result = (
        f"the {unit} {time_text(abs(effect))} {_longer(effect)} ({100 * effect / diff.change_us:.0f} % of the change)"
    )
    if change * effect < 0:
        return f"{_own(origin, rows, diff)} on average, but where the {unit} waits for it, it makes {result}."
    gone = origin[0] in ("gone", "new") and abs(effect) > _MIN_WAITING * abs(change)
    waiting = f" and {_waiting(origin[0], len(rows))}," if gone else ","
    return f"{_own(origin, rows, diff)}{waiting} which makes {result}."


def _waiting(origin: str, count: int) -> str:
    where = "in it" if count == 1 else "in them"
    return f"nothing waits {where} any more" if origin == "gone" else f"the host waits {where}"


def _own(origin: tuple[str, Any], rows: list[dict[Any, Any]], diff: Diff) -> str:
    """Say by how much the own time of some rows changed."""
    change = sum(row[_CHANGE.get(origin[0], "change_us")] for row in rows)
    where = f"per {diff.unit} on rank {origin[1]}" if origin[0] in _CHANGE else f"per rank and {diff.unit}"
    return f"{_names(rows)} {'take' if len(rows) > 1 else 'takes'} {_more_or_less(change)} own time {where}"


def _names(rows: list[dict[Any, Any]]) -> str:
    """Return the names of some rows, as a list in words; what only one job has is said to be new or gone."""
    names = [
        row["name"] + (" (it is new)" if not row["before_us"] else " (it is gone)" if not row["after_us"] else "")
        for row in rows
    ]
    if len(names) > _MAX_NAMES:
        names = [*names[: _MAX_NAMES - 1], f"{len(names) - _MAX_NAMES + 1} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _longer(us: float) -> str:
    return "longer" if us > 0 else "shorter"


def _more_or_less(us: float) -> str:
    return f"{time_text(abs(us))} {'more' if us > 0 else 'less'}"


def _where(diff: Diff) -> list[str]:
    """Say how the time on the critical path shifted between categories."""
    table = diff.summary()
    by_category = table[table["group"] == "category"]
    smallest = max(_MIN_SHARE * abs(diff.change_us), _MIN_PATH_SHARE * diff.before_us)
    by_category = by_category[by_category["change_us"].abs() > smallest].head(2 * _MAX_SENTENCES)
    if not len(by_category):
        return []
    parts = [
        f"{CATEGORY_WORDS[key]} {_signed(us)}{_exposed(key, us, diff)}"
        for key, us in zip(by_category["key"], by_category["change_us"], strict=True)
    ]
    return [f"On the critical path, per {diff.unit}: {', '.join(parts)}."]


def _exposed(category: str, us: float, diff: Diff) -> str:
    """Say where more of the same computation is on the critical path only because something else is not."""
    if category != "computation":
        return ""
    before, after = (_computation_us(part) for part in diff.parts)
    if abs(after - before) < abs(us) / 2 or (after - before) * us < 0:
        return " (no more work than before, it was hidden)" if us > 0 else " (hidden now, not less work)"
    return ""


def _computation_us(part: Part) -> float:
    """Return the time of kernels that compute, per rank and step."""
    acts = part.graph.activities
    rows = part.activities[acts.kind[part.activities] == ActivityKind.COMPUTATION]
    return float(acts.duration[rows].sum()) / part.repeats / 1000


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
        kernels = "1 kernel was" if len(renamed) == 1 else f"{len(renamed):,} kernels were"
        lines.append(f"{kernels} replaced by another: {_replaced(renamed.iloc[0])}.")
    return lines


def _replaced(row: pd.Series[str]) -> str:
    """Return both names, short ones where these differ."""
    old, new = short_name(row["before"]), short_name(row["after"])
    if old == new:
        return f"{old} has other template arguments or parameters"
    return f"{_cut(new)} instead of {_cut(old)}"


def _cut(text: str) -> str:
    """Return a text that fits into a sentence: its end says most."""
    return text if len(text) <= _MAX_LETTERS else f"…{text[1 - _MAX_LETTERS :]}"


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else '-'}{time_text(abs(us))}"
