"""Figures, names and commands as parts of sentences."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from htagraph.core.arrays import in_runs
from htagraph.core.errors import time_text
from htagraph.findings.limits import MAX_LISTED, MIN_PERCENT, MIN_SHARE
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.compare import SURE_ERRORS
from htagraph.queries.path_segments import HOST_CATEGORIES

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.queries.straggler import RankStragglers

__all__ = [
    "CATEGORY_WORDS", "NO_OPERATOR", "THE_HOST", "Advice", "Suggestion", "and_list", "cause_words", "causes_words",
    "command_line",
    "distinct",
    "group_words",
    "plural",
    "ranks_text", "share_text", "shares_text", "short_number", "shortened", "size_text", "slower_rank", "spoken",
    "steps_text", "time_text", "transfers_words", "unblamed", "untraced_before", "waits_text", "why_nobody",
]  # fmt: skip

CATEGORY_WORDS = {
    "host": "host code", "launch": "launch calls", "computation": "computation",
    "communication": "transfers between ranks", "waiting": "pauses between kernels",
    "sync": "returns from blocking calls", "memory": "memory copies", "data_loading": "the data loader",
    "gap": "unexplained pauses", "head": "what came before the recording",
    "other_work": "other work of the device (inferred, not recorded)",
    "outside": "waiting for another process or thread", "allocator": "calls of the allocator",
}  # fmt: skip
"""What the time of a segment of a critical path was spent on, by its category."""

THE_HOST = "the host"
"""What all categories of a host are called together, where some have too little of the path to be named."""
NO_OPERATOR = "in no operator"
"""What the time of steps outside all operators is called."""

_GROUP = re.compile(r"(\S+) (.*?) ?\[([\d,. ]+)\]")
_PAIR = re.compile(r"\d+→\d+")
_NO_PURPOSE = "undefined"
"""What PyTorch records as the purpose of a process group that was given none."""
_BYTES_PER_GB, _BYTES_PER_MB, _BYTES_PER_KB = 1e9, 1e6, 1e3
"""Decimal, as bandwidths are."""


def share_text(percent: float) -> str:
    """Return a share in whole percent; what is not all and not nothing does not read as that.

    Example:
        >>> share_text(99.8), share_text(100.0), share_text(0.2), share_text(42.4)
        ('over 99 %', '100 %', 'under 1 %', '42 %')
    """
    whole = round(percent)
    if whole == 0 < percent:
        return "under 1 %"
    return "over 99 %" if percent < 100 == whole else f"{whole} %"


def size_text(count: float) -> str:
    """Return a number of bytes in the unit that suits it.

    Example:
        >>> size_text(2.5e9), size_text(4e6), size_text(5120), size_text(12)
        ('2.50 GB', '4.0 MB', '5.1 kB', '12 B')
    """
    if count >= _BYTES_PER_GB:
        return f"{count / _BYTES_PER_GB:.2f} GB"
    if count >= _BYTES_PER_MB:
        return f"{count / _BYTES_PER_MB:.1f} MB"
    return f"{count / _BYTES_PER_KB:.1f} kB" if abs(count) >= _BYTES_PER_KB else f"{count:.0f} B"


def short_number(value: float) -> str:
    """Return a number with about three digits.

    Example:
        >>> short_number(1234.4), short_number(12.34), short_number(1.234), short_number(0.01234), short_number(-0.0001)
        ('1,234', '12.3', '1.23', '0.012', '0.000')
    """
    size = abs(value)
    text = f"{value:,.{0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3}f}" if value else "0"
    return text if text.strip("-0.,") else text.removeprefix("-")


def and_list(words: Iterable[str]) -> str:
    """Return words as they are listed in a sentence.

    Example:
        >>> and_list(["a", "b", "c"])
        'a, b and c'
    """
    *first, last = list(words)
    return f"{', '.join(first)} and {last}" if first else last


def cause_words(cause: str, shares: Mapping[str, float], *, is_on_cpu: bool = False) -> str:
    """Return what bounds a job: for the host, the parts that its share is the sum of, or all of it.

    Example:
        >>> cause_words("host", {"host": 38.0, "launch": 20.0}), cause_words("gap", {"gap": 100.0})
        ('host code and launch calls', 'unexplained pauses')
        >>> cause_words("host", {"host": 55.3, "launch": 1.5}), cause_words("host", {"host": 90.0}, is_on_cpu=True)
        ('the host', 'computation on the CPU')
    """
    if cause != "host":
        return CATEGORY_WORDS.get(cause, cause)
    if is_on_cpu:
        return "computation on the CPU"
    of_host = {category: shares.get(category, 0.0) for category in HOST_CATEGORIES}
    named = [category for category, share in of_host.items() if share >= MIN_PERCENT] or ["host"]
    is_all = round(sum(of_host[category] for category in named)) == round(sum(of_host.values()))
    return and_list([CATEGORY_WORDS[category] for category in named]) if is_all else THE_HOST


def causes_words(shares: Mapping[str, float]) -> str:
    """Return several causes in words, each with its share in percent.

    Example:
        >>> causes_words({"computation": 38.2, "host code": 37.9})
        'computation 38 % and host code 38 %'
    """
    return and_list([f"{words} {share_text(share)}" for words, share in shares.items()])


def transfers_words(absent: str) -> str:
    """Return the words for communication, given whether it may have waited for ranks not recorded, or not matched.

    Example:
        >>> transfers_words("recorded"), transfers_words("")
        ('transfers between ranks, or waiting for ranks not recorded', 'transfers between ranks')
    """
    return f"{CATEGORY_WORDS['communication']}{f', or waiting for ranks not {absent}' if absent else ''}"


def group_words(group: str) -> str:
    """Return what a process group, or a pair of ranks, is called in a sentence.

    Example:
        >>> group_words("0 default_pg [0, 1, 2, 3]"), group_words("3 undefined [0, 2]")
        ('process group default_pg (ranks 0-3)', 'process group 3 (ranks 0, 2)')
        >>> group_words("0 default_pg [0, 1, 2, ..., 63]")
        'process group default_pg (ranks 0-2, …, 63)'
        >>> group_words("ranks 0, 1, 2"), group_words("2→3")
        ('ranks 0-2', 'rank 2 to rank 3')
    """
    named = _GROUP.fullmatch(group)
    if named:
        number, purpose, ranks = named.groups()
        name = number if purpose in ("", _NO_PURPOSE) else purpose
        return f"process group {name} (ranks {_ranges(ranks)})"
    if _PAIR.fullmatch(group):
        return " to ".join(f"rank {rank}" for rank in group.split("→"))
    ranks = group.removeprefix("ranks ")
    return f"ranks {_ranges(ranks)}" if ranks != group else group


def _ranges(ranks: str) -> str:
    """Return ``0-2, 5`` for ``0, 1, 2, 5``; PyTorch shortens long lists to ``0, 1, 2, ..., 63``."""
    if "..." in ranks:
        return ", …, ".join(map(_ranges, ranks.split("...")))
    return ", ".join(in_runs([int(each) for each in ranks.split(",") if each.strip().isdigit()]))


def shortened(text: str, letters: int) -> str:
    """Return a text of at most so many letters: of a longer one the middle is left out, for names differ at both ends.

    Example:
        >>> shortened("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", 24)
        'ampere_bf16…ages_64x3_tn'
    """
    if len(text) <= letters:
        return text
    tail = letters // 2
    return f"{text[: letters - 1 - tail]}…{text[len(text) - tail :]}"


def distinct(texts: Sequence[str], wholes: Sequence[str], room: int) -> list[str]:
    """Return shortened texts, of which those that are alike show where what they stand for differs.

    Example:
        >>> distinct(["gemm…", "gemm…", "add"], ["gemm_with_32x32_tiles", "gemm_with_64x64_tiles", "add"], 12)
        ['gemm_…32x32_', 'gemm_…64x64_', 'add']
    """
    shown = dict(zip(wholes, texts, strict=True))
    for most, before in _WAYS:
        for several in _alike(shown):
            shown |= zip(several, _differences(several, room, most, before), strict=True)
    for several in _alike(shown):
        for number, whole in enumerate(several, 1):
            shown[whole] = f"{shown[whole][: room - 4]} #{number}"
    return [shown[whole] for whole in wholes]


_WAYS = ((1, 0.0), (1, 0.25), (1, 0.5), (2, 0.0), (2, 0.5), (3, 0.0), (3, 0.5))
"""Ways to shorten names that look alike, tried in turn: how many places of difference are shown, and the share of the
letters there that lie before the difference. Chosen: four places leave too few letters to each."""


def _alike(shown: Mapping[str, str]) -> list[list[str]]:
    """Return the texts that look the same, given the shown text of each one."""
    groups: dict[str, list[str]] = {}
    for whole, text in shown.items():
        groups.setdefault(text, []).append(whole)
    return [several for several in groups.values() if len(several) > 1]


def _first_difference(first: str, second: str) -> int:
    """Return the place of the first letter that differs between two texts."""
    letters = enumerate(zip(first, second, strict=False))
    return next((place for place, (a, b) in letters if a != b), min(len(first), len(second)))


def _differences(several: Sequence[str], room: int, most: int, before: float) -> list[str]:
    """Return for each of different texts its begin, and the letters around the first places of difference.

    Args:
        several: the texts.
        room: letters of each result at most.
        most: places of difference at most.
        before: the share of the letters of a place that lie before the difference.
    """
    ordered = sorted(several)
    places = {_first_difference(*pair) for pair in pairwise(ordered)}
    chosen = sorted(places)[:most]
    head = ordered[0][: min((room - 1) // (len(chosen) + 1), chosen[0])]
    letters = max(1, (room - len(head)) // len(chosen) - 1)
    begins = [max(len(head), place - int(before * letters)) for place in chosen]
    return [head + "".join(f"…{whole[begin : begin + letters]}" for begin in begins) for whole in several]


def steps_text(steps: Sequence[int]) -> str:
    """Return in which steps something is so, as the start of a sentence.

    Example:
        >>> steps_text([5, 6]), steps_text([2, 3, 4, 6, 7]), steps_text([1])
        ('In steps 5 and 6', 'In steps 2-4, 6 and 7', 'In step 1')
    """
    texts = in_runs(steps)
    if len(texts) > 2 * MAX_LISTED:
        return f"In {len(steps)} usual steps"
    word = "step" if len(steps) == 1 else "steps"
    return f"In {word} {and_list(texts)}"


def spoken(*sentences: str) -> list[str]:
    """Return the sentences that say something: an empty text is none."""
    return [sentence for sentence in sentences if sentence]


def plural(count: int, word: str) -> str:
    """Return a number of things.

    Example:
        >>> plural(1, "hop"), plural(2000, "hop")
        ('1 hop', '2,000 hops')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def ranks_text(ranks: Sequence[int]) -> str:
    """Return some ranks, the first of them by number.

    Example:
        >>> ranks_text([3]), ranks_text([0, 2]), ranks_text(range(6))
        ('rank 3', 'ranks 0 and 2', 'ranks 0, 1, 2, 3 and 2 more')
    """
    names, more = [str(rank) for rank in ranks[:MAX_LISTED]], len(ranks) - MAX_LISTED
    shown = f"{', '.join(names)} and {more} more" if more > 0 else and_list(names)
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"


