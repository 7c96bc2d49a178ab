"""Why steps take longer or shorter after than before: the sentences of ``htagraph diff``, `diff` and ``compare``."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.analyses.differences.diff import Diff
from htagraph.analyses.differences.effects import PYTHON_BETWEEN, Effects, Key
from htagraph.analyses.differences.step_change import StepChange
from htagraph.analyses.overlap import overlap
from htagraph.core.kinds import COMMUNICATION, FRAMES, ActivityKind, GapKind
from htagraph.core.naming import is_data_loader, short_name
from htagraph.core.statistics import MOST
from htagraph.findings.bound import source_of
from htagraph.findings.incomplete import Comparison, comparison_of
from htagraph.findings.limits import LARGE_SHARE, MAX_LISTED, MAX_NAMED, MIN_SHARE, ROUNDING
from htagraph.findings.phrases import CATEGORY_WORDS, and_list, command_line, plural, spoken, time_text
from htagraph.findings.verbs.recording_cost import recording_sentence
from htagraph.graph.measures.steps import cadence_of
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.inputs import devices_in, inputs_of
from htagraph.queries.paths import CriticalPath

__all__ = [
    "compare_sentences",
    "compared",
    "cut",
    "diff_sentences",
    "gate",
    "incomplete_limit",
    "structure",
    "too_long",
    "unlike",
]

_HOST = "host"
_WORK = {
    "computation": frozenset((ActivityKind.COMPUTATION.label,)),
    _HOST: frozenset((PYTHON_BETWEEN[1], *(kind.label for kind in (*FRAMES, ActivityKind.RUNTIME)))),
}
"""Kinds of work that the critical path spends time on, by category, as far as their own time says how much there is."""
_TRANSFERS = frozenset(kind.label for kind in COMMUNICATION)
_MAX_FACTOR_DIFFERENCE = 0.1
"""How much relative changes of own time that have one cause differ, as a share of the larger. Chosen: operators that
one change halves are recorded as 49.5 to 50.5 % shorter. Doubled, -20 % and -24 % are called one cause."""
_ONE_SIDED, _WHOLE, _REPLACED = ("new", "gone"), "with all inside", "replaced"
_MIN_WAITING = 2.0
"""How many times its own time on all ranks a call that only one job has must change the step time, for it to be said to
make the host wait. Chosen: its own time alone cannot do that. Doubled, waits as long as the call are not named."""
_KINDS = {
    "added": "only in the job after", "removed": "only in the job before", "more": "more often", "fewer": "less often",
    "same": "as often as before",
}  # fmt: skip
"""Kinds of change in words."""
_CHANGE = {"rank": "rank_change_us"}
_MAX_LETTERS = 100
"""Letters of a call path in a sentence; chosen: about one line. Doubled, two lines."""


def diff_sentences(diff: Diff) -> list[str]:
    """Return why the steps of one job take longer than those of the other, the most important first."""
    if not diff.before.makespan_ns and not diff.after.makespan_ns:
        return ["Nothing was recorded: there is nothing to compare."]
    effects = diff.effects()
    empty = [word for word, path in (("before", diff.before), ("after", diff.after)) if not path.makespan_ns]
    if empty:
        return [_change(diff), f"Nothing was recorded in the job {empty[0]}: there is nothing to compare with."]
    notes, lost = compared(diff.parts)
    if lost:
        return [*notes, *([] if diff.change.is_incomplete else [_change(diff)])]
    apart = [*notes, *unlike(diff.parts)]
    if _is_other_work(diff):
        other = (
            "The jobs do different work: operators and kernels that both have are less than half of those of one job, "
            "in number and in time. So no change can be named as the cause; compare recordings of one program."
        )
        return [other, *apart, _change(diff), *structure(diff)]
    causes = _causes(diff, effects)
    said = [
        *apart,
        _change(diff),
        *spoken(recording_sentence(diff)),
        *causes,
        *_where(diff, effects, is_explained=len(causes) > 0),
    ]
    return [*said, *(_regions(diff) if effects.change_us else []), *structure(diff), *_left_out(diff)]


def compared(parts: Sequence[ComparedPart]) -> Comparison:
    """Return the parts that two recordings lack, and whether the recordings can be compared."""
    before, after = parts
    return comparison_of(before.graph, after.graph, (len(before.chosen_ranks), len(after.chosen_ranks)))


def _change(diff: Diff) -> str:
    what, change = ("A usual step" if diff.unit == "step" else "The job"), diff.change
    before, after = time_text(change.before_us), time_text(change.after_us)
    if change.shows_none:
        both = f"{after} in both jobs" if before == after else f"{after} instead of {before}"
        return f"No difference that these recordings show: a usual step takes {both} ({change.interval()})."
    if diff.is_same:
        return f"{what} takes as long as before: {after} ({before} before)."
    unknown = "" if change.is_known or diff.unit != "step" else "; too few steps were recorded to tell that from noise"
    percent = f" ({change.interval()})" if diff.before_us else ""
    if change.is_noise:  # from few steps, which all lie apart
        percent, unknown = f" ({change.percent:+.1f} %)", "; so few steps do not rule out chance"
    return (
        f"{what} is {time_text(abs(change.after_us - change.before_us))} {_longer(change.percent)}{percent}: {after} "
        f"instead of {before}{unknown}."
    )


def unlike(parts: Sequence[ComparedPart]) -> list[str]:
    """Say first what else the jobs differ in, which changes times by itself, and what would make them comparable."""
    inputs = [inputs_of(part.graph) for part in parts]
    devices = [", ".join(devices_in(each)) for each in inputs]
    worlds = [int(each["world_size"].max()) if len(each) else 0 for each in inputs]
    before, after = (len(part.chosen_ranks) for part in parts)
    stacks = _stacks(parts)
    sizes = all(worlds) and worlds[0] != worlds[1]
    differ = spoken(
        f"ran on different devices ({devices[0]} before, {devices[1]} after)" if devices[0] != devices[1] else "",
        f"have different sizes ({worlds[0]} ranks before, {worlds[1]} after)" if sizes else "",
        f"were read with different numbers of ranks ({before} before, {after} after)"
        if before != after and not sizes else "",
    )  # fmt: skip
    return spoken(
        f"The jobs {and_list(differ)}, which changes times by itself: the differences below are of all that together. "
        "To see what one change does, record both jobs alike otherwise."
        if differ else "",
        f"Python functions were recorded in the job {'before' if stacks[0] else 'after'} only, which makes its host "
        "slower: record both with the same settings to compare their hosts."
        if stacks[0] != stacks[1] else "",
        _without_steps(parts),
    )  # fmt: skip


def _stacks(parts: Sequence[ComparedPart]) -> list[bool]:
    """Return for each job whether Python functions were recorded."""
    return [bool((part.graph.activities.kind == ActivityKind.PYTHON).any()) for part in parts]


def _is_other_work(diff: Diff) -> bool:
    """Return whether a job has few of its names, and little of its time, in common with the other."""
    # of operators or of devices, whichever is more: a compiler replaces operators, not all kernels
    tree = diff.alignment
    name = np.unique([short_name(each) for each in tree.names], return_inverse=True)[1]
    operators = np.array([kind == ActivityKind.OP.label for kind in tree.kinds], np.bool_)
    sums = [
        np.bincount(path, graph.activities.duration, len(tree))  # of all that was recorded
        for graph, path in zip(tree.graphs, tree.path, strict=True)
    ]
    common = np.full((2, 2), np.nan)  # by job, of its time and of its names
    for some in (operators, tree.on_device):
        times = [np.bincount(name[some], each[some], len(tree)) for each in sums]
        both = (times[0] > 0) & (times[1] > 0)
        with np.errstate(invalid="ignore"):  # a job may have none of these
            shares = [[each[both].sum() / each.sum() for each in (time, time > 0)] for time in times]
        common = np.fmax(common, shares)
    return bool((common.min(axis=0) < MOST).all())


def _left_out(diff: Diff) -> list[str]:
    """Say how many first steps are not compared because they warm up."""
    cadences = [cadence_of(part.graph) for part in diff.parts]
    return [
        f"Not compared: the first {plural(cadence.warm_up, 'step').removeprefix('1 ')} of the job {which}, as first "
        "steps warm up."
        for which, part, cadence in zip(("before", "after"), diff.parts, cadences, strict=True)
        if cadence and cadence.warm_up and part.steps and part.steps[0] > cadence.steps[cadence.warm_up - 1]
    ]


def _without_steps(parts: Sequence[ComparedPart]) -> str:
    """Say where whole jobs are compared because only one of them has steps."""
    counts = [len(part.graph.steps) for part in parts]
    if parts[0].steps or all(counts) or not any(counts):
        return ""
    without, other = ("before", "after") if counts[1] else ("after", "before")
    steps = f"{max(counts)} step{'' if max(counts) == 1 else 's'}"
    return (
        f"The job {without} has no steps, so whole jobs are compared; the job {other} has {steps}. Record both with "
        "profiler.step() to compare steps."
    )


def _causes(diff: Diff, effects: Effects) -> list[str]:
    """Say which work, as long as before, would bring the old time back; causes of one origin in one sentence."""
    unlike_hosts = len(set(_stacks(diff.parts))) > 1
    rows = [
        row for row in effects.to_frame().to_dict("records")
        if not abs(row["change_us"]) <= row["plus_minus_us"] and not (unlike_hosts and row["kind"] in _WORK[_HOST])
    ]  # fmt: skip
    if not effects.change_us:
        return _beside(rows[0], effects, diff) if rows else []
    large = [(row, row["effect_us"] / diff.change_us) for row in rows]
    large = [(row, share) for row, share in large if abs(share) >= MIN_SHARE]
    replaced = {_side(row) for row, _ in large} >= {*_ONE_SIDED}
    bullets: dict[tuple[str, Any], list[dict[Any, Any]]] = {}
    for row, share in large:
        if replaced and _side(row):
            bullets.setdefault((_REPLACED, None), []).append(row)
        elif share > 0:
            origin = _origin(row, diff)
            alike = [each for each, (first, *_) in bullets.items() if each[0] == origin[0] and _in_step(first, row)]
            bullets.setdefault(alike[0] if alike and origin[0] == row["kind"] else origin, []).append(row)
    named = _named([*bullets.items()], effects, diff)
    against = [row for row, share in large if share < 0 and not (replaced and _side(row))]
    return [*(_cause(each, effects, diff) for each in named), *_rest(named, against, effects, diff)]


def _side(row: dict[Any, Any]) -> str:
    """Return whether only one job has the work of a row, and which."""
    return "" if row["before_us"] and row["after_us"] else "new" if row["after_us"] else "gone"


@dataclass(frozen=True)
class _NamedCause:
    """A cause that has a sentence."""

    origin: tuple[str, Any]
    rows: list[dict[Any, Any]]
    alone_us: float
    """Effect of it alone on the step time."""
    effect_us: float
    """What it adds to the effect of those named before it, so that nothing counts twice."""


def _named(
    bullets: Sequence[tuple[tuple[str, Any], list[dict[Any, Any]]]], effects: Effects, diff: Diff
) -> list[_NamedCause]:
    """Return the causes that are named, the largest first, with their effects, which add up."""
    sums = [effects.replayed([_key(row) for row in rows]) for _, rows in bullets]
    named: list[_NamedCause] = []
    keys: list[Key] = []
    before = 0.0
    for at in sorted(range(len(sums)), key=lambda each: -sums[each] / diff.change_us):
        origin, rows = bullets[at]
        if sums[at] / diff.change_us < MIN_SHARE or len(named) == MAX_NAMED:
            break
        own = [_key(row) for row in rows]
        together = effects.replayed([*keys, *own]) if keys else sums[at]
        keys = [*keys, *own]
        named.append(_NamedCause(origin, rows, sums[at], together - before))
        before = together
    return named


def _key(row: dict[Any, Any]) -> Key:
    return row["name"], row["kind"], row["whole"]


def _rest(named: Sequence[_NamedCause], against: list[dict[Any, Any]], effects: Effects, diff: Diff) -> list[str]:
    """Say what the named causes leave of the change, or what takes a part of their effect back: rows `against` it."""
    change, together = diff.change_us, sum(each.effect_us for each in named)
    noise = diff.before_us * diff.change.plus_minus_percent / 100 if diff.change.is_known else 0.0
    if together / change >= 1 and abs(together - change) <= noise:
        return []
    if together / change > 1 + (MIN_SHARE if len(named) == 1 else ROUNDING):
        back = f"{time_text(abs(together - change))} of this is made up for by"
        some = abs(sum(row["effect_us"] for row in against)) < (1 - MIN_SHARE) * abs(together - change)
        names = and_list([*_few([row["name"] for row in against]), *(["other changes and waits"] if some else [])])
        count = "Together" if len(named) > 1 else "Alone"
        return [f"{count}, that would be {_effect(together, diff)}; {back} {names}."]
    other = effects.explained_us - together
    apart = -MIN_SHARE <= other / change <= 1 + MIN_SHARE  # else other changes of work and waits make up for each other
    is_rest = abs(change - together - other) <= noise  # then no more than what is left
    other = (sorted((0.0, other, change - together))[1] if is_rest else other) if apart else 0.0
    visible = _visible_us(diff, change - together - other)
    rest = change - together - other - visible
    ran = ("ran", "no longer does") if visible > 0 else ("did not run", "now does")
    parts = (
        (visible, f"communication that {ran[0]} beside computation {ran[1]}, which makes the {diff.unit} "
         f"{_effect(visible, diff)}"),
        (other, f"{'all other changes' if named else 'changes'} of work{_largest(named, effects, diff)} together make "
         f"the {diff.unit} {_effect(other, diff)}"),
        (rest, f"longer or shorter work does not explain {time_text(abs(rest))} {_longer(rest)}, which is in what "
         "waits for what, and in pauses" if apart else
         f"{'other ' * bool(named)}changes of work and what waits for what make the {diff.unit} {_effect(rest, diff)}"),
    )  # fmt: skip
    large = [(abs(us), text) for us, text in parts if abs(us / change) >= MIN_SHARE]
    beyond = [text for us, text in large if us > noise]  # what recordings of one job differ by needs no cause
    text = "; ".join(beyond if named or beyond else [text for _, text in large])
    return [f"Beyond that, {text}." if named else f"{text[0].upper()}{text[1:]}."] if text else []


def _largest(named: Sequence[_NamedCause], effects: Effects, diff: Diff) -> str:
    """Return which work changed most of that which has no sentence, because steps differ as much or it is less."""
    said = [_key(row) for cause in named for row in cause.rows]
    rows = [row for row in effects.to_frame().to_dict("records") if _key(row) not in said]
    rows = sorted(rows, key=lambda row: -row["effect_us"] / diff.change_us)[:MAX_NAMED]
    large = [str(row["name"]) for row in rows if row["effect_us"] / diff.change_us >= MIN_SHARE]
    names = [f"{name}{_in_region(name, diff)}" for name in large]
    return f" (the largest: of {and_list(names)})" if names else ""


def _in_region(name: str, diff: Diff) -> str:
    """Return the annotation that holds nearly all of the change of work which also runs elsewhere."""
    tree = diff.alignment
    before, after = (
        part.sums(path, len(tree))[1] / part.repeats for part, path in zip(diff.parts, tree.path, strict=True)
    )
    work = np.flatnonzero(np.array(tree.names) == name)
    change = pd.Series((after - before)[work]).groupby(tree.region[work]).sum()
    whole = change.sum()
    if len(change) < 2 or not whole:
        return ""
    largest = int(change.abs().to_numpy().argmax())
    root = int(change.index.to_numpy()[largest])
    is_there = root >= 0 and change.to_numpy()[largest] / whole >= LIMITS.nearly_all
    return f" in {tree.names[root]}" if is_there else ""


def _visible_us(diff: Diff, most_us: float) -> float:
    """Return how much communication of a rank and step lost overlap with computation, µs; below 0 where it gained."""
    # no more than what else the change leaves open, and 0 where the jobs are not compared as a whole
    tables = [overlap(part.graph).set_index("rank").loc[list(part.chosen_ranks)] for part in diff.parts]
    if any(part.steps is not None and len(part.steps) < len(part.graph.steps) for part in diff.parts):
        return 0.0
    exposed, hidden = (
        np.diff([each.sum() / part.repeats for each, part in zip(columns, diff.parts, strict=True)])[0]
        for columns in ([t["communication_us"] - t["hidden_us"] for t in tables], [t["hidden_us"] for t in tables])
    )
    sign = np.sign(most_us)
    return float(sign * max(0.0, min(sign * exposed, -sign * hidden, abs(most_us))))


def _effect(us: float, diff: Diff) -> str:
    """Return an effect on the step time in words, with its share of the change where it is a part of that."""
    share = us / diff.change_us
    part = f" ({100 * share:.0f} % of the change)" if share < 1 - ROUNDING else " (the whole change)"
    return f"{time_text(abs(us))} {_longer(us)}{part if share <= 1 + MIN_SHARE else ''}"


def _origin(row: dict[Any, Any], diff: Diff) -> tuple[str, Any]:
    """Return what rows must have in common to be one cause: transfers, work of one rank, being new or gone."""
    one_sided = _side(row)
    if row["whole"] and not one_sided:
        return _WHOLE, row["name"]
    if row["kind"] in _TRANSFERS:
        return "transfers", None
    ranks = len(diff.parts[0].chosen_ranks)
    alike = ranks > 1 and row["rank"] >= 0 and row["rank_change_us"] * row["change_us"] > 0
    if alike and abs(row["rank_change_us"]) >= (1 - LARGE_SHARE) * ranks * abs(row["change_us"]):
        return "rank", row["rank"]
    return (one_sided, None) if one_sided else (row["kind"], row["name"])


def _in_step(first: dict[Any, Any], row: dict[Any, Any]) -> bool:
    """Return whether two rows' own times changed by the same factor, as by another clock rate or input size."""
    factors = [each["change_us"] / each["before_us"] if each["before_us"] else 0.0 for each in (first, row)]
    return abs(factors[0] - factors[1]) <= _MAX_FACTOR_DIFFERENCE * max(map(abs, factors))


