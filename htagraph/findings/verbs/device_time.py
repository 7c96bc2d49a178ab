"""What the commands about device time say: kernels, launches, counters, phases, patterns and roofline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

import pandas as pd

from htagraph.core.kinds import HOST, ActivityKind
from htagraph.core.naming import ANY_STEP, exact_glob, literal_glob, short_name
from htagraph.core.statistics import MOST
from htagraph.findings.limits import LARGE_SHARE, MAX_LISTED, SHORT_LIST
from htagraph.findings.phrases import (
    Suggestion,
    and_list,
    command_line,
    plural,
    share_text,
    short_number,
    shortened,
    spoken,
    time_text,
)
from htagraph.graph.selection import named
from htagraph.queries.device_record import DeviceRecord
from htagraph.trace.readers import Recorder
from htagraph.whatif.options import criteria_text

__all__ = [
    "OUTSIDE", "UNKNOWN", "counters_sentences", "launch_not_recorded", "launches_sentences",
    "mostly_communication", "nothing_repeats", "other_occurrences", "pattern_text", "patterns_sentences",
    "phases_sentences", "roofline_sentences", "top_entry",
]  # fmt: skip

_PYTORCH = Recorder()
"""The recorder of most jobs: PyTorch's profiler."""
_LETTERS = 80
"""Letters of a name in a sentence. Chosen: half a line of a terminal. Doubled, a name is as long as its sentence."""
OUTSIDE = {
    "operator": "outside all operators", "shape": "outside all operators", "annotation": "outside all annotations",
    "module": "outside all modules and annotations",
}  # fmt: skip
"""The name of device work that belongs to nothing of the kind that it is summed up by."""
UNKNOWN = "launch not recorded"
"""The name of device work whose launch is not in the traces."""
_MAX_KERNELS = 12
"""Kernels of a pattern that are listed, the same in a row as one; chosen: about three lines. Doubled, about six."""


def launch_not_recorded(count: int, percent: float) -> str:
    """Return the sentence about device work whose launch is missing; `percent` is of the device time, NaN of none."""
    work = "1 kernel or copy" if count == 1 else f"{count:,} kernels or copies"
    share = f" ({percent:.0f} % of device time)" if math.isfinite(percent) else ""
    return f"The launch of {work} was not recorded{share}: start recording earlier to see what launched that work."


def top_entry(
    table: pd.DataFrame,
    by: str,
    inputs: Sequence[str],
    saved_us: Callable[[str], float] | None = None,
    recorder: Recorder = _PYTORCH,
    calls_us: float = 0.0,
) -> list[str]:
    """Return what takes most device time, and what to run next; `saved_us`: what half of the time of criteria saves.

    The own time of operators leaves out the calls of the runtime inside them, `calls_us` in all.
    """
    spent = "device_us" if "device_us" in table else "total_us"
    if not len(table) or not table[spent].any():
        return ["No device work was recorded."]
    work = table[table["kind"] != ActivityKind.DEVICE_OTHER.label] if "kind" in table else table
    table = work if len(work) else table  # what frames or awaits work is none
    owned = table[table["name"] != ""]
    row = (owned if len(owned) and owned[spent].any() else table).iloc[0]
    outside = f"work {OUTSIDE.get(by, '')}"
    on_host = row.get("kind") in {kind.label for kind in HOST}
    is_operator = row.get("kind") == ActivityKind.OP.label
    unit = "device time"
    if on_host:
        unit = "own time of all operators" if is_operator else "time"
    among = f" (not counting {outside})" if len(owned) < len(table) and row["name"] else ""
    several = table["ranks"].max() > 1 if "ranks" in table else True
    where = f" over {plural(int(row['ranks']), 'rank') if 'ranks' in row else 'all ranks'}" if several else ""
    what_if = _criteria(row, table["name"]) if by == "name" else ""
    is_worth = by != "name" or saved_us is None or _is_worth(row, saved_us, what_if)
    at_most = "at most " if row.get("at_most_us", 0.0) > 0 else ""
    family = "The family " if by == "family" else ""
    subject = family + (shortened(short_name(row["name"]), _LETTERS) or outside)
    without_calls = f" (calls of the runtime, {time_text(calls_us)}, not counted)" if calls_us and is_operator else ""
    return spoken(
        f"{subject} takes the most {unit}{without_calls}{among}: {at_most}{time_text(float(row[spent]))}{where}, "
        f"{row['share_percent']:.0f} %{'' if is_worth else ', but half of that would hardly make the job shorter'}.",
        _after_top(table, by, inputs, what_if) or _to_group(table, by, recorder) if is_worth
        else Suggestion("To see what bounds the job", command_line("critical-path", inputs)),
    )  # fmt: skip


