"""What ``htagraph what-if`` says, with and without ``--sweep``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from htagraph.core.statistics import MOST
from htagraph.findings.limits import ROUNDING
from htagraph.findings.phrases import cause_words, plural, size_text, spoken, time_text
from htagraph.graph.measures.steps import gain_steps
from htagraph.queries.path_segments import Bound
from htagraph.whatif.outcome import Outcome

if TYPE_CHECKING:
    from htagraph.whatif.capacity import Capacity

__all__ = ["capacity_sentences", "sentences", "sweep_sentences"]


def sentences(after: Outcome, before: Bound, now: Bound) -> list[str]:
    """Return how long the job would take, how sure that is, and what bounds it then."""
    low, high = (after.p50_ns, after.p99_ns) if after.state.jitter else (0, 0)
    return spoken(
        _gain(after),
        f"With noise, half of the runs take less than {time_text(low / 1000)}, and 99 % less than "
        f"{time_text(high / 1000)}."
        if after.state.jitter
        else "",
        _bound(before, now) if now.cause else "",
    )


def _gain(after: Outcome) -> str:
    old, new = time_text(after.baseline_ns / 1000), time_text(after.makespan_ns / 1000)
    if abs(after.speedup - 1) < ROUNDING:
        was = "" if new == old else f", not {old}"
        return f"The job would take as long as before ({new}{was}): hardly anything waits for what was changed."
    if not after.makespan_ns:
        return f"The job would take no time instead of {old}: nothing that takes time is left."
    how = f"{after.speedup:.2f} times as fast" if after.speedup >= 1 else f"{1 / after.speedup:.2f} times as long"
    steps = (time_text(ns / 1000) for ns in (after.step_ns, after.baseline_step_ns))
    step = f", a usual step {' instead of '.join(steps)}" if gain_steps(after.baseline) > 1 else ""
    start = f"The job would take {new} instead of {old}{step}: {how}"
    low, high = f"{after.low:.2f}", f"{after.high:.2f}"
    if low == high:
        return f"{start}."
    return f"{start} (90 % interval of the speedup: {low} to {high})."


def _bound(before: Bound, now: Bound) -> str:
    """Say what bounds the job before and after."""
    rank, most = next(iter(now.ranks.items()))
    where = f", mostly on rank {rank}" if len({*before.ranks, *now.ranks}) > 1 and most > 100 * MOST else ""
    share = f"{now.causes[now.cause]:.0f} % of the critical path{where}"
    name, name_before = (cause_words(bound.cause, bound.shares) for bound in (now, before))
    if now.cause == before.cause:
        return f"It would still be bound by {name}: {share}."
    return f"It would then be bound by {name} ({share}) instead of {name_before}."


def sweep_sentences(table: pd.DataFrame, what: str, recorded_us: float) -> list[str]:
    """Return which factors were tried, and the shortest time; the table has the others."""
    rows = table.sort_values("factor", ignore_index=True)
    best = rows.iloc[int(rows["mean_step_us"].argmin())]
    tried = f"{plural(len(rows), 'factor')} from {rows['factor'].iloc[0]:g} to {rows['factor'].iloc[-1]:g} for {what}"
    shortest = f"The shortest step takes {time_text(best['mean_step_us'])} at {best['factor']:g}"
    return [f"Tried: {tried}, each replayed.", f"{shortest}; recorded: {time_text(recorded_us)}."]


def capacity_sentences(found: Capacity) -> list[str]:
    """Return what a larger batch and another device would bring, how sure that is, and what is not known."""
    return [*_larger_batch(found), *_other_device(found), *(f"Not known: {each}." for each in found.refused)]


def _larger_batch(found: Capacity) -> list[str]:
    rows = found.batches[found.batches["batch"] != found.batch]
    if not len(rows) or not found.step_us:
        return []
    best, recorded = rows.iloc[int(rows["samples_per_s"].to_numpy().argmax())], 1e6 * found.batch / found.step_us
    more = [best["batch"] * 1e6 / best[end] / recorded for end in ("high_us", "low_us")]
    step = f"a step takes {time_text(best['step_us'])} instead of {time_text(found.step_us)}"
    gain = f"{best['samples_per_s'] / recorded:.2f} times the samples per second (90 %: {more[0]:.2f} to {more[1]:.2f})"
    bound = f"it is then bound by {cause_words(best['bound'], {})}"
    said = [f"With a batch of {best['batch']} instead of {found.batch}, {step}: {gain}; {bound}."]
    if best["samples_per_s"] <= recorded:
        said = [f"No other of these batches gives more samples per second than {found.batch}."]
    if found.room:
        few, most, whole = found.room.surely, found.room.perhaps, size_text(found.room.bytes)
        fits = f"A batch of {few} fits into the device's memory of {whole}"
        less = f"by the memory recorded; one above {most} does not" if most > few else "and no more"
        said.append(f"{fits}, {less}.")
    return said


def _other_device(found: Capacity) -> list[str]:
    if not len(found.devices):
        return []
    best, here = (
        found.devices.iloc[int(found.devices["speedup"].to_numpy().argmax())],
        found.device or "the recorded device",
    )
    step = f"a step takes {time_text(best['step_us'])} instead of {time_text(found.step_us)}"
    gain = f"{best['speedup']:.2f} times as fast (90 %: {best['low']:.2f} to {best['high']:.2f})"
    bound = f"it is then bound by {cause_words(best['bound'], {})}"
    if best["speedup"] < 1 + ROUNDING:
        return [f"None of these devices makes the job faster than {here}: on {best['device']}, {step}; {bound}."]
    return [f"On {best['device']} instead of {here}, {step}: the job is {gain}; {bound}."]