def _beside(row: dict[Any, Any], effects: Effects, diff: Diff) -> list[str]:
    """Say what changed most although the step time did not, or not beyond chance."""
    origin = _origin(row, diff)
    if abs(row[_CHANGE.get(origin[0], "change_us")]) < MIN_SHARE * diff.before_us:
        return []
    return [f"{_own(origin, [row], effects, diff)}, which does not show in how long the {diff.unit} takes."]


def _cause(named: _NamedCause, effects: Effects, diff: Diff) -> str:
    """Say how much the work of one origin changed, and what that did to the step time."""
    origin, rows, unit, effect = named.origin, named.rows, diff.unit, named.effect_us
    change, own = sum(row[_CHANGE.get(origin[0], "change_us")] for row in rows), _own(origin, rows, effects, diff)
    if effect / diff.change_us < MIN_SHARE <= named.alone_us / diff.change_us:
        return (
            f"{own}, which alone would make the {unit} {_effect(named.alone_us, diff)}, but adds nothing to the above."
        )
    if change * effect < 0:
        return f"{own} on average, but where the {unit} waits for it, it {_makes(named, diff)}."
    ranks = len(diff.parts[0].chosen_ranks)  # which may take their time one after the other
    where = "in it" if len(rows) == 1 else "in them"
    words = {"gone": f" and nothing waits {where} any more,", "new": f" and the host waits {where},"}
    waits = origin[0] in _ONE_SIDED and abs(effect) > _MIN_WAITING * ranks * abs(change)
    return f"{own}{words[origin[0]] if waits else ','} which {_makes(named, diff)}."