def _criteria(row: pd.Series, names: pd.Series[str]) -> str:
    """Return what selects a row for a what-if: of operators, also the communication that they ask for and wait for."""
    name = row["name"]
    if row.get("kind") == ActivityKind.OP.label:
        return criteria_text({"op": exact_glob(name)})
    brief = f"*{literal_glob(short_name(name))}*"
    is_exact = set(names[named(names.tolist(), brief)]) == {name}
    kind = {"kind": row["kind"]} if "kind" in row else {}
    return criteria_text(kind | {"name": brief if is_exact else exact_glob(name)})


def _is_worth(row: pd.Series, saved_us: Callable[[str], float], what_if: str) -> bool:
    """Return whether the job is shorter by a good part of half of a row's time, as a row beside what binds is not."""
    is_talk = row["kind"].endswith("communication")  # which has another command
    return is_talk or saved_us(what_if) >= LARGE_SHARE * row["total_us"] / row.get("ranks", 1) / 2


def _after_top(table: pd.DataFrame, by: str, inputs: Sequence[str], what_if: str) -> str:
    if by == "name":
        if "kind" in table and table["kind"].iloc[0].endswith("communication"):
            return Suggestion("To split it into waiting and transfer", command_line("collectives", inputs))
        half = command_line("what-if", inputs, "--scale", f"{what_if}:0.5")
        return Suggestion("To predict the job if it took half its time", half)
    return ""


def _to_group(table: pd.DataFrame, by: str, recorder: Recorder) -> str:
    """Return the names that a table by shape or by module lacks, and the setting to record; empty for nothing."""
    if by == "shape" and not (table["input_dims"] != "").any():
        how = recorder.of_pytorch(f": record them with {recorder.setting('shapes')}")
        return f"The traces have no input shapes{how}."
    if by == "module" and not (table["kind"] == "module").any():
        how = recorder.of_pytorch(f": record with {recorder.setting('modules')}")
        return f"The traces have no module frames, so annotations are shown instead{how}."
    return ""


def launches_sentences(
    stats: pd.DataFrame,
    graphs: pd.DataFrame,
    waits: pd.Series,
    *,
    record: DeviceRecord = DeviceRecord.UNRECORDED,
    path_percent: float = math.nan,
) -> list[str]:
    """Return the cost of launching, and which calls wait; `path_percent` is its share of the critical path, if known.

    `waits` says of each row whether the call returned only when its work was over, which is no cost of launching;
    `record` is the result of `device_record`. The sentence counts the calls of the table.
    """
    if not len(stats):
        return [f"No launch with its device work is in the traces: {_TO_SEE_LAUNCHES.get(record, record.value)}."]
    blocked = stats[waits].drop_duplicates("launch")
    every = stats[["launch", "launch_us"]]  # without texts, which take long to copy
    all_calls = every["launch"].nunique()
    calls = every[~waits].drop_duplicates("launch")
    launched = "kernel or copy" if len(every) == 1 else "kernels and copies"
    waited = f", not counting {plural(len(blocked), 'call')} that waited" if len(blocked) else ""
    whole = graphs["gap_us"].isna()
    graphs, span = graphs[~whole], graphs["span_us"][~whole].sum()
    longest, total = calls["launch_us"].max(), calls["launch_us"].sum()
    in_one = f", {time_text(longest)} of it in one call" if len(calls) > 1 and longest > MOST * total else ""
    share = "" if math.isnan(path_percent) else f"; launching is {share_text(path_percent)} of the critical path"
    return spoken(
        f"{plural(all_calls, 'call')} launched {len(every):,} {launched} in {time_text(total)} of host time"
        f"{in_one}{waited}{share}." if len(calls) else "",
        _blocked(blocked[blocked["delay_us"] <= 0], "returned only when the work was over"),
        _blocked(blocked[blocked["delay_us"] > 0], "waited for earlier work of the device, as where a queue is full"),
        f"Inside CUDA graphs ({len(graphs):,} launched), the device is idle "
        f"{100 * graphs['gap_us'].sum() / span:.1f} % of the time."
        if span > 0 else "",
        f"What runs inside {plural(int(whole.sum()), 'CUDA graph')} is unknown: they were recorded as a whole."
        if whole.any() else "",
    )  # fmt: skip