def untraced_before(names: pd.Series[str]) -> pd.Series[str]:
    """Return what host code that no event covers is called, by the names of what comes next; empty for nothing.

    Example:
        >>> import pandas as pd
        >>> untraced_before(pd.Series(["aten::mm", ""])).tolist()
        ['untraced before aten::mm', 'untraced']
    """
    return ("untraced before " + names).where(names != "", "untraced")


def command_line(command: str, inputs: Iterable[str], *options: str) -> str:
    """Return what to type to run a command on the same files.

    Example:
        >>> command_line("what-if", ["my job"], "--scale", "name=*gemm*:0.5")
        "htagraph what-if 'my job' --scale 'name=*gemm*:0.5'"
    """
    return shlex.join(["htagraph", command, *inputs, *options])


class Advice(str):
    """Advice of several sentences; the first sentence stands alone where space is short.

    Example:
        >>> advice = Advice("Begin with gemm.", "See what else takes time.")
        >>> advice, advice.first
        ('Begin with gemm. See what else takes time.', 'Begin with gemm.')
    """

    __slots__ = ("first", "further")

    first: str
    """The first sentence."""
    further: tuple[str, ...]
    """All other sentences."""

    def __new__(cls, first: str, *further: str) -> Advice:
        """Return the advice, given the sentences."""
        advice = super().__new__(cls, " ".join([first, *further]))
        advice.first = first
        advice.further = further
        return advice

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override] # copies are made of all sentences
        """Return the sentences for a copy."""
        return self.first, *self.further