def _makes(named: _NamedCause, diff: Diff) -> str:
    """Say what a cause does to the step time: by itself, as the table has it, and beyond the causes named before it."""
    beyond = _effect(named.effect_us, diff)
    if abs(named.alone_us - named.effect_us) < MIN_SHARE * abs(diff.change_us):
        return f"makes the {diff.unit} {beyond}"
    alone = f"{time_text(abs(named.alone_us))} {_longer(named.alone_us)}"
    return f"makes the {diff.unit} {alone}, or {beyond} beyond the above"


def _own(origin: tuple[str, Any], rows: list[dict[Any, Any]], effects: Effects, diff: Diff) -> str:
    """Say by how much the own time of some rows changed, or that of all in them."""
    change = sum(row[_CHANGE.get(origin[0], "change_us")] for row in rows)
    where = f"per {diff.unit} on rank {origin[1]}" if origin[0] in _CHANGE else f"per rank and {diff.unit}"
    take = "take" if len(rows) > 1 else "takes"
    if origin[0] in (*_ONE_SIDED, _REPLACED):
        parts = [(side, [row for row in rows if _side(row) == side]) for side in reversed(_ONE_SIDED)]
        return and_list(_one_sided(side, some, where, effects) for side, some in parts if some)
    if origin[0] == _WHOLE:
        return f"{rows[0]['name']} {_WHOLE}, at call paths of one job only, takes {_more_or_less(change)} {where}"
    often = "" if origin[0] in _CHANGE else _often(rows, effects)
    return f"{_names(rows, diff)} {take} {_more_or_less(change)} own time {where}{often}"