_TO_SEE_LAUNCHES = {
    DeviceRecord.RECORDED: "record the launch calls of the host to see any",
    DeviceRecord.COUNTED: f"{DeviceRecord.COUNTED.value}; record without counters to see any",
    DeviceRecord.UNRECORDED: "record with CUDA activities to see any",
}
"""How to see launches, where the files have none, by what the recording shows of devices."""


def _blocked(calls: pd.DataFrame, how: str) -> str:
    """Return how many calls waited for the device, and how long; empty for none."""
    if not len(calls):
        return ""
    names = " and ".join(calls["launch_name"].unique()[:SHORT_LIST])
    time = time_text(calls["launch_us"].sum())
    return f"{plural(len(calls), 'call')} of {names} {how}, which is no cost of launching: {time}."


def counters_sentences(
    queues: pd.DataFrame,
    full: int,
    samples: pd.DataFrame | None = None,
    *,
    blocked: int = 0,
) -> list[str]:
    """Return how long queues were, whether launches blocked, and which counters were sampled.

    Args:
        queues: statistics of each stream's queue.
        full: the length that counts as full.
        samples: the counters that the profiler sampled.
        blocked: how many launch calls were seen to wait for earlier work of the device.
    """
    sampled = [_sampled_sentence(samples)] if samples is not None and len(samples) else []
    if not len(queues):
        return ["No launch with its device work is in the traces, so there are no queues to count.", *sampled]
    longest = queues.iloc[int(queues["full_us"].argmax())]
    length = _longest_queue(queues)
    if longest["full_us"] > 0:
        length = (
            f"Rank {longest['rank']:.0f}, stream {longest['stream']:.0f}: the queue held {full:,} kernels and copies "
            f"or more for {time_text(longest['full_us'])}. The device did not wait for the host then."
        )
    waited = f"{plural(blocked, 'launch call')} waited for earlier work of the device."
    return [f"{length} {waited if blocked else 'No call was seen to wait for room in a queue.'}", *sampled]


def _longest_queue(queues: pd.DataFrame) -> str:
    """Return which queue was the longest, and how long it was at most and on average."""
    longest = queues.iloc[int(queues["max"].argmax())]
    which = f"rank {longest['rank']:.0f}, stream {longest['stream']:.0f}"
    mean = short_number(longest["mean_over_time"])
    entries = "kernel or copy" if longest["max"] == 1 else "kernels and copies"
    return f"The longest queue, {which}, held at most {longest['max']:,.0f} {entries}, {mean} on average."


def _sampled_sentence(samples: pd.DataFrame) -> str:
    """Return which counters the profiler sampled, and how often."""
    counters = samples["counter"].unique().tolist()
    shown = counters[:MAX_LISTED]
    if len(counters) > len(shown):
        shown.append(plural(len(counters) - len(shown), "further counter"))
    taken = plural(int(samples["count"].sum()), "sample")
    return f"The profiler took {taken} of {and_list(shown)}."


