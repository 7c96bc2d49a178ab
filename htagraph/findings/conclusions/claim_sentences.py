"""Claims → sentences: the only place that words a conclusion, for every command that states it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.gain_words import is_sure, less_text, likely, per_step
from htagraph.findings.conclusions.interruption_words import interrupted_sentence
from htagraph.findings.conclusions.warm_up_sentences import WHOLE, is_start_up
from htagraph.findings.phrases import (
    CATEGORY_WORDS,
    and_list,
    cause_words,
    command_line,
    distinct,
    group_words,
    name_text,
    plural,
    time_text,
)
from htagraph.queries.path_segments import HOST_CATEGORIES

__all__ = ["CAUSES", "MIN_WAITING_PERCENT", "MIN_WITHOUT_RANK_PERCENT", "claim_name", "sentences", "trial"]

_SHARED_LINKS = "Transfers that overlap share links here, so half of a change may gain more than all of it."
"""What is said beside gains where transfers share links."""

_MAX_LETTERS = 60
"""Letters of a name; chosen: half a line. Doubled, a kernel's name may fill one."""
_MAX_NAMED_RANKS = 8
"""Ranks that a sentence lists; chosen: half a line. Doubled, a line."""
_MIN_PERCENT = 2.0
"""Percent of the path; chosen: less is not worth naming. Doubled, 2 to 4 % are not named."""
MIN_WITHOUT_RANK_PERCENT = 5.0
"""Percent that a job must be shorter without the work of a rank for the path to be that rank's doing. Chosen as for
other shares; where ranks do the same work, it was 0 to 4 %, and with a straggler 9 % and more. Doubled, ranks that are
slower by 5 to 10 % are not told from the others."""
MIN_WAITING_PERCENT = 5.0
"""Percent of device time that only waits in collectives, from which it is named beside idle time; chosen as for that.
Doubled, 5 to 10 % are not named."""
_WHAT = {
    "kernel": "kernel ", "call": "the calls of ", "operator": "operator ", "function": "function ",
    "straggler": "the work of ", "phase": "",
}  # fmt: skip
CAUSES = {
    "kernels": "its kernels take longer", "host": "its host code takes longer",
    "data_loading": "its data loader takes longer", "launch": "its launch calls take longer",
    "sync": "its blocking calls take longer", "network": "its transfers take longer",
    "collective": "it is late from an earlier collective", "none": "its own work looks like theirs",
}  # fmt: skip
"""Why a rank is late, by the cause that is the largest part of it."""
_IDLE = {
    "host_wait": "From first to last device work, devices wait for the host {share} of the time{at}: {host}",
    "kernel_wait": (
        "From first to last device work, devices pause between queued kernels {share} of the time{at}: there are many "
        "small kernels. Fuse them (torch.compile) or replay them as a CUDA graph (htagraph idle)."
    ),
    "other": (
        "From first to last device work, devices are idle {share} of the time{at} for a reason other than a late "
        "launch: work that waited for an event, another stream or another rank, or whose launch was not recorded "
        "(htagraph idle)."
    ),
}
_HOST = {
    "loader": "it waits for the data loader before it launches (htagraph what-if --free-dataloader).",
    "ranks": "it waits for other ranks or for transfers before it launches (htagraph collectives).",
    "pauses": "a few long pauses of the host, not the number of launches, keep it from launching (htagraph idle).",
    "graphs": (
        "it launches CUDA graphs, each too late. A launch takes the longer the more kernels its graph has, and more so "
        "while they are recorded (htagraph launches)."
    ),
    "few": "it launches little work, each piece late (htagraph idle).",
    "launches": (
        "it launches many small pieces of work, each too late. Larger batches, fewer operators or CUDA graphs would "
        "reduce that, and torch.compile may (htagraph idle)."
    ),
}


_IN_HOST = CATEGORY_WORDS["host"], "operators, Python, other calls"
"""What a category is called, and what it is called as a part of the host's time."""


def sentences(claims: Iterable[Claim]) -> list[str]:
    """Return claims in words, in their order; neighbours of one kind that are lists share a sentence."""
    lines = []
    for says, group in groupby(claims, key=lambda claim: claim.says):
        every = list(group)
        lines += [_LISTS[says](every)] if says in _LISTS else [_ONE[says](claim) for claim in every]
    return lines