def _often(rows: list[dict[Any, Any]], effects: Effects) -> str:
    """Say where work takes another time because it occurs more or less often."""
    old, new = (sum(effects.calls.get(_key(row)[:2], (0.0, 0.0))[side] for row in rows) for side in (0, 1))
    changes = [row["change_us"] * (new - old) > MIN_SHARE * abs(row["change_us"]) * max(old, new) for row in rows]
    return f" ({_calls(old, new)})" if changes == [True] else ""


def _calls(old: float, new: float) -> str:
    return f"{new:,.3g} call{'' if new == 1 else 's'} instead of {old:,.3g}"


def _regions(diff: Diff) -> list[str]:
    """Say which region takes another time because every step has more or fewer of it, which is no chance."""
    tree, ranks = diff.alignment, len(diff.parts[0].chosen_ranks)
    parts = zip(diff.parts, tree.path, strict=True)
    sums = [np.stack(each.sums(path, len(tree))) / each.repeats for each, path in parts]
    some = np.array(tree.kinds) == ActivityKind.ANNOTATION.label
    table = pd.DataFrame(np.concatenate(sums).T[some]).groupby(np.array(tree.names)[some]).sum()
    found = [
        (abs(now - was), f"{name} takes {_more_or_less((now - was) / 1000)} {_WHOLE} ({_calls(old, new)})")
        for name, old, was, new, now in table.itertuples()
        if min(old, new) and (ranks * old).is_integer() and (ranks * new).is_integer()
        and min((now - was) * (new - old), (now - was) * diff.change_us) > 0
    ]  # fmt: skip
    most, text = max(found, default=(0.0, ""))
    return [f"Per rank and {diff.unit}, {text}."] if most >= 1000 * MIN_SHARE * abs(diff.change_us) > 0 else []


