"""Words for the claims of `warm_up_claims`: at length for `claim_sentences`, in a clause for `findings`."""

from __future__ import annotations

from collections.abc import Callable

from htagraph.findings.claim import Claim, Says
from htagraph.findings.phrases import and_list, plural, share_text, time_text

__all__ = ["IN_A_CLAUSE", "WHOLE", "is_start_up"]

_NAMED = 2
"""First calls that are named; chosen: they fit on a line. Doubled, two lines."""
_MAX_STEPS = 4
"""Steps that are listed; chosen: a few letters. Doubled, half a line."""
_MOST = 0.5
"""Share of a gain; above it, it is mostly start-up. It cannot be doubled."""


def is_start_up(gain: Claim) -> bool:
    """Return whether most of a gain is first calls, which nobody can halve."""
    return bool(gain.facts.get("start_up_us", 0.0) > _MOST * gain.figure)


def _start_up(claim: Claim) -> str:
    calls = claim.facts["calls"]
    named = [f"{name} ({time_text(us)})" for name, us in calls[:_NAMED]]
    named += [f"{len(calls) - _NAMED} more"] if len(calls) > _NAMED else []
    return (
        f"Start-up is {share_text(claim.figure)} of the critical path: first calls, as when contexts are made and code "
        f"is loaded, of {and_list(named)}. To see the steady job, record after a warm-up."
    )


def _uneven(claim: Claim) -> str:
    facts = claim.facts
    low, high = time_text(facts["low_us"]), time_text(facts["high_us"])
    if not facts["odd"]:
        return f"steps take {low} to {high}, so figures per step are means of unlike steps"
    steps, lasted = facts["odd"], low if low == high else f"{low} to {high}"
    if len(steps) == 1:
        which = f"step {steps[0]} takes"
    else:
        which = f"steps {and_list(map(str, steps))} take" if len(steps) <= _MAX_STEPS else f"{len(steps)} steps take"
    return f"{which} {lasted}, the others about {time_text(facts['usual_us'])}, so means per step fit neither"


def _no_device(claim: Claim) -> str:
    launched = f"the host launched work in {plural(int(claim.figure), 'call')}, but " if claim.figure else ""
    return f"{launched}nothing that a device did was recorded, so when the host waits for it is not known"


def _whole(clause: Callable[[Claim], str], more: str) -> Callable[[Claim], str]:
    def sentence(claim: Claim) -> str:
        text = clause(claim)
        return f"{text[0].upper()}{text[1:]} {more}."

    return sentence


def _cut_short(claim: Claim) -> str:
    ranks = claim.facts["ranks"]
    who = f"rank {ranks[0]}'s file is" if len(ranks) == 1 else f"the files of {len(ranks)} ranks are"
    return (
        f"{who} cut short, and the time of what is missing, such as device work, looks like the host's or like waiting"
    )


IN_A_CLAUSE: dict[Says, Callable[[Claim], str]] = {
    Says.CUT_SHORT: _cut_short, Says.NO_DEVICE_WORK: _no_device, Says.UNEVEN_STEPS: _uneven,
}  # fmt: skip
"""Of claims that make others uncertain, as parts of a sentence."""
WHOLE: dict[Says, Callable[[Claim], str]] = {
    Says.START_UP: _start_up,
    Says.CUT_SHORT: _whole(_cut_short, "(htagraph validate)"),
    Says.NO_DEVICE_WORK: _whole(_no_device, "(record with activities=[CPU, CUDA])"),
    Says.UNEVEN_STEPS: _whole(_uneven, "(--steps reads only some)"),
}