class Suggestion(str):
    """A sentence that ends with a command to run; terminals show the command in a line of its own.

    Example:
        >>> suggestion = Suggestion("To see why", command_line("stragglers", ["demo"]))
        >>> suggestion, suggestion.command
        ('To see why: htagraph stragglers demo', 'htagraph stragglers demo')
    """

    __slots__ = ("command", "said")

    said: str
    """The words before the command, without a colon."""
    command: str
    """The command."""

    def __new__(cls, said: str, command: str) -> Suggestion:
        """Return the sentence of the words and the command."""
        sentence = super().__new__(cls, f"{said}: {command}")
        sentence.said = said
        sentence.command = command
        return sentence

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override] # copies are made of both parts
        """Return the parts for a copy."""
        return self.said, self.command


def shares_text(shares: Mapping[int, float]) -> str:
    """Return ranks with their percent of something.

    Example:
        >>> shares_text({0: 40.2, 3: 30.0})
        'rank 0 (40 %) and rank 3 (30 %)'
    """
    return and_list(f"rank {rank} ({share:.0f} %)" for rank, share in shares.items())


def waits_text(slow: RankStragglers) -> str:
    """Return how long ranks wait for each other, and for which ranks most, as part of a sentence."""
    most = slow.ranks.iloc[int(slow.ranks["share_percent"].to_numpy().argmax())]
    who = shares_text(slow.mostly_charged or {int(most["rank"]): most["share_percent"]})
    part = "most of it" if slow.mostly_charged else "the largest part"
    return f"{time_text(slow.total_wait_us)} for each other (summed over ranks), {part} for {who}"