def _one_sided(side: str, rows: list[dict[Any, Any]], where: str, effects: Effects) -> str:
    """Say what is new or gone, and how long it takes."""
    also = [row["whole"] and all(effects.own_us[_key(row)[:2]]) for row in rows]  # calls elsewhere
    names = and_list(_few([row["name"] + " at some call paths" * more for row, more in zip(rows, also, strict=True)]))
    time, whole = time_text(abs(sum(row["change_us"] for row in rows))), [row["whole"] for row in rows]
    own = f"{time} own time" if not any(whole) else f"{time} of work" if not all(whole) else f"{_WHOLE}, {time} of work"
    return f"{names} ({own} {where}) {'are' if len(rows) > 1 else 'is'} {side}"


def _names(rows: list[dict[Any, Any]], diff: Diff) -> str:
    """Return the names of some rows, as a list in words, with what is new, gone or another kernel now."""
    now = {short_name(row["before"]): short_name(row["after"]) for row in diff.renamed.to_dict("records")}
    names = []
    for row in rows:
        other = now.get(row["name"], row["name"])
        now_other = f"now {other}" if other != row["name"] else ""
        change = "new" if not row["before_us"] else "gone" if not row["after_us"] else now_other
        names.append(f"{row['name']} ({change})" if change else row["name"])
    return and_list(_few(names))


