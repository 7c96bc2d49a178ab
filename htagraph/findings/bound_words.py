"""The sentences of `htagraph.findings.bound`: the cause that has most of the critical path, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from htagraph.core.statistics import MOST
from htagraph.findings.ceilings import overlap_text
from htagraph.findings.change import likely, per_step
from htagraph.findings.finding import in_short
from htagraph.findings.limits import LARGE_SHARE, MIN_PERCENT, MIN_SHARE, SHORT_LIST, VISIBLE_PERCENT
from htagraph.findings.phrases import (
    CATEGORY_WORDS,
    THE_HOST,
    Advice,
    cause_words,
    causes_words,
    share_text,
    spoken,
    steps_text,
    time_text,
    transfers_words,
)
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.path_segments import HOST_CATEGORIES, Batches

if TYPE_CHECKING:
    from htagraph.findings.bound import BoundClaim, KernelShare

__all__ = [
    "LOADER_ADVICE",
    "bound_advice",
    "bound_reason",
    "bound_sentence",
    "bound_text",
    "bound_verb",
    "categories_of",
    "is_mostly_unrecorded",
    "loader_advice",
]

LOADER_ADVICE = "Use more loader workers (num_workers) or cheaper samples."
"""The advice where the job waits for its data loader."""
_QUEUE_ADVICE = "Use more loader workers (num_workers), a larger prefetch_factor or cheaper samples."
"""The advice where the job waits for some batches of its data loader, and not for all."""
_ADVICE: Mapping[str, str] = {
    "communication": "Send less, or overlap more of the transfers (htagraph collectives).",
    "memory": "Copy less, or on a stream of its own while the device computes.",
    "other_work": Advice(
        "Check what else runs on the device (nvidia-smi), or record it: work that this recording does not show, of "
        "another process or an unrecorded stream, probably had the device.",
        "A faster host gains nothing there.",
    ),
}
"""The advice for a cause that needs no other facts of the job."""
_WITHOUT = {
    "host": "with a free CPU",
    "communication": "without them",
    "memory": "without them",
    "allocator": "without them",
}
"""The job without its cause, in words, by cause; every other cause is an "it"."""


def loader_advice(batches: Batches) -> str:
    """Return the advice for a loader: a queue helps where workers are waited for in some batches, but not in all.

    Example:
        >>> loader_advice(Batches(3, 10))
        'Use more loader workers (num_workers), a larger prefetch_factor or cheaper samples.'
        >>> loader_advice(Batches(10, 10)) == loader_advice(Batches(0, 0)) == LOADER_ADVICE
        True
    """
    is_uneven = 0 < batches.waited < LIMITS.nearly_all * batches.total
    return _QUEUE_ADVICE if is_uneven else LOADER_ADVICE


def bound_sentence(claim: BoundClaim) -> str:
    """Return the bound of a job at length."""
    batches = claim.batches
    waits = f" It waits for {batches.waited:,} of {batches.total:,} batches: only a faster loader helps."
    pace = " What it waits for sets the pace." if claim.source and claim.about == "outside" else ""
    return f"{bound_text(claim)}.{waits * claim.by_workers}{_late(claim)}{pace}"


def bound_text(claim: BoundClaim) -> str:
    """Return the bound of a job, the gain without the cause, and the next cause: a sentence without a full stop."""
    said = [category for cause in _leaders(claim) for category in categories_of(cause)]
    said += [] if claim.late is None else ["head"]  # which has a sentence
    left = [(category, share) for category, share in claim.shares.items() if category not in said]
    shares = [(category, share) for category, share in left if share >= MIN_PERCENT]
    next_causes = [f"{_called(claim, category)} {share:.0f} %" for category, share in shares]
    text = f"{_bound_by(claim)}{_rank_in_short(claim)}"
    silence = _in_silence(claim)
    text += "" if claim.silent else silence
    free = _free(claim) if claim.largest is None else claim.largest  # of nothing but host code, no gain is news
    then = f"; then {', '.join(next_causes[: 1 if free else SHORT_LIST])}" if next_causes else ""
    return (
        text
        + free
        + (silence if claim.silent else "")
        + _gains_more(claim)
        + ((_larger(claim, *shares[0]) if free and shares else "") or then)
    )


def _leaders(claim: BoundClaim) -> tuple[str, ...]:
    """Return the cause, or several causes without a leader; a cause with unrecorded time stands alone."""
    is_single = claim.silent is not None or is_mostly_unrecorded(claim) or claim.about not in claim.leaders
    return (claim.about,) if is_single else claim.leaders


def _bound_by(claim: BoundClaim, *, in_full: bool = True) -> str:
    """Return the start of a sentence: the part of the job, and its bound, with shares.

    A cause with less than half of the path is a part of the bound, and of causes with about the same share none is the
    bound.

    Args:
        claim: the claim.
        in_full: whether usual steps are named by number, and the host by the rows of tables that are its share.
    """
    leaders = _leaders(claim)
    rows = _rows_of_host(claim) if in_full else ""
    if is_mostly_unrecorded(claim) and not claim.silent and not in_full:
        said = f"{bound_verb(claim.figure)} host time, most of it without any event: {share_text(claim.figure)}"
    elif len(leaders) > 1:
        shares = {_called(claim, cause): _share_of(claim, cause) for cause in leaders}
        said = f"no single bound: {causes_words(shares)}"
    else:
        said = f"{bound_verb(claim.figure)} {_cause_and_share(claim)}"
    return _begun(claim, f"{said}{rows} of {_path(claim)}", in_full=in_full)


def _share_of(claim: BoundClaim, cause: str) -> float:
    """Return the share of a cause in the path, percent."""
    return sum(claim.shares.get(category, 0.0) for category in categories_of(cause))


def _begun(claim: BoundClaim, said: str, *, in_full: bool) -> str:
    """Return a sentence that begins with the part of the recording that it is about."""
    begin = _apart(claim)
    if claim.usual:
        begin = steps_text(claim.usual) if in_full else "In the usual steps"
    return f"{begin}, {said}" if begin else said[0].upper() + said[1:]


def bound_verb(percent: float) -> str:
    """Return how a job is bound by a cause with a share of the path.

    Example:
        >>> bound_verb(80.0), bound_verb(40.0)
        ('bound by', 'bound in part by')
    """
    return "bound by" if percent >= 100 * MOST else "bound in part by"


def _rows_of_host(claim: BoundClaim) -> str:
    """Return the rows of tables that the share of the host is the sum of, where its name does not say these."""
    if "host" not in _leaders(claim) or _called(claim, "host") != THE_HOST or is_mostly_unrecorded(claim):
        return ""
    shares = {CATEGORY_WORDS[category]: claim.shares.get(category, 0.0) for category in HOST_CATEGORIES}
    rows = [f"{words} {share_text(share)}" for words, share in shares.items() if share >= VISIBLE_PERCENT / 2]
    return f" ({', '.join(rows)})"


def _gains_more(claim: BoundClaim) -> str:
    """Say which other cause gains more than the one with most of the path; empty for none."""
    if claim.gain is None or claim.largest is not None or claim.by_workers or is_mostly_unrecorded(claim):
        return ""
    gains_ns = {cause: ns for cause, ns in claim.free_ns.items() if cause == claim.about or cause in claim.shares}
    best = max(gains_ns, key=lambda cause: gains_ns[cause], default=claim.about)
    if best == claim.about or (1 - MIN_SHARE) * gains_ns[best] <= gains_ns.get(claim.about, 0):
        return ""
    without = _WITHOUT["host"] if best == "host" else f"without {_called(claim, best)}"
    return f", {without} {time_text(per_step(gains_ns[best] / 1000, claim.gain.steps))}"


def _cause_and_share(claim: BoundClaim) -> str:
    """Return the cause in words and its share; time in a region without any record is no host code."""
    silent = claim.silent if claim.about == "host" else None
    if silent and silent.percent > MOST * claim.figure:
        return f"what {silent.name} does or waits for, of which nothing is recorded: {share_text(silent.percent)}"
    without = silent.percent if silent else _eventless_on_cpu(claim)
    share = share_text(claim.figure - without)
    word = "host time" if is_mostly_unrecorded(claim) and not silent else _called(claim, claim.about)
    return f"{word}: {share}"


def _eventless_on_cpu(claim: BoundClaim) -> float:
    """Return the share of the path, percent, in which no operator of a job without a device runs; 0 for little.

    Such time is no computation. Where a device works, it is host time like any other, and is told behind the share.
    """
    is_told = claim.is_on_cpu and claim.about == "host" and not claim.silent and not is_mostly_unrecorded(claim)
    is_worth = claim.unrecorded_percent >= 100 * MIN_SHARE
    return claim.unrecorded_percent if is_told and is_worth else 0.0


def _in_silence(claim: BoundClaim) -> str:
    """Return how much of the path is host time without any record, behind its cause; empty for little."""
    silent = claim.silent
    if claim.about != "host":
        return ""
    if silent and silent.percent > MOST * claim.figure:
        return f"; host code is {share_text(claim.figure - silent.percent)}"
    if silent:
        return f"; {share_text(silent.percent)} is in {silent.name}, of which nothing is recorded (code, or a wait)"
    share = share_text(claim.unrecorded_percent)
    if is_mostly_unrecorded(claim):
        return f", {share} without any event, so what ran then is not known"
    return f", {share} without any event (code, or a wait)" if claim.unrecorded_percent >= 100 * LARGE_SHARE else ""


def _called(claim: BoundClaim, category: str) -> str:
    """Return a category in words: a wait for no data loader, or for ranks that are unknown, has a name of its own."""
    if category == "outside" and claim.source:
        return f"{CATEGORY_WORDS[category]} in {claim.source}"
    if category == "communication" and claim.absent:
        return transfers_words(claim.absent)
    if category != claim.about and category not in claim.leaders:
        return CATEGORY_WORDS[category]
    return cause_words(category, claim.shares, is_on_cpu=claim.is_on_cpu)


def bound_reason(claim: BoundClaim) -> str:
    """Return the cause that bounds the job, with its share of the critical path."""
    if claim.by_workers:
        return f"The job waits for {claim.batches.waited:,} of {claim.batches.total:,} batches of its data loader."
    on_rank = ""
    if claim.has_several_ranks and claim.rank_shares:
        rank, percent = next(iter(claim.rank_shares.items()))
        on_rank = f", on rank {rank}" if percent >= 100 - MIN_PERCENT else ""
    kernel = claim.first_kernel
    largest = f"; {_largest_is(kernel)}" if kernel else (claim.largest or "") * claim.is_on_cpu
    silence = _in_silence(claim) if claim.silent else ""
    eventless = _eventless_on_cpu(claim)
    rest = f"; in {share_text(eventless)}, no event is recorded" if eventless else ""
    return f"{_bound_by(claim, in_full=False)}{on_rank}{silence}{largest}{rest}."


def _largest_is(kernel: KernelShare) -> str:
    """Return which kernel has most of the path; a CUDA graph is no kernel."""
    if kernel.is_graph:
        return f"the largest part is {in_short(kernel.name)}, recorded as a whole"
    if kernel.variants > 1:
        return f"the largest family of kernels is {in_short(kernel.name)} ({kernel.variants} variants)"
    return f"the largest kernel is {in_short(kernel.name)}"


def _larger(claim: BoundClaim, category: str, share: float) -> str:
    """Say of a category why it is not the cause, if it takes more of the path; else empty."""
    if category not in claim.free_ns or share <= claim.figure:
        return ""
    steps = claim.gain.steps if claim.gain else 0
    less = time_text(per_step(claim.free_ns[category] / 1000, steps))
    return f"; {_called(claim, category)} {share:.0f} %, but without that only {less} less"


def _apart(claim: BoundClaim) -> str:
    """Return the part of the path without a share, as the start of a sentence; empty for the whole path."""
    if claim.is_started:
        return "Apart from start-up"
    return "Apart from earlier work" if claim.late and not claim.has_several_ranks else ""


def _path(claim: BoundClaim) -> str:
    """Return the path of all shares in words: the whole path, as in tables of categories, or the rest of the path."""
    is_part = not claim.usual and _apart(claim)
    return "the rest of the critical path" if is_part else "the critical path"


def is_mostly_unrecorded(claim: BoundClaim) -> bool:
    """Return whether the host bounds the job, but mostly in time without any event."""
    return claim.about == "host" and claim.unrecorded_percent > 100 * MOST


def bound_advice(claim: BoundClaim) -> str:
    """Return the advice on the bound of a job; empty for nothing."""
    if is_mostly_unrecorded(claim):
        return claim.recorder.to_see("modules", "what the host does")
    if claim.about == "data_loading":
        return loader_advice(claim.batches)
    if claim.about == "outside":
        return f"Make what {claim.source or 'the job'} waits for faster, or run more of them."
    if claim.about == "computation":
        return _advice_on_computation(claim)
    advised = "" if claim.is_beside else _ADVICE.get(claim.about, "")
    is_of_transfers = claim.about == "communication" and advised
    if is_of_transfers and claim.gain and claim.overlap_us is not None:
        advised = Advice(*spoken(advised, overlap_text(claim.gain, claim.overlap_us)))
    return "Load all ranks, to split waiting from transfer." if advised and claim.absent else advised


def _advice_on_computation(claim: BoundClaim) -> str:
    """Return where to begin where computation bounds the job."""
    kernel = claim.first_kernel
    path = "this rest" if _path(claim) != "the critical path" else "the path"
    if kernel and kernel.is_tuned:
        less = f"Give {in_short(kernel.name)} less work: it multiplies in low precision already."
        roof = "See how near its peaks the device is (htagraph roofline)."
        return Advice(less, roof) if claim.has_roofs else less
    if kernel and kernel.is_graph:  # what is inside was not recorded
        return ""
    near = ", and how near its peaks (htagraph roofline)" if claim.has_roofs else ""
    look = f"See what takes the device's time (htagraph kernels){near}."
    if kernel:
        together = f" ({kernel.variants} variants together)" if kernel.variants > 1 else ""
        return Advice(f"Begin with {in_short(kernel.name)}{together}, {share_text(kernel.percent)} of {path}.", look)
    return look


def _late(claim: BoundClaim) -> str:
    """Return which recording begins late, where the path waits for that, or that it waits for earlier work."""
    late = claim.late
    if late is None or late.percent < MIN_PERCENT:
        return ""
    if not claim.has_several_ranks:
        return f" The path begins {time_text(late.us)} after the recording, behind work begun earlier."
    return f" Rank {late.rank}'s recording begins {time_text(late.us)} late ({late.percent:.0f} %)."


def _free(claim: BoundClaim) -> str:
    """Return how much less time the job would take without its cause; empty where that is unknown."""
    gain = claim.gain
    if gain is None or claim.by_workers or is_mostly_unrecorded(claim):
        return ""
    who = "a step" if gain.scope == "step" else "the job"
    interval = likely(gain) if claim.about == "host" else ""
    without = _WITHOUT.get(claim.about, "without it")
    is_ambiguous = len(_leaders(claim)) > 1 or (claim.has_several_ranks and claim.about not in _WITHOUT)
    if is_ambiguous and claim.about != "host":  # a rank or another cause was named since
        without = f"without {_called(claim, claim.about)}"
    return f"; {without} {who} takes {time_text(gain.per_step_us)} less ({gain.percent:.0f} %{interval})"


def categories_of(cause: str) -> tuple[str, ...]:
    """Return the categories that are a cause."""
    return HOST_CATEGORIES if cause == "host" else (cause,)


def _rank_in_short(claim: BoundClaim) -> str:
    """Return the rank with most of the path, or that it is nearly no later than the next one."""
    if not claim.rank_shares or not claim.has_several_ranks:
        return ""
    rank, share = next(iter(claim.rank_shares.items()))
    alone = claim.alone
    if alone is not None and alone.percent < 100 * MIN_SHARE:
        gains = f"{alone.percent:.0f} %" if alone.percent >= 1 else "less than 1 %"
        peers = [rank for rank in claim.rank_shares if rank != alone.rank]
        return f"; speeding up rank {alone.rank} alone gains {gains}{f', rank {peers[0]} is next' if peers else ''}"
    return f", on rank {rank}" if share >= 100 - MIN_PERCENT else f" ({share:.0f} % on rank {rank})"