_UNBLAMED = {
    "recording": "recordings begin at different times", "clocks": "the clocks of the ranks were not compared",
}  # fmt: skip
"""Why no rank can be charged with waiting, by cause."""


def unblamed(slow: RankStragglers) -> dict[str, float]:
    """Return the waiting that no rank can be blamed for, by the reason in words, µs."""
    return {_UNBLAMED[cause]: us for cause, us in slow.nobody_us.items()}


def slower_rank(slow: RankStragglers) -> int | None:
    """Return the rank that is slower than its peers, if waiting for it may be a good part of all waiting."""
    ranks = slow.ranks[slow.ranks["slow"]]
    cost = ranks["slow_excess_us"] * ranks["slow_steps"] * (len(slow.ranks) - 1)  # to the others, if all wait for it
    return next(iter(ranks.loc[cost >= MIN_SHARE * slow.total_wait_us, "rank"].tolist()), None)


def why_nobody(slow: RankStragglers) -> str:
    """Return why no rank is the straggler though ranks wait, as part of a sentence."""
    most = slow.ranks.iloc[int(slow.ranks["share_percent"].to_numpy().argmax())]
    if slow.serves is not None:
        return f"rank {slow.serves} does work that no other rank does, and the others wait for its result"
    if slow.incomplete:
        return f"what the recording of {ranks_text(slow.incomplete)} lacks may be all that makes it look late"
    rank = slower_rank(slow)
    if rank is not None:
        excess = time_text(float(slow.ranks.loc[slow.ranks["rank"] == rank, "slow_excess_us"].iloc[0]))
        does = "costs too little, or is slow mostly in its transfers" if rank == most["rank"] else "explains too little"
        return f"rank {rank}, slower than its peers by {excess} a step, {does}"
    return _why_no_single(slow, most)


def _why_no_single(slow: RankStragglers, most: pd.Series) -> str:
    """Return why no rank is slower than its peers, given the row of the rank that most waiting is charged to."""
    if slow.slow_group:
        ranks, longer = ", ".join(in_runs([*slow.slow_group])), time_text(min(slow.slow_group.values()))
        return f"ranks {ranks} take at least {longer} longer for a step than all others"
    if slow.staged:
        return "ranks that send to each other, as the stages of a pipeline do, wait by design"
    if slow.few_steps:
        return f"from {plural(slow.steps, 'step')} nobody can tell whether a rank is slow or was late by chance"
    if most["step_excess_us"] != most["step_excess_us"]:
        return f"the steps of rank {most['rank']} cannot be compared, so that none can be called slow"
    last, every = int(most["late_count"]), int(slow.ranks["late_count"].sum())
    if min(most["share_percent"] / 100, last / max(every, 1)) < LIMITS.nearly_all:
        return "no single rank is slower than its peers beyond chance"
    by_transfers = most["cause"] == "network" or most["step_excess_us"] > SURE_ERRORS * most["step_error_us"]
    why = "its transfers end later" if by_transfers else "its own work takes no longer than that of its peers"
    return f"rank {most['rank']} comes last in {last} of {every} collectives, and {why}"