def _few(names: list[str]) -> list[str]:
    """Return names, and how many others there are if they are many."""
    if len(names) <= MAX_LISTED:
        return names
    return [*names[: MAX_LISTED - 1], f"{len(names) - MAX_LISTED + 1} others"]


def _longer(us: float) -> str:
    return "longer" if us > 0 else "shorter"


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else '-'}{time_text(abs(us))}"


def _more_or_less(us: float) -> str:
    return f"{time_text(abs(us))} {'more' if us > 0 else 'less'}"


def _where(diff: Diff, effects: Effects, *, is_explained: bool) -> list[str]:
    """Say how the time on the critical path shifted between categories, unless a named cause says it."""
    if not effects.change_us:
        return []
    table = diff.summary()
    table = table[table["group"] == "category"]
    by_category: dict[str, float] = dict(zip(table["key"], table["change_us"], strict=True))
    if len(by_category) < 2:  # of one kind of time, the first sentence says it
        return []
    untraced = [_untraced_us(part, path) for part, path in zip(diff.parts, (diff.before, diff.after), strict=True)]
    without, least = untraced[1] - untraced[0], MIN_SHARE * abs(diff.change_us)
    own = by_category | {_HOST: by_category.get(_HOST, 0.0) - without}
    large = [(key, us) for key, us in by_category.items() if max(abs(us), abs(own[key])) > least]
    large = sorted(large, key=lambda each: -abs(each[1]))[: 2 * MAX_NAMED]
    ranks = len(diff.parts[0].chosen_ranks)
    source = next(filter(None, (source_of(part.graph) for part in diff.parts)), "")
    words = CATEGORY_WORDS | ({"outside": f"waits in {source}"} if source else {})
    parts = [
        f"{words[key]} {_signed(us)}{_exposed(key, own[key] / ranks, effects) if abs(own[key]) > least else ''}"
        + f" (of that, code or a wait without any event {_signed(without)})" * (key == _HOST and abs(without) > least)
        for key, us in large
    ]
    is_said = is_explained and len(large) == 1 and "(not " not in parts[0]
    return [] if is_said or not parts else [f"On the critical path, per {diff.unit}: {', '.join(parts)}."]