def claim_name(claim: Claim) -> str:
    """Return what a gain is about: the names of phases and ranks say it already."""
    if claim.facts["what"] == "group":
        group = group_words(claim.about)  # of communication whose group is not known, a kernel's name
        return f"transfers of {_short(group) if group == claim.about else group}"
    return f"{_WHAT[claim.facts['what']]}{_short(claim.about)}"


def trial(gains: Sequence[Claim], inputs: Sequence[str]) -> list[str]:
    """Return what half of the largest gain's time is worth, and the command that tries it.

    Args:
        gains: what gains most, the largest first.
        inputs: the words of the command line that choose what is read.
    """
    for claim in [each for each in gains if not is_start_up(each)][:1]:
        if claim.facts.get("interrupted"):  # that is to be tried first, and its sentence has the command
            return []
        steps = claim.facts["steps"]
        saved = f"{time_text(per_step(claim.facts['half_us'], steps))}{' per step' if steps > 1 else ''}"
        saves = "saves" if is_sure(claim) else "saves up to"
        half = f"Half the time of {claim_name(claim)} {saves} {saved}."
        if claim.facts["target"]:
            line = command_line("what-if", inputs, "--scale", f"{claim.facts['target']}:0.5")
            return [f"{half} To try it together with other changes: {line}"]
        return [half]
    return []


def _bound(claim: Claim) -> str:
    """Name what most of the critical path is, and the rank on which most of it lies."""
    shares, by_workers = claim.facts["shares"], claim.facts["by_workers"]
    own = HOST_CATEGORIES if claim.about == "host" else (claim.about,)
    parts = [(category, share) for category, share in shares.items() if category in own and share >= _MIN_PERCENT]
    others = [(category, share) for category, share in shares.items() if category not in own and share >= _MIN_PERCENT]
    text = f"Bound by {cause_words(claim.about, shares)}: {claim.figure:.0f} % of the critical path"
    text += f" ({_listed(parts).replace(*_IN_HOST)})" if len(parts) > 1 else ""
    text += _rank_of(
        claim.facts["ranks"], claim.facts.get("without_rank_percent", 100.0), several=claim.facts["several"]
    )
    also = f" Also on it: {_listed(others)}." if others else ""
    if claim.facts.get("absent"):
        or_waits = f"{CATEGORY_WORDS['communication']}, or waiting for ranks that were not {claim.facts['absent']}"
        text, also = (part.replace(CATEGORY_WORDS["communication"], or_waits) for part in (text, also))
    if by_workers:
        waited, batches = claim.facts["batches"]
        return (
            f"{text}. It waits for {waited:,} of {batches:,} batches.{also} That runs while the worker processes "
            "prepare the next batch: only a faster loader (more workers, cheaper samples) shortens the job (htagraph "
            "what-if --free-dataloader)."
        )
    return f"{text}.{also}{_NEXT.get(claim.about, '')}"