def phases_sentences(
    table: pd.DataFrame,
    inputs: Sequence[str],
    annotation: str | None,
    window_us: float = 0.0,
    recorder: Recorder = _PYTORCH,
) -> list[str]:
    """Return which phase takes the most time, how busy the device is then, and how fast tokens are made.

    The annotation is what was asked for, None for the outermost ones; `window_us` is the time of the recording.
    """
    if not len(table):
        reason = "no annotation was recorded" if annotation is None else f"nothing is called {annotation!r}"
        return [
            f"There are no phases: {reason}. Put {recorder.setting('regions')} around parts of the code, "
            f"{recorder.setting('step')}, and record with {recorder.setting('host')}."
        ]
    more_phases = f"Put {recorder.setting('regions')} around parts of the code."
    phases = table.groupby("phase", sort=False)
    sums = phases[["wall_us", "host_us", "busy_us", "count", "kernels"]].sum().assign(ranks=phases["rank"].nunique())
    if annotation is None and set(sums.index) == {ANY_STEP}:
        return [f"There are no phases but the steps. {more_phases}"]
    queued = (sums["kernels"] > 0) & (sums["host_us"] + sums["busy_us"] < MOST * sums["wall_us"])
    critical = command_line("critical-path", inputs)
    unqueued = sums if queued.all() else sums[~queued]
    longest_row = int(unqueued["wall_us"].argmax())
    most = unqueued.iloc[longest_row]
    name = str(unqueued.index[longest_row])
    share = 100 * most["busy_us"] / most["wall_us"] if most["wall_us"] else 0.0
    runs = f"; its kernels run {share_text(share)} of that" if most["kernels"] else ""
    ranks = f"over {plural(int(most['ranks']), 'rank')} " if most["ranks"] > 1 else ""
    if most["ranks"] == 1 < table["rank"].nunique():
        ranks = f"on rank {table['rank'][table['phase'] == name].iloc[0]} alone "
    percent = 100 * most["wall_us"] / most["ranks"] / window_us if window_us else 0.0
    of_window = f" ({share_text(percent)} of the recording)" if percent else ""
    is_small = annotation is None and 0 < percent < 100 * LARGE_SHARE
    if queued.all() or (is_small and queued.any()):
        said = "No phase takes the time: launched work waits behind other work of devices. To see that"
        return [Suggestion(said, critical)]
    if is_small:
        return [f"No phase takes much of the time: the longest is {name}{of_window}. {more_phases}"]
    with_tokens = table[table["tokens"] > 0]
    if len(with_tokens):
        tokens = with_tokens.groupby("phase")[["tokens", "wall_us"]].sum()
        rates = [f"{phase} {1e6 * row.tokens / row.wall_us:,.0f}" for phase, row in tokens.iterrows() if row.wall_us]
        second = f"Tokens per second of a rank's wall time, as recorded: {', '.join(rates)}."
    elif not most["kernels"]:
        second = Suggestion("To see what the host does meanwhile", critical)
    else:
        glob = "*".join(map(literal_glob, name.split("*")))  # a phase has * in place of numbers
        line = command_line("what-if", inputs, "--scale", f"{criteria_text({'op': glob})}:0.5")
        second = Suggestion(f"To predict the job if {name} took half its time", line)
    return [
        f"{name} takes the most wall time{' of its own' if queued.any() else ''}: {time_text(most['wall_us'])} "
        f"{ranks}in {plural(int(most['count']), 'region')}{of_window}{runs}.",
        second,
    ]