def _untraced_us(part: ComparedPart, path: CriticalPath) -> float:
    """Return how long the path of a usual step is in host time that no event covers, µs."""
    in_region = part.graph.activities.kind[path.segments.activity] == ActivityKind.ANNOTATION
    return float(part.usual_times(path)[(path.segments.gap == GapKind.HOST_UNTRACED) & ~in_region].sum()) / 1000


def _exposed(key: str, us: float, effects: Effects) -> str:
    """Say where more of the same work is on the critical path only because something else is not."""
    # the same: neither all of it nor that of any name grew; fetching data is the data loader's on the path
    own = [
        us * (after - before) for (name, kind), (before, after) in effects.own_us.items()
        if kind in _WORK.get(key, ()) and not is_data_loader(name)
    ]  # fmt: skip
    if key in _WORK and max(sum(own), *own, 0.0) < MIN_SHARE * us**2:
        return f" (not {'more' if us > 0 else 'less'} work, but {'more' if us > 0 else 'less'} of it on the path)"
    return ""


def structure(diff: Diff) -> list[str]:
    """Say which call paths and kernels only one of the jobs has."""
    apart = ActivityKind.PYTHON.label if len(set(_stacks(diff.parts))) > 1 else ""  # recorded in one job only
    tables = [(table[table["kind"] != apart], who) for table, who in ((diff.added, "after"), (diff.removed, "before"))]
    lines = [
        f"Only the job {who} has {plural(len(table), 'call path')}{_such(table)} {cut(str(table['path'].iloc[0]))} "
        f"({time_text(float(table['total_us'].iloc[0]))} per rank and {diff.unit})."
        for table, who in tables if len(table)
    ]  # fmt: skip
    pairs = [tuple(map(short_name, pair)) for pair in diff.renamed[["before", "after"]].itertuples(index=False)]
    others = [pair for pair in pairs if pair[0] != pair[1]]
    for old, new in others[:1]:
        lines.append(f"{plural(len(others), 'kernel')} replaced{_such(others)} {cut(new)} instead of {cut(old)}.")
    return lines


