"""Sentences of ``htagraph patterns``: the sequence of kernels that repeats, its time, and the command to run next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

import pandas as pd

from htagraph.core.naming import short_name
from htagraph.core.statistics import MOST
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import Suggestion, and_list, command_line, plural, share_text, shortened, time_text
from htagraph.findings.steady_gain import SteadyGain

__all__ = [
    "FusionGain",
    "host_repeats",
    "mostly_communication",
    "nothing_repeats",
    "other_occurrences",
    "pattern_text",
    "patterns_sentences",
    "sequence_text",
]

_LETTERS: Final = 80
"""Letters of a name in a sentence. Chosen: half a line of a terminal. Doubled, a name is as long as its sentence."""
_MAX_KERNELS: Final = 12
"""Kernels of a pattern that are listed, the same in a row as one; chosen: about three lines. Doubled, about six."""


class FusionGain(NamedTuple):
    """The gain of a job where kernels of a repeated sequence become one."""

    options: tuple[str, ...]
    """The change, as options of the verb that predicts it."""
    gain: SteadyGain
    """How much shorter the steady job is."""


def pattern_text(pattern: str) -> str:
    """Return a pattern as ``operator: kernel → kernel``.

    Example:
        >>> pattern_text("aten::linear|gemm<1>|splitk|splitk")
        'aten::linear: gemm → 2 × splitk'
    """
    operator, *kernels = pattern.split("|")
    return f"{operator}: {sequence_text(kernels)}"


def sequence_text(kernels: Sequence[str]) -> str:
    """Return kernels as ``kernel → 2 × kernel``, and how many more there are.

    Example:
        >>> sequence_text(["gemm<1>", "splitk", "splitk"])
        'gemm → 2 × splitk'
    """
    runs = [(name, len(list(same))) for name, same in groupby(map(short_name, kernels))]
    texts = [name if count == 1 else f"{count} × {name}" for name, count in runs[:_MAX_KERNELS]]
    left = sum(count for _, count in runs[_MAX_KERNELS:])
    return f"{' → '.join(texts)}{f' → … {left} more' if left else ''}"


def other_occurrences(fewer: int, inputs: Sequence[str], operator: str) -> list[str]:
    """Return how many occurrences launched fewer kernels than ``--min-length``, and how to see them."""
    again = command_line("patterns", inputs, "--operator", operator, "--min-length", "1")
    shorter = f"{plural(fewer, 'other occurrence')} launched fewer kernels or none. To include those with any"
    return [Suggestion(shorter, again)] if fewer else []


def nothing_repeats(inputs: Sequence[str], operator: str, min_length: int, others: Sequence[str]) -> list[str]:
    """Return that an operator launched no sequence of kernels, and the command to run next.

    Further names launch at least `min_length` kernels, the most device time first.
    """
    asked = others[0] if others else operator
    length = min_length if others else 1
    again = command_line("patterns", inputs, "--operator", asked, "--min-length", str(length))
    but = f", but {and_list(others)} did" if others else ". To include shorter sequences"
    return [Suggestion(f"Nothing that matches {operator!r} launched {min_length} kernels or more{but}", again)]


def host_repeats(operators: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return that no kernels repeat as nothing ran on a device, and which operator repeats on the host.

    Args:
        operators: the result of `htagraph.operator_breakdown`.
        inputs: the words of the command line that choose the job.
    """
    nothing = "Nothing ran on a device, so no kernels repeat."
    repeated = operators[(operators["count"] > 1) & (operators["host_self_us"] > 0) & (operators["name"] != "")]
    if not len(repeated):
        return [nothing]
    sums = repeated.groupby("name", sort=False)[["count", "host_self_us"]].sum()
    most = sums.iloc[int(sums["host_self_us"].argmax())]
    name = shortened(str(most.name), _LETTERS)
    times = plural(int(most["count"]), "time")
    said = f"On the host, {name} runs {times}, {time_text(most['host_self_us'])} in all"
    return [nothing, Suggestion(said, command_line("kernels", inputs))]


def patterns_sentences(
    table: pd.DataFrame,
    operator: str,
    device_us: float,
    inputs: Sequence[str],
    fusion: FusionGain | None = None,
) -> list[str]:
    """Return the sequence of kernels that takes the most time, how often and how long it runs, and how to shorten it.

    Args:
        table: the result of `htagraph.kernel_patterns`; equal sequences of several ranks are one.
        operator: the operator, annotation or module that launched the sequences.
        device_us: the time of all device work.
        inputs: the words of the command line that choose the job.
        fusion: the gain if kernels of the sequence become one; None where the gain is not known.
    """
    sums = table.groupby("pattern", as_index=False, sort=False)[["count", "kernel_us"]].sum()
    most = sums.iloc[int(sums["kernel_us"].argmax())]
    rows = table[table["pattern"] == most["pattern"]]
    ranks = rows["rank"].nunique()
    over = f" over {plural(ranks, 'rank')}" if ranks > 1 else ""
    name = shortened(str(rows["operator"].iloc[0]), _LETTERS)
    share = f" ({share_text(100 * most['kernel_us'] / device_us)} of device time)" if device_us else ""
    kernels = plural(int(rows["kernels"].iloc[0]), "kernel")
    count = int(most["count"])
    each_time = "" if count == 1 else f"{time_text(most['kernel_us'] / count)} each, "
    in_all = "" if count == 1 else " in all"
    time = f"{each_time}{time_text(most['kernel_us'])}{in_all}{share}"
    answer = f"{name} launched the same {kernels} {plural(count, 'time')}{over}: {time}."
    said = [answer, *_next(fusion, inputs)]
    further = int(table["count"].sum()) - count
    if further:
        occurrences = plural(further, "other occurrence")
        sequences = plural(len(sums) - 1, "other sequence")
        said.append(f"Of {operator!r}, {occurrences} launched {sequences}.")
    return said


def _next(fusion: FusionGain | None, inputs: Sequence[str]) -> list[str]:
    """Return how to shorten a repeated sequence, where that gains, with the command that predicts the gain."""
    if fusion is None:
        return []
    gain = fusion.gain
    if gain.percent < MIN_PERCENT:
        said = "Fusing its kernels would hardly make the job shorter. To see what bounds it"
        return [Suggestion(said, command_line("critical-path", inputs))]
    apart = " apart from start-up" if gain.is_without_start_up else ""
    said = (
        "Fuse its kernels (torch.compile): without launches and pauses between them, "
        f"the job{apart} would be {share_text(gain.percent)} shorter"
    )
    return [Suggestion(said, command_line("what-if", inputs, *fusion.options))]


def mostly_communication(share: float, inputs: Sequence[str]) -> list[str]:
    """Return the sentence that names the share of communication, which waits for other ranks; none of a small share."""
    if share <= MOST:
        return []
    said = f"{share_text(100 * share)} of it is communication, with its waits for other ranks"
    return [Suggestion(said, command_line("collectives", inputs))]