def pattern_text(pattern: str) -> str:
    """Return a pattern as ``operator: kernel → kernel``.

    Example:
        >>> pattern_text("aten::linear|gemm<1>|splitk|splitk")
        'aten::linear: gemm → 2 × splitk'
    """
    operator, *kernels = pattern.split("|")
    runs = [(name, len(list(same))) for name, same in groupby(map(short_name, kernels))]
    parts = [name if count == 1 else f"{count} × {name}" for name, count in runs[:_MAX_KERNELS]]
    left = sum(count for _, count in runs[_MAX_KERNELS:])
    return f"{operator}: {' → '.join(parts)}{f' → … {left} more' if left else ''}"


def other_occurrences(fewer: int, inputs: Sequence[str], operator: str) -> list[str]:
    """Return how many occurrences launched fewer kernels than ``--min-length``, and how to see them."""
    again = command_line("patterns", inputs, "--operator", operator, "--min-length", "1")
    other = f"{plural(fewer, 'other occurrence')} launched fewer kernels or none. To include those with any"
    return [Suggestion(other, again)] if fewer else []


def nothing_repeats(inputs: Sequence[str], operator: str, min_length: int, others: Sequence[str]) -> list[str]:
    """Return that an operator launched no sequence of kernels, and the command to run next.

    Further names launch at least `min_length` kernels, the most device time first.
    """
    asked = others[0] if others else operator
    length = min_length if others else 1
    again = command_line("patterns", inputs, "--operator", asked, "--min-length", str(length))
    but = f", but {and_list(others)} did" if others else ". To include shorter sequences"
    return [Suggestion(f"Nothing that matches {operator!r} launched {min_length} kernels or more{but}", again)]


def patterns_sentences(table: pd.DataFrame, operator: str, device_us: float) -> list[str]:
    """Return which sequence of kernels takes the most time, how often it occurs, and its share of device time.

    `device_us` is the time of all device work. Equal sequences of several ranks are one.
    """
    sums = table.groupby("pattern", as_index=False, sort=False)[["count", "kernel_us"]].sum()
    most = sums.iloc[int(sums["kernel_us"].argmax())]
    rows = table[table["pattern"] == most["pattern"]]
    over = f" over {plural(rows['rank'].nunique(), 'rank')}" if rows["rank"].nunique() > 1 else ""
    name = shortened(str(rows["operator"].iloc[0]), _LETTERS)
    share = f" ({share_text(100 * most['kernel_us'] / device_us)} of device time)" if device_us else ""
    kernels = plural(int(rows["kernels"].iloc[0]), "kernel")
    further = int(table["count"].sum()) - int(most["count"])
    times = plural(int(most["count"]), "time")
    answer = f"{name} launched the same {kernels} {times}{over}: {time_text(most['kernel_us'])}{share}."
    if not further:
        return [answer]
    occurrences = plural(further, "other occurrence")
    sequences = plural(len(sums) - 1, "other sequence")
    return [answer, f"Of {operator!r}, {occurrences} launched {sequences}."]


def mostly_communication(share: float, inputs: Sequence[str]) -> list[str]:
    """Return the sentence that names the share of communication, which waits for other ranks; none of a small share."""
    if share <= MOST:
        return []
    said = f"{share_text(100 * share)} of it is communication, with its waits for other ranks"
    return [Suggestion(said, command_line("collectives", inputs))]