def _listed(shares: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{CATEGORY_WORDS[category]} {share:.0f} %" for category, share in shares)


_NEXT = {
    "communication": " See which ranks and groups transfer, and who is late (htagraph collectives).",
}
"""What to do next, by what bounds the job, where no other sentence says it."""


def _rank_of(ranks: Mapping[int, float], without_percent: float, *, several: bool) -> str:
    if not ranks:
        return ""
    rank, share = next(iter(ranks.items()))
    alone = share >= 100 - _MIN_PERCENT
    text = f"; {'the path' if alone else f'{share:.0f} % of the path'} is on rank {rank}"
    if several and without_percent < MIN_WITHOUT_RANK_PERCENT:
        less = f"{without_percent:.0f} %" if without_percent >= 1 else "less than 1 %"
        return f"{text}, but others are nearly as late: without all its work, the job would be {less} shorter"
    return text if several or rank or not alone else ""


def _interrupted(claim: Claim) -> str:
    return interrupted_sentence(claim, less_text(claim, "; htagraph what-if --no-interruptions"))


def _pauses(claims: Sequence[Claim]) -> str:
    parts, several = [], len({claim.facts["rank"] for claim in claims}) > 1
    for claim in claims:
        facts, us = claim.facts, claim.facts["total_us"]
        where = f" in {_short(facts['inside'])}" if facts["inside"] else ""
        what = _short(claim.about) if claim.about else f"untraced code{where}"
        beside = [f" {word} {_short(facts[word])}" for word in ("before", "after") if facts.get(word)]
        where = where if claim.about else beside[0] if beside else ""
        where += f" on rank {facts['rank']}" if several else ""
        times = f", {facts['count']:,} times" if facts["count"] > 1 else ""
        longest = f" (longest {time_text(facts['longest_us'])})" if facts["count"] > 1 else ""
        parts.append(f"{what}{where}{times}, {time_text(us)}{longest}, {claim.figure:.0f} %")
    return f"Largest on the host's part of the path: {'; '.join(parts)}."


def _gains(claims: Sequence[Claim]) -> str:
    parts, any_wide, steps = [], False, claims[0].facts["steps"]
    names = distinct([claim_name(claim) for claim in claims], [claim.about for claim in claims], _MAX_LETTERS)
    for claim, name in zip(claims, names, strict=True):
        spread = likely(claim)
        parts.append(f"{name}, {time_text(per_step(claim.figure, steps))} ({claim.facts['percent']:.0f} %{spread})")
        any_wide |= bool(spread)
    each = f" per step (of {steps:,})" if steps > 1 else ""
    inside = " (interruptions inside it counted)" if claims[0].facts.get("interrupted") else ""
    bounds = "" if any_wide else " No speedup of one of them alone saves more."
    if claims[0].facts.get("ceiling"):
        us, percent = claims[0].facts["ceiling"]
        bounds += f" All host code together: {time_text(per_step(us, steps))} at most ({percent:.0f} %)."
    if any(claim.facts["shared"] for claim in claims):
        bounds = f" {_SHARED_LINKS}"
    return (
        f"Largest gains{each}, each replayed as if it took no time{inside}: {'; '.join(parts)}.{bounds} See "
        "htagraph opportunities."
    )


def _blocking(claim: Claim) -> str:
    facts = claim.facts
    summed = ", summed over ranks" if facts["several"] else ""
    return (
        f"The host waits for its device in {_short(claim.about)} ({facts['count']:,} times, "
        f"{time_text(facts['blocked_us'])} in all{summed}). Without these waits "
        f"{less_text(claim, '; htagraph what-if ' + shlex.quote('--remove-sync=' + facts['target']))}."
    )


def _straggler(claim: Claim) -> str:
    cause, name = claim.facts["cause"], claim.facts["cause_name"]
    why = CAUSES.get(cause, cause)
    where = f", mainly in {_short(name)}" if name else ""
    return (
        f"Rank {claim.about} makes the others wait: it causes {claim.figure:.0f} % of the "
        f"{time_text(claim.facts['total_us'])} spent waiting in collectives (summed over ranks); {why}{where} "
        "(htagraph stragglers)."
    )


def _stage(claim: Claim) -> str:
    facts = claim.facts
    several = "s" if len(facts["ranks"]) > 1 else ""
    shown = facts["ranks"][:_MAX_NAMED_RANKS]
    names = and_list(map(str, shown)) + (" …" if len(shown) < len(facts["ranks"]) else "")
    least, most = time_text(facts["least_us"]), time_text(facts["most_us"])
    others = (
        f"{most} of the other{'s' if facts['others'] > 1 else ''}"
        if least == most
        else f"{least} to {most} of the others"
    )
    them = "Each of the others" if facts["others"] > 1 else "The other"
    waited = f" {them} waits {time_text(facts['waited_us'])} a step for it." if facts["waited_us"] else ""
    return (
        f"Of the stages of the pipeline{several}, that of rank{several} {names} works {time_text(facts['own_us'])} a "
        f"step against {others}.{waited} Stages do different work, so this is no straggler: give it less to do. With "
        f"equal stages {less_text(claim)}."
    )


def _waiting(claim: Claim) -> str:
    facts = claim.facts
    text = f"Ranks wait {time_text(claim.figure)} for each other in collectives (summed over ranks)"
    if facts["serves"] is not None:
        work = f" ({_short(facts['does'])})" if facts["does"] else ""
        return (
            f"{text}. Rank {facts['serves']} does work that no other rank does{work}, and the others wait for its "
            "result (htagraph stragglers)."
        )
    charged = [f"rank {rank} ({share:.0f} %)" for rank, share in facts["charged"].items()]
    text += f", most of it for {and_list(charged)}" if charged else ""
    if claim.about:
        why = f"rank {claim.about}, which is slower than its peers, does not explain most of it"
    elif charged and facts["few_steps"]:
        they = "they are slow or were" if len(charged) > 1 else "it is slow or was"
        why = f"from {plural(facts['steps'], 'step')} nobody can tell whether {they} late by chance"
    elif not facts["compared"]:
        why = "their steps cannot be compared, so nothing shows which rank is slow"
    else:
        why = "no single rank is slower than its peers beyond chance"
    return f"{text}, but {why} (htagraph stragglers)."


def _idle(claim: Claim) -> str:
    facts = claim.facts
    at = f" (rank {facts['rank']}: {facts['rank_percent']:.0f} %)" if facts["several"] else ""
    text = _IDLE[claim.about].format(share=f"{claim.figure:.0f} %", at=at, host=_HOST.get(facts["host"], ""))
    waits = facts.get("in_collectives_percent", 0.0)
    if claim.about != "host_wait" or waits < MIN_WAITING_PERCENT:
        return text
    return (
        f"{text} Another {waits:.0f} % of the time their collective kernels, which look busy, only wait for ranks that "
        "are late (htagraph collectives)."
    )


def _short_launches(claim: Claim) -> str:
    return (
        f"{claim.figure:.0f} % of {claim.facts['total']:,} launches take longer than the work they start: the kernels "
        "are too small for the device (htagraph launches)."
    )


def _unexplained(claim: Claim) -> str:
    kind = claim.facts["mostly"].replace("_", " ")
    return (
        f"Unexplained pauses make up {claim.figure:.0f} % of the critical path (mostly {kind}): predictions are less "
        "certain by that much (htagraph critical-path --segments)."
    )


def _partly(claim: Claim) -> str:
    return (
        f"From first to last device work, {claim.figure:.0f} % of the recorded time passes; in the rest only the host "
        "was active, and shares of device time say nothing about it."
    )


def _recorded(claim: Claim) -> str:
    stacks = " Python stacks, which were recorded here, cost most." if claim.facts["stacks"] else ""
    return (
        "Part of the host's time is the profiler's own, and a recording does not show how much: jobs that their host "
        "bounds took 1.2 to 1.6 times as long recorded as unrecorded on an H100. Without a profiler, steps are shorter "
        f"and gains in host code smaller.{stacks}"
    )


def _clocks(claim: Claim) -> str:
    ranks, total = claim.facts["ranks"], claim.facts["total"]
    others = "each other" if len(ranks) == total else "the others"
    return (
        f"The clock{'' if len(ranks) == 1 else 's'} of {plural(len(ranks), 'rank')} ({and_list(map(str, ranks))}) "
        f"cannot be compared with {others}: how long ranks wait for each other, and their shares, are uncertain."
    )


def _unmatched(claim: Claim) -> str:
    return (
        f"{claim.figure:,.0f} of {claim.facts['total']:,} communication calls have no known partner: waiting for other "
        "ranks inside them looks like transfer (htagraph validate)."
    )


def _alone(claim: Claim) -> str:
    return (
        f"Only rank {claim.about} of {claim.figure:.0f} was read, so waiting for the others looks like communication. "
        "Read all ranks to tell them apart."
    )


def _missing(claim: Claim) -> str:
    missing = claim.facts["missing"]
    names = f" (not {and_list(map(str, missing))})" if len(missing) <= _MAX_NAMED_RANKS else ""
    return (
        f"{claim.facts['read']:,} of {claim.figure:,.0f} ranks were read{names}: waiting for one that was not read "
        "looks like transfer, and nothing names it as late. Read all ranks to tell them apart."
    )


def _nothing(claim: Claim) -> str:
    del claim
    return "No work was recorded on any rank. Was the profiler active during a step?"


def _short(name: str) -> str:
    return name_text(name, _MAX_LETTERS)


_ONE: dict[Says, Callable[[Claim], str]] = {
    Says.NOTHING_RECORDED: _nothing, Says.BOUND: _bound, Says.INTERRUPTED: _interrupted,
    Says.STRAGGLER: _straggler, Says.WAITING: _waiting,
    Says.BLOCKING: _blocking, Says.SLOW_STAGE: _stage,
    Says.DEVICE_IDLE: _idle, Says.SHORT_LAUNCHES: _short_launches, Says.UNEXPLAINED: _unexplained,
    Says.PARTLY_DEVICE: _partly, Says.RECORDED: _recorded, Says.UNKNOWN_CLOCKS: _clocks,
    Says.UNMATCHED: _unmatched, Says.ONE_RANK: _alone,
    Says.RANKS_MISSING: _missing, **WHOLE,
}  # fmt: skip
_LISTS: dict[Says, Callable[[Sequence[Claim]], str]] = {Says.HOST_PAUSE: _pauses, Says.GAIN: _gains}