def _such(several: Sized) -> str:
    return ":" if len(several) == 1 else ", such as"


def cut(text: str) -> str:
    """Return a text that fits into a sentence: its end says most, and the outermost name of a path where it is."""
    if len(text) <= _MAX_LETTERS:
        return text
    first = text.partition(" > ")[0] + " > "
    first = first if len(first) < _MAX_LETTERS // 2 else ""
    return f"{first}…{text[len(first) + 1 - _MAX_LETTERS :]}"


def gate(change: StepChange, limit: str, limit_percent: float, *, fails: bool) -> str:
    """Return the sentence about a limit of the step time, exceeded or not, or that the recordings cannot tell."""
    if change.is_empty:
        return f"Nothing was recorded in one of the jobs, so {limit} counts as exceeded."
    if change.is_incomplete:
        return incomplete_limit(limit, fails=fails)
    times = f"a usual step takes {time_text(change.after_us)} instead of {time_text(change.before_us)}, {change.text()}"
    if change.cannot_tell(limit_percent):
        rest = "so it counts as exceeded" if fails else "so it does not fail without --strict"
        more = f"about {change.steps_to_tell(limit_percent):,} steps of each job, or several runs"
        more = "more runs" if max(change.runs) > 1 else more
        return f"The recordings cannot tell whether {limit} is exceeded, {rest}: {times}. To tell, record {more}."
    several = f" ({change.runs[0]} runs before, {change.runs[1]} after)" if max(change.runs) > 1 else ""
    if fails:
        return f"Too long: {times}{several}, which exceeds {limit}."
    return f"Limit {limit} is not exceeded: {times}{several}."


def too_long(what: str, before_us: float, after_us: float, limit: str, *, exceeded: bool | None = True) -> str:
    """Return the sentence about a limit of ``--fail-on``, exceeded, not, or None: may be; times per usual step, µs."""
    times = f"{what} is {time_text(after_us)} instead of {time_text(before_us)}"
    if exceeded is None:
        return f"The recordings cannot tell whether {limit} is exceeded: {times}, and steps of a job differ as much."
    return f"Too long: {times}, which exceeds {limit}." if exceeded else f"Limit {limit} is not exceeded: {times}."


def incomplete_limit(limit: str, *, fails: bool) -> str:
    """Return the sentence about a limit of a category, where one of the recordings lacks a part of the job."""
    rest = "so it counts as exceeded" if fails else "so it does not fail without --strict"
    return f"The recordings cannot tell whether {limit} is exceeded, {rest}: one of them is incomplete."


def compare_sentences(table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return how many names differ, which changed most, and what says why."""
    if not len(table):
        return ["Neither job has an activity."]
    counts = table["change"].value_counts()
    kinds = [f"{int(counts[kind]):,} {words}" for kind, words in _KINDS.items() if counts.get(kind)]
    occur = "occurs" if len(table) == 1 else "occur"
    row = table.iloc[int(table["change_per_step_us"].abs().argmax())]
    change = float(row["change_per_step_us"])
    return spoken(
        f"{plural(len(table), 'name')} {occur} per rank and step: {and_list(kinds)}.",
        f"{cut(short_name(row['name']))} takes {_more_or_less(change)} per rank and step, with what lies in it."
        if change
        else "",
        f"To see why steps take another time: {command_line('diff', inputs)}",
    )
