"""What ``htagraph what-if`` says, with and without ``--sweep``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.statistics import MOST
from htagraph.findings.bound import source_of
from htagraph.findings.change import interval_us, per_step, saved_us
from htagraph.findings.finding import in_short
from htagraph.findings.limits import MIN_PERCENT, MIN_SHARE, ROUNDING, SHORT_LIST
from htagraph.findings.phrases import and_list, cause_words, plural, share_text, shortened, size_text, spoken, time_text
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.steps import gain_steps
from htagraph.queries.path_segments import Bound, bound_of
from htagraph.whatif.outcome import Outcome

if TYPE_CHECKING:
    from htagraph.core.arrays import Array
    from htagraph.queries.paths import CriticalPath
    from htagraph.whatif.capacity import Capacity

__all__ = ["capacity_sentences", "path_note", "sentences", "stays_note", "sweep_sentences", "tells_saving"]


_MOST_LETTERS = 120
"""Letters of a change in a sentence. Chosen: a line of a terminal. Doubled, the answer stands behind its question."""
_NEARLY_NOTHING_LEFT = 100.0
"""Times as fast from which no ratio is told; chosen: less than 1 % of the time remains, which is mostly what no replay
knows. Doubled, ratios of 150 are told."""


def sentences(after: Outcome, before: Bound, now: Bound, *, texts: Sequence[str] = ()) -> list[str]:
    """Return the predicted time of the job, how sure that is, and the bound then.

    Args:
        after: the prediction.
        before: the bound of the critical path as recorded.
        now: that of the path as predicted.
        texts: the changes in words, as asked for.
    """
    low, high = (after.p50_ns, after.p99_ns) if after.state.jitter else (0, 0)
    return spoken(
        _gain(after, _subject(texts)),
        _saved(after),
        _throughput(after),
        f"With noise, half of the runs take less than {time_text(low / 1000)}, and 99 % less than "
        f"{time_text(high / 1000)}."
        if after.state.jitter
        else "",
        _largest(before, now, source_of(after.baseline)) if _main(now) and _is_known(after, before, now) else "",
    )


def _is_known(after: Outcome, before: Bound, now: Bound) -> bool:
    """Return whether the recording holds the parts that say what bounds the job, before and after."""
    lacks = after.baseline.ledger.lacks
    is_host = "host" in (_main(before), _main(now))
    return Part.PEERS not in lacks and not (is_host and Part.HOST in lacks)


def _subject(texts: Sequence[str]) -> str:
    """Return the changed job, as the begin of a sentence."""
    if not texts:
        return "The job"
    listed = [shortened(text, _MOST_LETTERS) for text in texts]
    return f"With {and_list(listed)}, the job" if len(texts) <= SHORT_LIST else "With these changes, the job"


def _gain(after: Outcome, subject: str) -> str:
    old, new = time_text(after.baseline_ns / 1000), time_text(after.makespan_ns / 1000)
    if abs(after.speedup - 1) < ROUNDING:
        was = "" if new == old else f", not {old}"
        is_same = after.makespan_ns == after.baseline_ns or after.state.scaled[0] != 1  # a note says why
        why = "" if is_same else ": hardly anything waits for what was changed"
        return f"{subject} would take as long as before ({new}{was}){why}."
    if not after.makespan_ns:
        return f"{subject} would take no time instead of {old}: nothing that takes time is left."
    if after.speedup > _NEARLY_NOTHING_LEFT:
        return f"{subject} would take {new} instead of {old}: nearly no time."
    job_ratio = _times(after.speedup)
    step, step_ratio = _of_steps(after)
    with_step = f", {step}" if step and step_ratio == job_ratio else ""
    apart = f"; {step}: {step_ratio}" if step and not with_step else ""
    low, high = f"{after.low:.2f}", f"{after.high:.2f}"
    is_told = tells_saving(after) or after.doubts  # which have an interval of their own
    interval = f" (90 % interval of the speedup: {low} to {high})" if low != high and not is_told else ""
    return f"{subject} would take {new} instead of {old}{with_step}: {job_ratio}{interval}{apart}."


def _saved(after: Outcome) -> str:
    """Return what is saved of the recorded run, as findings and plans say it: without how much runs differ."""
    if after.state.scaled[0] != 1 or not after.makespan_ns or after.doubts:  # doubts have the wider interval
        return ""
    us, in_steps_us = saved_us(after)
    if us <= 0 or after.speedup - 1 < ROUNDING:
        return ""
    steps = gain_steps(after.baseline)
    whole = _between(interval_us(after), 1)
    of_step = _between(in_steps_us, steps) if steps > 1 else ""
    if not whole and not of_step:
        return ""
    intervals = [f"{whole} of the recorded run"] if whole else []
    intervals += [f"{of_step} of a usual step"] if of_step else []
    return f"This saves {and_list(intervals)} (90 %)."


def _between(ends_us: tuple[float, float], steps: int) -> str:
    """Return an interval of time per step in words; empty where both ends read the same."""
    low, high = (time_text(per_step(max(end, 0.0), steps)) for end in ends_us)
    return f"{low} to {high}" if low != high else ""


def tells_saving(after: Outcome) -> bool:
    """Return whether the sentences tell the interval of what a change saves, beside which no other interval is told."""
    return bool(_saved(after))


def _times(speedup: float) -> str:
    return f"{speedup:.2f} times as fast" if speedup >= 1 else f"{1 / speedup:.2f} times as long"


def _of_steps(after: Outcome) -> tuple[str, str]:
    """Return how long a usual step takes after and before, and the ratio of the two; empty without usual steps."""
    if gain_steps(after.baseline) <= 1:
        return "", ""
    took = time_text(after.baseline_step_ns / 1000)
    takes = time_text(after.step_ns / 1000)
    ratio = after.baseline_step_ns / after.step_ns if after.step_ns else float("inf")
    return f"a usual step {takes} instead of {took}", _times(ratio)


def _throughput(after: Outcome) -> str:
    """Say what another number of ranks means for samples per second, or for work where the model grows too."""
    ranks, samples, work = after.state.scaled
    if ranks == 1 or not after.makespan_ns:
        return ""
    rates = [work * each for each in (after.speedup, after.low, after.high)]
    what = "samples" if samples == work else "work"
    (rate, low, high), (share, least, most) = rates, (100 * each / ranks for each in rates)
    ends = (f" (90 %: {low:.2f} to {high:.2f})", f" ({least:.0f} to {most:.0f} %)") if low != high else ("", "")
    done = f"With {ranks:.3g} times the ranks, {rate:.2f} times the {what} per second{ends[0]}"
    return f"{done}: {share:.0f} % efficiency{ends[1]}."


def _largest(before: Bound, now: Bound, source: str) -> str:
    """Say the largest part of the critical path before and after, each with its shares of both paths.

    A job that waits for something outside waits in `source`.
    """
    rank, most = next(iter(now.ranks.items()))
    where = f", mostly on rank {rank}" if len({*before.ranks, *now.ranks}) > 1 and most > 100 * MOST else ""
    head = now.shares.get("head", 0.0)
    earlier = f"; {share_text(head)} is earlier work, as long as recorded" if head >= 100 * MIN_SHARE else ""
    cause = _main(now)
    if earlier and now.causes[cause] < MIN_PERCENT:
        return f"Earlier work, as long as recorded, is then {share_text(head)} of the critical path."
    begin = "The largest part of the critical path would"
    shares = _shares(cause, before, now)
    was = _main(before) or cause
    if was == cause:
        return f"{begin} still be {_cause(cause, now, source)}: {shares}{where}{earlier}."
    no_longer = f"no longer {_cause(was, before, source)} ({_shares(was, before, now)})"
    return f"{begin} be {_cause(cause, now, source)} ({shares}{where}), {no_longer}{earlier}."


def path_note(before: CriticalPath, after: CriticalPath) -> str:
    """Return that the path holds another part of kernels which take as long as before; empty where none does.

    Args:
        before: the path as recorded.
        after: the path as predicted.
    """
    if before.graph.names != after.graph.names:  # other work in the place of recorded work
        return ""
    old = _times_of_names(before)
    new = _times_of_names(after)
    is_same = np.abs(new.whole - old.whole) <= ROUNDING * old.whole
    moved_ns = np.where(is_same, np.abs(new.on_path - old.on_path), 0.0)
    least_ns = MIN_PERCENT / 100 * before.makespan_ns
    if not moved_ns.max(initial=0.0) > least_ns:
        return ""
    largest = int(moved_ns.argmax())
    name = in_short(before.graph.names[largest])
    return f"the path runs elsewhere then: {name} takes as long as before, but another part of it is on the path"


class _TimesOfNames(NamedTuple):
    """The times of device work by name, ns."""

    on_path: Array
    """Time on a path."""
    whole: Array
    """Time of all work."""


def _times_of_names(path: CriticalPath) -> _TimesOfNames:
    """Return the times of device work of each name in the graph of a path."""
    acts = path.graph.activities
    count = len(path.graph.names)
    segments = path.segments
    rows = acts.on_device[segments.activity]
    names = acts.name[segments.activity[rows]]
    on_path = np.bincount(names, segments.length[rows], count)
    whole = np.bincount(acts.name, acts.duration * acts.on_device, count)
    return _TimesOfNames(on_path, whole)


def stays_note(after: CriticalPath) -> str:
    """Return the waits of a host that takes no time, with the options that take these waits away."""
    share = bound_of(after).shares.get("data_loading", 0.0)
    if share < MIN_PERCENT:
        return ""
    loader = f"waits for the data loader ({share_text(share)} of the path then)"
    return f"{loader} and for devices stay: --free-dataloader and --remove-sync take these away"


def _main(bound: Bound) -> str:
    """Return the cause with the largest part of a path, apart from the time before the recording; empty for none."""
    return next((cause for cause in bound.causes if cause != "head"), "")


def _shares(cause: str, before: Bound, now: Bound) -> str:
    """Return the share of a cause in the path after, and in the path before where that differs."""
    after = share_text(now.causes.get(cause, 0.0))
    recorded = share_text(before.causes.get(cause, 0.0))
    return f"{after}, as before" if after == recorded else f"{after} instead of {recorded}"


def _cause(cause: str, bound: Bound, source: str) -> str:
    """Return the cause of a bound in words."""
    words = cause_words(cause, bound.shares, is_on_cpu=bound.is_on_cpu)
    return f"{words} in {source}" if source and cause == "outside" else words


def sweep_sentences(table: pd.DataFrame, what: str, recorded_us: float, *, of_batches: bool = False) -> list[str]:
    """Return the factors that were tried, and the shortest time.

    Args:
        table: the result of `htagraph.sweep`.
        what: the words that are swept, and the changes before.
        recorded_us: the recorded step, µs.
        of_batches: whether the factors are sizes of batches.
    """
    rows = table.sort_values("factor", ignore_index=True)
    best = rows.iloc[int(rows["mean_step_us"].argmin())]
    kind = "batch size" if of_batches else "factor"
    tried = f"{plural(len(rows), kind)} from {rows['factor'].iloc[0]:g} to {rows['factor'].iloc[-1]:g} for {what}"
    shortest = f"The shortest step takes {time_text(best['mean_step_us'])} at {best['factor']:g}"
    if of_batches:  # a smaller batch has shorter steps: samples count
        best = rows.iloc[int((rows["factor"] / rows["mean_step_us"]).to_numpy().argmax())]
        shortest = (
            f"A batch of {best['factor']:g} gives the most samples per second, {time_text(best['mean_step_us'])} a step"
        )
    return [f"Tried: {tried}, each replayed.", f"{shortest}; recorded: {time_text(recorded_us)}."]


def capacity_sentences(found: Capacity) -> list[str]:
    """Return what a larger batch and another device would bring, how sure that is, and what is not known."""
    more = [*(f"Note: {note}." for note in found.notes), *(f"Not known: {each}." for each in found.refused)]
    return [*_larger_batch(found), *_other_device(found), *more]


def _larger_batch(found: Capacity) -> list[str]:
    rows, fits = found.batches[found.batches["batch"] != found.batch], _what_fits(found)
    if found.room:  # no advice for what memory cannot hold
        rows = rows[rows["batch"] <= max(found.room.perhaps, found.batch)]
    if not len(rows) or not found.step_us:
        return fits
    gains = {end: rows["batch"] / rows[end] * found.step_us / found.batch for end in ("step_us", "high_us", "low_us")}
    enough = gains["step_us"] >= gains["step_us"].max() * (1 - MIN_SHARE)  # a larger batch hardly brings more
    chosen = int(np.flatnonzero(enough)[0])
    best, (gain, low, high) = rows.iloc[chosen], (each.iloc[chosen] for each in gains.values())
    said = [f"No other of these batches gives {100 * MIN_SHARE:.0f} % more samples per second than {found.batch}."]
    if gain > 1 + MIN_SHARE:
        rate = f"{gain:.2f} times the samples per second (90 %: {low:.2f} to {high:.2f})"
        change = f"With a batch of {best['batch']} instead of {found.batch}, {_takes(found, best)}"
        said = [f"{change}: {rate}; {_bound_by(best)}."]
    return [*said, *fits]


def _what_fits(found: Capacity) -> list[str]:
    if not found.room:
        return []
    few, most, whole = found.room.surely, found.room.perhaps, size_text(found.room.bytes)
    less = f", if memory in use and the allocator's rest grow as recorded; one above {most} does not"
    return [f"A batch of {few} fits into the device's memory of {whole}{less if most > few else ', and no more'}."]


def _other_device(found: Capacity) -> list[str]:
    rows = found.devices[found.devices["device"] != found.device]
    if not len(rows):
        return []
    best, here = rows.iloc[int(rows["speedup"].to_numpy().argmax())], found.device or "the recorded device"
    if best["speedup"] < 1 + ROUNDING:
        shorter = f"On none of these devices is a {found.unit} shorter than on {here}"
        return [f"{shorter}; on {best['device']}, {_bound_by(best)}."]
    gain = f"{best['speedup']:.2f} times as fast (90 %: {best['low']:.2f} to {best['high']:.2f})"
    return [f"On {best['device']} instead of {here}, {_takes(found, best)}: {gain}; {_bound_by(best)}."]


def _takes(found: Capacity, row: pd.Series[Any]) -> str:
    return f"a {found.unit} takes {time_text(row['step_us'])} instead of {time_text(found.step_us)}"


def _bound_by(row: pd.Series[Any]) -> str:
    return f"it is then bound by {cause_words(str(row['bound']), {})}"
