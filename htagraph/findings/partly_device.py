"""A rank's device does nothing at the begin or the end: pauses between two pieces of work do not hold that time."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.findings.finding import BarPart, Chart, Claim, Evidence, Finding, Place
from htagraph.findings.limits import LARGE_SHARE, MIN_SHARE
from htagraph.findings.phrases import and_list, time_text
from htagraph.findings.results import Results

__all__ = ["PARTLY_DEVICE"]


def _devices(results: Results) -> list[tuple[int, int, Array]]:
    """Return (rank, first device work, µs without device work before and with it and after) of each rank with any.

    A rank begins with its first step, or else with its recording. A device that was busy with earlier work then was
    not idle.
    """
    graph, devices = results.graph, []
    acts, spans = graph.activities, graph.step_spans
    busy = {issue.rank for issue in graph.issues if issue.what == "queued_behind_earlier_work"}
    for rank in results.busy.loc[results.busy["executor"] == "device", "rank"].tolist():
        rows = np.arange(acts.of_rank(rank).start, acts.of_rank(rank).stop)
        work, steps = rows[acts.on_device[rows]], spans.start[spans.rank == rank]
        first = int(work[graph.time[2 * work].argmin()])
        start, last = int(graph.time[2 * first]), int(graph.time[2 * work + 1].max())
        begin = start if rank in busy else min(start, int(graph.time[steps if len(steps) else 2 * rows].min()))
        devices.append((rank, first, np.diff([begin, start, last, int(graph.time[2 * rows + 1].max())]) / 1000))
    return devices


def _when(results: Results) -> list[Claim]:
    devices = _devices(results)
    shares = [1 - times[1] / times.sum() for _, _, times in devices]
    if max(shares, default=0.0) < LARGE_SHARE:
        return []
    rank, first, (begin_us, work_us, end_us) = devices[int(np.argmax(shares))]
    facts = {"several": len(devices) > 1, "begin_us": begin_us, "end_us": end_us, "work_us": work_us}
    return [Claim("partly_device", str(rank), 100 * max(shares), "percent", rows=(first,), facts=facts)]


def _short(claim: Claim) -> str:
    facts = claim.facts
    whole = facts["begin_us"] + facts["work_us"] + facts["end_us"]
    parts = [
        f"the {side} {time_text(facts[f'{word}_us'])}"
        for side, word in (("first", "begin"), ("last", "end")) if facts[f"{word}_us"] >= MIN_SHARE * whole
    ]  # fmt: skip
    which = f"The device of rank {claim.about}" if facts["several"] else "The device"
    return f"{which} does nothing for {and_list(parts)} of {time_text(whole)}, which other idle times leave out."


def _evidence(results: Results, claim: Claim) -> Evidence:
    words = ("before device work", "idle"), ("device work", "computation"), ("after device work", "idle")
    stacks = [
        (f"rank {rank}", [BarPart(*word, float(us)) for word, us in zip(words, times, strict=True)])
        for rank, _, times in _devices(results)
    ]
    start_us = (results.graph.time[2 * claim.rows[0]] - results.graph.origin_ns) / 1000 - claim.facts["begin_us"]
    place = Place.lasting(start_us, claim.facts["begin_us"], claim.rows[0])
    look = f"rank {claim.about} until its device begins"
    return Evidence(Chart("Recorded time of each rank", stacks=stacks), place=place, look=look)


PARTLY_DEVICE = Finding("partly_device", when=_when, short=_short, evidence=_evidence)
