"""Claims → findings: the same conclusions as `claim_sentences`, each in a line or two, and what to try first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.claim_sentences import (
    CAUSES,
    MIN_WAITING_PERCENT,
    MIN_WITHOUT_RANK_PERCENT,
    claim_name,
)
from htagraph.findings.conclusions.gain_words import is_sure, less_text, likely, per_step
from htagraph.findings.conclusions.interruption_words import interrupted_finding
from htagraph.findings.conclusions.warm_up_sentences import IN_A_CLAUSE, WHOLE, is_start_up
from htagraph.findings.phrases import (
    CATEGORY_WORDS,
    and_list,
    cause_words,
    command_line,
    name_text,
    plural,
    shortened,
    time_text,
)
from htagraph.queries.path_segments import HOST_CATEGORIES

__all__ = ["CAUTIONS", "Trial", "findings", "trial_of"]

_MAX_FINDINGS = 5
"""Findings of a summary, with what makes them uncertain as one. Chosen: about ten lines, which are read before the
tables. Doubled, a screen is full of them."""
_MAX_LETTERS = 32
"""Letters of a name in a finding; chosen: less than half a line. Doubled, names fill lines of their own."""
_MIN_PERCENT = 2.0
"""Percent of the path; chosen: less is not worth naming. Doubled, 2 to 4 % are not named."""
_NAMED = 2
"""Parts of a list that a finding names: pauses of the host, and gains. Chosen: they fit on two lines. Doubled, four
lines."""
_MAX_RANKS = 4
"""Ranks that a finding lists. Chosen: a few letters. Doubled, half a line."""
_LEAST = (Says.SHORT_LAUNCHES, Says.BLOCKING, Says.DEVICE_IDLE, Says.HOST_PAUSE)
"""What is left to the whole verdict first, where there are more findings than a summary has room for."""


@dataclass(frozen=True)
class Trial:
    """What to try first: a prediction that is a claim already, and the command that makes it again."""

    sentence: str
    command: str


def findings(claims: Iterable[Claim]) -> tuple[list[str], int]:
    """Return (what a job's claims say, in a line or two each; how many more the whole verdict has).

    Args:
        claims: of a summary, in their order.

    Example:
        >>> findings([Claim(Says.ONE_RANK, "3", 8, "count")])
        (['Caution: only rank 3 of 8 was read, so waiting for the others looks like communication.'], 0)
    """
    every = [(says, list(group)) for says, group in groupby(claims, key=lambda claim: claim.says)]
    doubts = [claim for says, group in every if says in CAUTIONS for claim in group]
    said = [(says, group) for says, group in every if says not in CAUTIONS]
    room = _MAX_FINDINGS - bool(doubts)
    lines = [(says, line) for says, group in said for line in _lines(says, group)]
    more = max(0, len(lines) - room)
    for _ in range(more):
        least = next((says for says in _LEAST if says in [each for each, _ in lines]), lines[-1][0])
        del lines[max(i for i, (says, _) in enumerate(lines) if says is least)]
    return [line for _, line in lines] + _cautions(doubts), more


def trial_of(claims: Sequence[Claim], inputs: Sequence[str]) -> Trial | None:
    """Return the change with the largest gain among those that can be made as predicted; None if no claim has one.

    A name's time can be halved, not made zero; a straggler can be as fast as its peers, a wait or a late batch can be
    gone.

    Args:
        claims: of a summary.
        inputs: the words of the command line that choose what is read.
    """
    best: tuple[float, Trial] | None = None
    for claim in claims:
        found = _TRIALS[claim.says](claim, inputs) if claim.says in _TRIALS else None
        if found and found[0] > 0 and (best is None or found[0] > best[0]):
            best = found
    return best[1] if best else None


def _lines(says: Says, group: list[Claim]) -> list[str]:
    return [_LISTS[says](group)] if says in _LISTS else [_ONE[says](claim) for claim in group]


def _cautions(claims: Sequence[Claim]) -> list[str]:
    if not claims:
        return []
    return [f"Caution: {'; '.join(_DOUBTS[claim.says](claim) for claim in claims)}."]


def _short(name: str) -> str:
    return name_text(name, _MAX_LETTERS)


def _per_step(steps: int) -> str:
    return " per step" if steps > 1 else ""


def _bound(claim: Claim) -> str:
    shares: Mapping[str, float] = claim.facts["shares"]
    own = HOST_CATEGORIES if claim.about == "host" else (claim.about,)
    others = [
        f"{_CATEGORIES.get(category, CATEGORY_WORDS[category])} {share:.0f} %"
        for category, share in shares.items()
        if category not in own and share >= _MIN_PERCENT
    ]
    word = _CATEGORIES.get(claim.about, "") if claim.about == "host" else ""
    text = f"Bound by {word or cause_words(claim.about, shares)}: {claim.figure:.0f} % of the critical path"
    text += _rank_of(
        claim.facts["ranks"], claim.facts.get("without_rank_percent", 100.0), several=claim.facts["several"]
    )
    text += f"; then {', '.join(others[:_NAMED])}" if others else ""
    if claim.facts.get("absent"):
        words = CATEGORY_WORDS["communication"]
        text = text.replace(words, f"{words}, or waiting for ranks not {claim.facts['absent']}")
    if claim.facts["by_workers"]:
        waited, batches = claim.facts["batches"]
        text += f". It waits for {waited:,} of {batches:,} batches: only a faster loader helps"
    return f"{text}."


_CATEGORIES = {"host": "host code", "head": "time before its first activity"}
"""Categories that have a shorter name in a finding."""


def _rank_of(ranks: Mapping[int, float], without_percent: float, *, several: bool) -> str:
    if not ranks or not several:
        return ""
    if without_percent < MIN_WITHOUT_RANK_PERCENT:
        return " (other ranks' paths are nearly as long)"
    rank, share = next(iter(ranks.items()))
    return f", on rank {rank}" if share >= 100 - _MIN_PERCENT else f", {share:.0f} % of which is on rank {rank}"


def _interrupted(claim: Claim) -> str:
    return interrupted_finding(claim, less_text(claim))


def _pauses(claims: Sequence[Claim]) -> str:
    parts = []
    for claim in claims[:_NAMED]:
        facts = claim.facts
        what = _short(claim.about) if claim.about else "untraced code"
        where = f" in {_short(facts['inside'])}" if facts["inside"] else ""
        times = f" {facts['count']:,} times" if facts["count"] > 1 else ""
        parts.append(f"{what}{where}{times}, {time_text(facts['total_us'])} ({claim.figure:.0f} %)")
    return f"Most host time on it: {'; '.join(parts)}."


def _gains(claims: Sequence[Claim]) -> str:
    steps, parts = claims[0].facts["steps"], []
    ceiling = claims[0].facts.get("ceiling")
    for claim in claims[: _NAMED - bool(ceiling)]:
        saved = f"{time_text(per_step(claim.figure, steps))} ({claim.facts['percent']:.0f} %{likely(claim)})"
        parts.append(f"{shortened(claim_name(claim), _MAX_LETTERS)}, {saved}")
    inside = " (interruptions inside it counted)" if claims[0].facts.get("interrupted") else ""
    if ceiling:
        parts.append(f"all host code, at most {time_text(per_step(ceiling[0], steps))} ({ceiling[1]:.0f} %)")
    return f"Largest gains{_per_step(steps)}, were it to take no time{inside}: {'; '.join(parts)}."


def _blocking(claim: Claim) -> str:
    return (
        f"The host waits for its device in {_short(claim.about)} ({claim.facts['count']:,} times). Without these waits "
        f"{less_text(claim)}."
    )


def _straggler(claim: Claim) -> str:
    cause, name = claim.facts["cause"], claim.facts["cause_name"]
    where = f", mainly {_short(name)}" if name else ""
    return (
        f"Rank {claim.about} makes the others wait: {claim.figure:.0f} % of {time_text(claim.facts['total_us'])} in "
        f"collectives (over all ranks); {CAUSES.get(cause, cause)}{where}."
    )


def _stage(claim: Claim) -> str:
    facts = claim.facts
    ranks, least, most = facts["ranks"], time_text(facts["least_us"]), time_text(facts["most_us"])
    saved = f"{time_text(per_step(claim.figure, facts['steps']))}{_per_step(facts['steps'])}"
    others = f"{most}" if least == most else f"{least} to {most}"
    return (
        f"The pipeline stage{'s' if len(ranks) > 1 else ''} of rank{_ranks(ranks)} work"
        f"{'' if len(ranks) > 1 else 's'} {time_text(facts['own_us'])} a step, the other"
        f"{'s' if facts['others'] > 1 else ''} {others}. Equal stages "
        f"would save {saved} ({facts['percent']:.0f} %{likely(claim)})."
    )


def _ranks(ranks: Sequence[int]) -> str:
    shown = ranks[:_MAX_RANKS]
    more = f" and {len(ranks) - len(shown)} more" if len(shown) < len(ranks) else ""
    return f"{'s' if len(ranks) > 1 else ''} {', '.join(map(str, shown)) if more else and_list(map(str, shown))}{more}"


def _waiting(claim: Claim) -> str:
    facts = claim.facts
    text = f"Ranks wait {time_text(claim.figure)} in all for each other in collectives"
    if facts["serves"] is not None:
        return f"{text}: rank {facts['serves']} does work that no other does, and they wait for its result."
    charged = [f"rank {rank} ({share:.0f} %)" for rank, share in facts["charged"].items()]
    text += f", mostly for {and_list(charged)}" if charged else ""
    if claim.about:
        return f"{text}; rank {claim.about}, slower than its peers, does not explain most of it."
    if charged and facts["few_steps"]:
        they = "they are" if len(charged) > 1 else "it is"
        return f"{text}; {plural(facts['steps'], 'step')} cannot show if {they} slow or late by chance."
    if not facts["compared"]:
        return f"{text}; their steps cannot be compared, so nothing shows which rank is slow."
    return f"{text}; no single rank is slower than its peers beyond chance."


def _idle(claim: Claim) -> str:
    facts = claim.facts
    at = f" (rank {facts['rank']}: {facts['rank_percent']:.0f} %)" if facts["several"] else ""
    share, waits = f"{claim.figure:.0f} %", facts.get("in_collectives_percent", 0.0)
    if claim.about != "host_wait":
        return f"{_IDLE[claim.about].format(share=share, at=at)}."
    text = f"devices wait for the host {share} of the time{at}"
    if waits >= MIN_WAITING_PERCENT:  # in kernels that spin, so that the device looks busy
        text = f"devices wait {waits:.0f} % in collectives for late ranks and {share} for the host{at}"
    return f"From first to last device work, {text}{_HOST.get(facts['host'], '')}."


_IDLE = {
    "kernel_wait": "From first to last device work, devices pause {share} of the time{at} between many small kernels",
    "other": (
        "From first to last device work, devices are idle {share} of the time{at}, but not for a late launch: work "
        "waited for an event, a stream or a rank, or its launch was not recorded"
    ),
}
_HOST = {
    "loader": ", which waits for the data loader",
    "ranks": ", which waits for other ranks or transfers",
    "pauses": ": a few long pauses of the host, not many launches",
    "graphs": ", which launches CUDA graphs, each too late",
    "few": ", which launches little work, each piece late",
    "launches": ", which launches many small pieces of work, each too late",
}


def _short_launches(claim: Claim) -> str:
    return (
        f"{claim.figure:.0f} % of {claim.facts['total']:,} launches take longer than the work they start: the kernels "
        "are too small for the device."
    )


def _nothing(claim: Claim) -> str:
    del claim
    return "No work was recorded on any rank. Was the profiler active during a step?"


def _clocks(claim: Claim) -> str:
    ranks = claim.facts["ranks"]
    return f"the clock{'s' if len(ranks) > 1 else ''} of rank{_ranks(ranks)} cannot be compared, so waits are uncertain"


def _missing(claim: Claim) -> str:
    return f"{claim.facts['read']:,} of {claim.figure:,.0f} ranks were read, so waiting for others looks like transfer"


_DOUBTS: dict[Says, Callable[[Claim], str]] = {
    **IN_A_CLAUSE,
    Says.PARTLY_DEVICE: lambda claim: (
        f"device work spans {claim.figure:.0f} % of the recording, and idle times leave out the rest"
    ),
    Says.RECORDED: lambda claim: (
        f"recording slows host code{', most with Python stacks' if claim.facts['stacks'] else ''}: without a profiler, "
        "steps are shorter and gains smaller"
    ),
    Says.UNKNOWN_CLOCKS: _clocks,
    Says.UNMATCHED: lambda claim: (
        f"{claim.figure:,.0f} of {claim.facts['total']:,} communication calls have no known partner, so waiting in "
        "them looks like transfer"
    ),
    Says.ONE_RANK: lambda claim: (
        f"only rank {claim.about} of {claim.figure:.0f} was read, so waiting for the others looks like communication"
    ),
    Says.RANKS_MISSING: _missing,
    Says.UNEXPLAINED: lambda claim: (
        f"{claim.figure:.0f} % of the critical path is unexplained, and predictions are less certain by that much"
    ),
}
CAUTIONS = frozenset(_DOUBTS)
"""What makes the other findings uncertain."""
_ONE: dict[Says, Callable[[Claim], str]] = {
    Says.NOTHING_RECORDED: _nothing, Says.BOUND: _bound, Says.INTERRUPTED: _interrupted,
    Says.STRAGGLER: _straggler, Says.WAITING: _waiting,
    Says.BLOCKING: _blocking, Says.SLOW_STAGE: _stage, Says.DEVICE_IDLE: _idle, Says.SHORT_LAUNCHES: _short_launches,
    Says.START_UP: WHOLE[Says.START_UP],
}  # fmt: skip
_LISTS: dict[Says, Callable[[Sequence[Claim]], str]] = {Says.HOST_PAUSE: _pauses, Says.GAIN: _gains}


def _saves(claim: Claim, us: float) -> str:
    """Return what a change saves, per step where there are several."""
    steps = claim.facts["steps"]
    return f"saves {'' if is_sure(claim) else 'up to '}{time_text(per_step(us, steps))}{_per_step(steps)}"


def _try_gain(claim: Claim, inputs: Sequence[str]) -> tuple[float, Trial] | None:
    facts = claim.facts
    name = shortened(claim_name(claim), _MAX_LETTERS)
    if is_start_up(claim):
        return None
    if facts["what"] == "straggler":
        saved = _saves(claim, claim.figure)
        line = command_line("what-if", inputs, "--fix-straggler", "auto")
        return claim.figure, Trial(f"The straggler as fast as its peers {saved}.", line)
    if facts["loader"]:
        return _try_scaled(claim, inputs, "A data loader twice as fast") if facts["target"] else None
    return _try_scaled(claim, inputs, f"Half the time of {name}") if facts["target"] else None


def _try_scaled(claim: Claim, inputs: Sequence[str], text: str) -> tuple[float, Trial]:
    half = claim.facts["half_us"]
    line = command_line("what-if", inputs, "--scale", f"{claim.facts['target']}:0.5")
    return half, Trial(f"{text} {_saves(claim, half)}.", line)


def _try_blocking(claim: Claim, inputs: Sequence[str]) -> tuple[float, Trial]:
    line = command_line("what-if", inputs, f"--remove-sync={claim.facts['target']}")
    saved = _saves(claim, claim.figure)
    return claim.figure, Trial(f"No waiting for the device in {_short(claim.about)} {saved}.", line)


def _try_stage(claim: Claim, inputs: Sequence[str]) -> tuple[float, Trial] | None:
    if len(claim.facts["options"]) > _MAX_RANKS:
        return None
    options = [word for each in claim.facts["options"] for word in ("--scale", each)]
    sentence = f"Equal work in all stages {_saves(claim, claim.figure)}."
    return claim.figure, Trial(sentence, command_line("what-if", inputs, *options))


def _try_without_interruptions(claim: Claim, inputs: Sequence[str]) -> tuple[float, Trial]:
    line = command_line("what-if", inputs, "--no-interruptions")
    saved = _saves(claim, claim.figure)
    return claim.figure, Trial(f"Host code that nothing interrupts {saved}.", line)


_TRIALS: dict[Says, Callable[[Claim, Sequence[str]], tuple[float, Trial] | None]] = {
    Says.GAIN: _try_gain, Says.INTERRUPTED: _try_without_interruptions, Says.BLOCKING: _try_blocking,
    Says.SLOW_STAGE: _try_stage,
}  # fmt: skip