def roofline_sentences(
    table: pd.DataFrame,
    inputs: Sequence[str],
    chosen: tuple[bool, bool],
    recorder: Recorder = _PYTORCH,
    record: DeviceRecord = DeviceRecord.RECORDED,
    *,
    has_shapes: bool = False,
) -> list[str]:
    """Return what was computed, the device's peaks, and which operator loses the most time below its roof.

    Args:
        table: the result of `htagraph.roofline`.
        inputs: the words of the command line that choose the job.
        chosen: whether the user gave the peaks of computing and of memory.
        recorder: the profiler that wrote the traces.
        record: the result of `device_record`: without the times of device work, no peak says anything.
        has_shapes: whether shapes of inputs were recorded.
    """
    odd, to_see = table.attrs.get("left_out", 0), command_line("summary", inputs)
    left_out = f"{plural(odd, 'operator')} not counted: what was recorded of the inputs fits no formula." if odd else ""
    if not len(table) and has_shapes:
        none = "No operator with a formula for FLOPs was recorded: work of CUDA graphs and of compiled code has none."
        return spoken(left_out, Suggestion(f"{none} To see what takes the time", to_see))
    if not len(table):
        how = (
            f": profile with {recorder.setting('shapes')} (as data/gloo_ddp of htagraph's repository was), or with "
            "CUPTI's range profiler"
        )
        none = f"No operator's FLOPs can be counted, as no input shapes were recorded{recorder.of_pytorch(how)}."
        return spoken(left_out, Suggestion(f"{none} To see what takes the time", to_see))
    time, flop = float(table["time_us"].sum()), float(table["flop"].sum())
    count, at_most = int(table["count"].sum()), int(table.loc[table["at_most"], "count"].sum())
    on_host = " of host time, as no device work was recorded" if table["share_percent"].isna().all() else ""
    unknown = f": {record.value}" if record.is_lost else ""
    lasted = f"in {time_text(time)}{on_host}" if time else f"in a time that was not recorded{unknown}"
    share = table.groupby("rank")["share_percent"].sum(min_count=1).mean()
    roof = _roof(table, record)
    is_roof_known = bool(table["roof_percent"].notna().any())
    return spoken(
        roof if is_roof_known else "",
        f"{plural(count, 'operator')} computed {'up to ' if at_most else ''}{flop / 1e12:.3g} TFLOP {lasted}.",
        f"Of these, {plural(at_most, 'operator')} may have computed less: whether a mask is causal, or where groups "
        "end, was not recorded."
        if at_most else "",
        left_out, _peaks(table, chosen), "" if is_roof_known else roof,
        Suggestion(f"These operators are {share_text(share)} of the device's time. For the rest, whose FLOPs cannot be "
                   "counted", to_see)
        if share < 100 * MOST else "",  # a share that is unknown is not less
    )  # fmt: skip


def _peaks(table: pd.DataFrame, chosen: tuple[bool, bool]) -> str:
    """Return the peaks that the roof consists of, and where each comes from."""
    parts = []
    for column, unit, given_here in zip(("peak_tflop_s", "peak_gb_s"), ("TFLOP/s", "GB/s"), chosen, strict=True):
        peaks = sorted(table[column].dropna().unique())
        option = "--peak-tflops" if unit == "TFLOP/s" else "--peak-gbs"
        source = f"given with {option}" if given_here else "the vendor's data sheet, dense, at boost clock"
        if peaks:
            parts.append((f"{' or '.join(f'{peak:,.4g}' for peak in peaks)} {unit}", source))
    if len(parts) > 1 and parts[0][1] == parts[1][1]:
        parts = [(f"{parts[0][0]} and {parts[1][0]}", parts[0][1])]
    return f"The roof: at most {' and '.join(f'{peak} ({source})' for peak, source in parts)}." if parts else ""


def _roof(table: pd.DataFrame, record: DeviceRecord) -> str:
    with_roof = table[table["roof_percent"].notna()]
    is_timed = record is DeviceRecord.RECORDED and bool(table["time_us"].any())
    if not len(with_roof) and not is_timed:
        return ""
    if not len(with_roof):
        return "The peaks of this device are not known: give --peak-tflops and --peak-gbs."
    share_below_roof = 1 - with_roof["roof_percent"].clip(upper=100) / 100
    lost = with_roof["time_us"] * share_below_roof
    worst = with_roof.iloc[int(lost.argmax())]
    up_to, at_least = ("up to ", "at least ") if worst["at_most"] else ("", "")
    return (
        f"{worst['operator']} ({worst['shapes']}) loses the most time below the roof: it reaches {up_to}"
        f"{share_text(worst['roof_percent'])} of what {worst['bound']} allows; at the roof it would take {at_least}"
        f"{time_text(float(lost.max()))} less."
    )
