"""Sentences of ``htagraph idle``: why devices waited, and the change to make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pandas as pd

from htagraph.core.naming import short_name
from htagraph.core.statistics import MOST
from htagraph.findings.limits import MAX_LISTED, MIN_PERCENT
from htagraph.findings.phrases import (
    Suggestion,
    and_list,
    command_line,
    plural,
    ranks_text,
    share_text,
    shortened,
    spoken,
    time_text,
)
from htagraph.queries.device_record import DeviceRecord
from htagraph.queries.waited_for import (
    DEVICE,
    EARLIER,
    HOST,
    LOADER,
    OTHER,
    OUTSIDE,
    OWN_REASONS,
    TRANSFER,
    UNKNOWN,
    WORK,
)

__all__ = ["idle_sentences"]

_LETTERS: Final = 60
"""Letters of a name in a sentence. Chosen: a name of a frame with its file. Doubled, the answer has four lines."""
_ONE: Final = {
    HOST: "its host",
    LOADER: "its data loader",
    DEVICE: "its next kernel, which was launched in time",
    UNKNOWN: "what no recorded dependency explains",
    TRANSFER: "transfers between ranks",
    WORK: "other streams or devices of its rank",
    EARLIER: "work from before the recording",
    OTHER: "work that was not recorded",
    OUTSIDE: "another process or thread that its host waits for",
}
"""Reasons in words, of one device; of several devices they are `_SEVERAL`."""
_OF_TIME: Final = "the time from {0} first to last work"
"""The time that a share of waiting refers to."""
_SEVERAL: Final = {
    **_ONE,
    HOST: "their hosts",
    LOADER: "their data loaders",
    DEVICE: "their next kernels, which were launched in time",
    WORK: "other streams or devices of their ranks",
    OUTSIDE: "other processes or threads that their hosts wait for",
}


def idle_sentences(
    waits: pd.DataFrame,
    devices: pd.DataFrame,
    inputs: Sequence[str],
    then: Callable[[str], list[str]],
    record: DeviceRecord = DeviceRecord.UNUSED,
    ranks: Sequence[int] = (),
) -> list[str]:
    """Return why devices waited, how long they were idle, and the change to make.

    Args:
        waits: the result of `htagraph.queries.waited_for.waited_for`.
        devices: the result of `htagraph.idle_breakdown` by rank.
        inputs: the words of the command line that choose the job.
        then: returns the change to make, given the cause of the longest wait.
        record: the result of `htagraph.queries.device_record.device_record`.
        ranks: the ranks of the job.
    """
    if not len(devices) and record.is_lost:
        return [f"When devices are idle is not known: {record.value}."]
    if not len(devices):
        several = len(ranks) > 1
        why = "To see when ranks wait for each other" if several else "To see what takes the time on the host"
        verb = "stragglers" if several else "critical-path"
        return [Suggestion(f"Nothing ran on a device, so none was idle. {why}", command_line(verb, inputs))]
    if not len(waits):
        return ["No device is idle between its first and its last kernel or copy."]
    by_rank = devices.groupby("rank")["share_percent"].sum()
    shares = by_rank.sort_values(ascending=False, kind="stable")
    if shares.iloc[0] < MIN_PERCENT:
        return [f"Devices hardly wait between their first and last work: {_by_share(shares)}."]
    by_cause = waits.groupby("waited_for", sort=False)["total_us"].sum()
    cause = str(by_cause.idxmax())
    rows = _of_cause(waits, cause)
    sums = rows.groupby(["what", "before"], as_index=False, sort=False)["total_us"].sum()
    longest = sums.iloc[int(sums["total_us"].argmax())]
    name = str(longest["what"])
    before = str(longest["before"])
    answer = f"{_whose(waits, rows, cause)}{_inside(rows, name, before)}."
    of_ranks = ""
    if len(shares) > 1:
        of_ranks = f"Devices are idle between their first and last work: {_by_share(shares)}."
    look = ""
    if cause == TRANSFER or cause not in OWN_REASONS:
        command = command_line("collectives", inputs)
        look = Suggestion("To see which rank waits for which", command)
    return spoken(answer, of_ranks, _causes(waits), *then(cause), look)


def _of_cause(waits: pd.DataFrame, cause: str) -> pd.DataFrame:
    """Return the rows of one cause: of a single device if most of the time is on that device, else of all devices."""
    rows = waits[waits["waited_for"] == cause]
    by_device = rows.groupby(["rank", "device"], as_index=False)["total_us"].sum()
    longest = by_device.iloc[int(by_device["total_us"].argmax())]
    total_us = by_device["total_us"].sum()
    if longest["total_us"] <= MOST * total_us:
        return rows
    is_of_rank = rows["rank"] == longest["rank"]
    is_of_device = rows["device"] == longest["device"]
    return rows[is_of_rank & is_of_device]


def _whose(waits: pd.DataFrame, rows: pd.DataFrame, cause: str) -> str:
    """Return the begin of the answer: which device waits how long and why, or that all devices do."""
    devices = len(waits[["rank", "device"]].drop_duplicates())
    is_one = len(rows[["rank", "device"]].drop_duplicates()) == 1
    time = time_text(float(rows["total_us"].sum()))
    percent = float(rows["share_percent"].sum())
    share = share_text(percent if is_one else percent / devices)
    if not is_one:
        whom = _SEVERAL.get(cause, cause)
        scope = f"{share} of {_OF_TIME.format('their')}, summed over {plural(devices, 'device')}"
        return f"Devices wait {time} ({scope}) for {whom}"
    subject = "The device waits" if devices == 1 else f"Rank {rows['rank'].iloc[0]}'s device waits"
    return f"{subject} {time} ({share} of {_OF_TIME.format('its')}) for {_ONE.get(cause, cause)}"


def _inside(rows: pd.DataFrame, name: str, before: str) -> str:
    """Return in which call, operator or frame most of a wait was spent, with its place and its time."""
    has_name = rows["what"] == name
    named = _in_one_place(rows[has_name & (rows["before"] == before)])
    cause = rows["waited_for"].iloc[0]
    if cause == DEVICE or not len(named) or not (name or before):
        return ""
    text = f"{shortened(short_name(name), _LETTERS)}{_place(named)}"
    ahead = f"before {shortened(short_name(before), _LETTERS)}"
    place = ahead
    if name:
        place = f"in {text}"
    elif cause == HOST:
        place = f"in code that no event covers, {ahead}"
    spent = float(named["total_us"].sum())
    total = float(rows["total_us"].sum())
    times = plural(int(named["count"].sum()), "time")
    if time_text(spent) == time_text(total):
        return f", {place} ({times})"
    amount = "most of it" if spent > MOST * total else "the longest"
    return f", {amount} {place} ({times}, {time_text(spent)})"


def _in_one_place(named: pd.DataFrame) -> pd.DataFrame:
    """Return the activities of one name that lie inside the operator or frame with most of their time, else all."""
    if not len(named):
        return named
    sums = named.groupby(
        "inside",
        as_index=False,
        sort=False,
    )["total_us"].sum()
    place = int(sums["total_us"].argmax())
    longest = sums.iloc[place]
    total = sums["total_us"].sum()
    is_most = longest["total_us"] > MOST * total
    inside = longest["inside"]
    if not inside or not is_most:
        return named
    return named[named["inside"] == inside]


def _place(named: pd.DataFrame) -> str:
    """Return inside which operator or frame activities of one name spent their time, if all are in one place."""
    inside = named["inside"].unique().tolist()
    if len(inside) > 1 or not inside[0]:
        return ""
    words = short_name(inside[0])
    return f" inside {shortened(words, _LETTERS)}"


def _causes(waits: pd.DataFrame) -> str:
    """Return the parts of all idle time by reason, the largest first."""
    sums = waits.groupby("waited_for", sort=False)["total_us"].sum()
    sums = sums.sort_values(ascending=False, kind="stable")
    if len(sums) == 1:
        return ""
    total = float(sums.sum())
    words = _SEVERAL | {DEVICE: "the devices' own delays between kernels"}
    texts = []
    for cause, time in sums.items():
        reason = words.get(str(cause), cause)
        texts.append(f"{share_text(100 * time / total)} for {reason}")
    listed = and_list(texts[:MAX_LISTED])
    return f"Of all waiting, {listed}."


def _by_share(shares: pd.Series) -> str:
    """Return how much of its time each rank has an idle device, ranks with the same share together."""
    shares = shares.map(share_text)
    groups = shares.groupby(shares, sort=False).groups
    listed = [f"{ranks_text(sorted(ranks))}: {share}" for share, ranks in groups.items()]
    shown = ", ".join(listed[:MAX_LISTED])
    further = len(listed) - MAX_LISTED
    return f"{shown} and {further} more" if further > 0 else shown
