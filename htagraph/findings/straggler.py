"""One rank makes the others wait."""

from __future__ import annotations

from htagraph.core.statistics import MOST
from htagraph.findings.bound import source_of
from htagraph.findings.change import PredictedChange, gain_of
from htagraph.findings.finding import MEASURES, Claim, Finding, in_short
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import time_text
from htagraph.findings.results import FREE, Results
from htagraph.findings.unmatched import doubts_of
from htagraph.findings.waiting import are_waits_known, waits_evidence
from htagraph.whatif.scenario import what_if

__all__ = ["STRAGGLER"]

_CAUSES = {
    "kernels": ("its kernels take longer", "clocks and temperature of its device, shapes of its inputs"),
    "host": ("its host code takes longer", "the cores of its process, and what only it does"),
    "data_loading": ("its data loader takes longer", "its storage, and the samples that it loads"),
    "outside": ("the process or thread that it waits for takes longer", "what it waits for"),
    "launch": ("its launch calls take longer", "the cores of its process"),
    "sync": ("its blocking calls take longer", "what it waits for there"),
    "network": ("its transfers take longer", "its links"),
    "other_work": (
        "its launched work starts late, probably behind work that this recording does not show",
        "what else runs on its device (nvidia-smi)",
    ),
    "collective": ("it is late from an earlier collective", ""),
    "none": ("its own work looks like theirs", ""),
    "alone": ("it does more work than any other rank", ""),
}  # fmt: skip
"""Why a rank is late, by the cause that is the largest part of it, and what to compare with the other ranks."""

_FREES = {
    "kernels": "computation", "host": "host", "launch": "host", "data_loading": "data_loading",
    "network": "communication", "other_work": "other_work",
}  # fmt: skip
"""Of which time of the whole job (`FREE`) a late rank's is a part, by its cause."""


def _when(results: Results) -> list[Claim]:
    slow = results.slow
    if slow.straggler is None or not are_waits_known(results):
        return []
    ranks = slow.to_frame()
    row = ranks[ranks["rank"] == slow.straggler].iloc[0]
    facts = {"total_us": slow.total_wait_us, "cause": str(row["cause"]), "cause_name": str(row["cause_name"])}
    if row["cause"] == "data_loading" and source_of(results.warm_graph):  # no loader: what it waits for is not known
        facts["cause"] = "outside"
    if row["cause"] == "host" and slow.alone[1] > MOST * row["slow_excess_us"] * row["slow_steps"]:
        facts["cause"] = "alone"
    outcome = what_if(results.warm_graph).fix_straggler().run()
    free = _FREES.get(str(row["cause"]))
    gain = gain_of(outcome, results.makespan_ns, results.steps)
    is_known = gain.percent >= MIN_PERCENT and not outcome.changes_unrecorded_host  # else another rank is as late
    about = str(slow.straggler)
    change = (
        PredictedChange(f"rank {about} as fast as its peers", ("--fix-straggler", "auto"), gain) if is_known else None
    )
    facts |= {"ranks": [slow.straggler], "within": FREE[free][1] if free else ""}
    share = float(row["share_percent"])
    rests_on = doubts_of(results)
    return [Claim("straggler", about, share, "percent", rests_on=rests_on, gain=gain, change=change, facts=facts)]


def _words(claim: Claim) -> str:
    cause, name = claim.facts["cause"], claim.facts["cause_name"]
    activity = f", mainly {in_short(name)}" if name else ""
    return (
        f"Rank {claim.about} makes the others wait: {claim.figure:.0f} % of {time_text(claim.facts['total_us'])} in "
        f"collectives (over all ranks); {_CAUSES[cause][0] if cause in _CAUSES else cause}{activity}."
    )


def _why(claim: Claim) -> str:
    """Return why the other ranks wait for this one."""
    cause, name = claim.facts["cause"], claim.facts["cause_name"]
    reason = _CAUSES[cause][0] if cause in _CAUSES else cause
    activity = f", mainly {in_short(name)}" if name else ""
    return f"The others wait for rank {claim.about}: {reason}{activity}."


def _advice(claim: Claim) -> str:
    if claim.facts["cause"] == "alone":
        more = f"{in_short(claim.facts['cause_name']) or 'this work'} more often than others"
        return f"Ask why rank {claim.about} does {more}: share it among the ranks, or take it out of the steps."
    compare = _CAUSES.get(claim.facts["cause"], ("", ""))[1]
    if not compare:
        return f"See what rank {claim.about} does before it comes last (htagraph stragglers)."
    return f"Compare rank {claim.about} with its peers: {compare}."


STRAGGLER = Finding(
    "straggler", needs=MEASURES, when=_when, short=_words, why=_why, evidence=waits_evidence, advice=_advice
)
