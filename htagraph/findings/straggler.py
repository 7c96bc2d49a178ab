"""One rank makes the others wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import MOST
from htagraph.findings.change import PredictedChange, gain_of
from htagraph.findings.finding import MEASURES, Claim, Finding, in_short
from htagraph.findings.limits import LARGE_SHARE, MIN_PERCENT
from htagraph.findings.phrases import Advice, time_text
from htagraph.findings.results import FREE, Results
from htagraph.findings.unmatched import doubts_of
from htagraph.findings.waiting import are_waits_known, waits_evidence
from htagraph.queries.blame import Cause
from htagraph.queries.interruptions import interrupted_beyond_us
from htagraph.queries.silent_pause import SilentPause, silent_pause
from htagraph.whatif.scenario import what_if

__all__ = ["CAUSES", "STRAGGLER", "CauseWords", "LateArrival", "StragglerClaim"]

LateFor: TypeAlias = Literal[Cause, "alone", "interrupted", "pauses"]
"""Why a rank is late: a cause of `htagraph.queries.blame.CAUSES`, work that other ranks do not do, host code that
something else stops for longer than that of other ranks, or a pause of its own in which nothing was recorded."""


class CauseWords(NamedTuple):
    """A cause of lateness in words."""

    reason: str
    """Why the rank is late, as a clause."""
    compare: str
    """The things to compare with peers, in words; empty for nothing."""


CAUSES: Final[dict[LateFor, CauseWords]] = {
    "kernels": CauseWords("its kernels take longer", "clocks and temperature of its device, shapes of its inputs"),
    "host": CauseWords("its host code takes longer", "the cores of its process, and what only it does"),
    "data_loading": CauseWords("its data loader takes longer", "its storage, and the samples that it loads"),
    "outside": CauseWords("the process or thread that it waits for takes longer", "what it waits for"),
    "launch": CauseWords("its launch calls take longer", "the cores of its process"),
    "sync": CauseWords("its blocking calls take longer", "what it waits for there"),
    "network": CauseWords("its transfers take longer", "its links"),
    "other_work": CauseWords(
        "its launched work starts late, probably behind work that this recording does not show",
        "what else runs on its device (nvidia-smi)",
    ),
    "collective": CauseWords("it is late from an earlier collective", ""),
    "none": CauseWords("its own work looks like theirs", ""),
    "alone": CauseWords("it does more work than any other rank", ""),
    "interrupted": CauseWords("other work takes its cores, and interrupts its host code", ""),
    "pauses": CauseWords("its host pauses", ""),
}  # fmt: skip
"""Why a rank is late, by the cause that is the largest part of it, and properties to compare."""

_FREES: dict[Cause, str] = {
    "kernels": "computation", "host": "host", "launch": "host", "data_loading": "data_loading",
    "network": "communication", "other_work": "other_work", "outside": "outside",
}  # fmt: skip
"""Of which time of the whole job (`FREE`) a late rank's is a part, by its cause."""


_SAYS_ENOUGH: Final = frozenset[LateFor]({"kernels", "data_loading", "network", "alone", "interrupted", "pauses"})
"""The causes whose words tell enough."""


class LateArrival(NamedTuple):
    """A rank enters collectives of one operation last."""

    op: str
    """The operation with the longest waits for the rank."""
    late_us: float
    """How much later than the first rank this rank enters, µs: the median over these collectives."""


@dataclass(frozen=True, kw_only=True)
class StragglerClaim(Claim):
    """A rank makes the others wait; the figure is its share of all waiting, percent."""

    total_us: float
    """Time that ranks wait in collectives, summed over all ranks, µs."""
    cause: LateFor
    """The largest part of why the rank is late."""
    cause_name: str
    """The activity that explains most of that part; empty for none."""
    late: LateArrival | None = None
    """The collective at which the rank is late; None where its cause says enough, or no collective is known."""
    within: tuple[str, ...] = ()
    """The options of the change by which work of this kind takes no time on any rank; empty for no such change."""
    pause: SilentPause | None = None
    """The pause in each step that makes the rank late; None where the cause is another one."""
    has_stacks: bool = False
    """Whether Python functions were recorded."""


def _when(results: Results) -> list[StragglerClaim]:
    slow = results.slow
    if slow.straggler is None or not are_waits_known(results):
        return []
    ranks = slow.to_frame()
    is_straggler = ranks["rank"] == slow.straggler
    row = ranks[is_straggler].iloc[0]
    charged: Cause = row["cause"]
    cause: LateFor = charged
    step_excess_us = float(row["slow_excess_us"])
    excess_us = step_excess_us * row["slow_steps"]
    if charged == "host" and slow.alone[1] > MOST * excess_us:
        cause = "alone"
    elif charged == "host" and interrupted_beyond_us(results.graph, slow.straggler) > MOST * excess_us:
        cause = "interrupted"
    pause = None
    if cause == "host":
        pause = silent_pause(results.graph, slow.straggler)
    if pause and pause.excess_us > MOST * step_excess_us:
        cause = "pauses"
    outcome = what_if(results.warm_graph).fix_straggler().run()
    free = _FREES.get(charged)
    gain = gain_of(outcome, results.whole)
    is_known = gain.percent >= MIN_PERCENT and not outcome.changes_unrecorded_host  # else another rank is as late
    about = str(slow.straggler)
    change = (
        PredictedChange(f"rank {about} as fast as its peers", ("--fix-straggler", "auto"), gain) if is_known else None
    )
    kinds = results.graph.activities.kind
    is_python = kinds == ActivityKind.PYTHON
    cause_name = str(row["cause_name"])
    if cause in ("interrupted", "pauses"):
        cause_name = ""
    claim = StragglerClaim(
        "straggler",
        about,
        float(row["share_percent"]),
        "percent",
        rests_on=doubts_of(results),
        gain=gain,
        change=change,
        ranks=(slow.straggler,),
        total_us=slow.total_wait_us,
        cause=cause,
        cause_name=cause_name,
        late=None if cause in _SAYS_ENOUGH else _late_arrival(results, slow.straggler),
        within=tuple(FREE[free][1].split()) if free else (),
        pause=pause if cause == "pauses" else None,
        has_stacks=bool(is_python.any()),
    )
    return [claim]


def _late_arrival(results: Results, rank: int) -> LateArrival | None:
    """Return the operation with the longest waits for a rank, and how late the rank usually enters this operation.

    Only collectives count whose wait is no small part of the longest.
    """
    table = results.collectives
    for_rank = table[table["matched"] & (table["last_rank"] == rank) & (table["rank"] != rank)]
    if results.usual:
        for_rank = for_rank[for_rank["step"].isin(results.usual)]
    waits = for_rank.groupby(["op", "collective"])["wait_us"].max()
    waits = waits[waits >= LARGE_SHARE * waits.max()]
    if waits.empty:
        return None
    op = str(waits.groupby("op").sum().idxmax())
    return LateArrival(op, float(waits[op].median()))


def _words(claim: StragglerClaim) -> str:
    cause = claim.cause
    name = claim.cause_name
    activity = f", mainly {in_short(name)}" if name else ""
    return (
        f"Rank {claim.about} makes the others wait: {claim.figure:.0f} % of {time_text(claim.total_us)} in "
        f"collectives (over all ranks); {CAUSES[cause].reason}{activity}."
    )


def _why(claim: StragglerClaim) -> str:
    """Return why the other ranks wait for this one."""
    if claim.pause:
        asked = f"Rank {claim.about} makes the others wait: nothing is recorded in its pause"
        return f"{asked} (a sleep, a lock, input or output?).{_to_record(claim)}"
    reason = CAUSES[claim.cause].reason
    activity = f", mainly {in_short(claim.cause_name)}" if claim.cause_name else ""
    return f"The others wait for rank {claim.about}: {reason}{activity}."


def _to_record(claim: StragglerClaim) -> str:
    """Return the setting that shows what a pause is; empty where Python functions were recorded."""
    if claim.has_stacks:
        return ""
    setting = claim.recorder.setting("modules")
    if not setting:
        return ""
    return f" Record it with {setting}."


def _pause_words(claim: StragglerClaim, pause: SilentPause) -> str:
    """Return how long the rank pauses at one place of a step, beside its peers."""
    place = ""
    if pause.region:
        place = f" in {in_short(pause.region)}"
    of_peers = "no time"
    if pause.peers_us:
        of_peers = f"{time_text(pause.peers_us)} at most"
    usual = time_text(pause.usual_us)
    return f"rank {claim.about} pauses {usual} per step{place} (its peers: {of_peers})"


def _advice(claim: StragglerClaim) -> str:
    if claim.pause:
        return f"Find out why {_pause_words(claim, claim.pause)}."
    if claim.cause == "alone":
        more = f"{in_short(claim.cause_name) or 'this work'} more often than others"
        return f"Ask why rank {claim.about} does {more}: share it among the ranks, or take it out of the steps."
    if claim.cause == "interrupted":
        return (
            f"Give the process of rank {claim.about} cores of its own (taskset -cp PID, cpu.max of the cgroup), or end "
            "what else runs on them (top)."
        )
    compare = CAUSES[claim.cause].compare
    if not compare:
        return f"See what rank {claim.about} does before it comes last (htagraph stragglers)."
    late = claim.late
    symptom = [f"Rank {claim.about} enters {late.op} {time_text(late.late_us)} late."] if late else []
    return Advice(f"Compare rank {claim.about} with its peers: {compare}.", *symptom)


STRAGGLER = Finding(
    "straggler",
    needs=MEASURES,
    when=_when,
    short=_words,
    why=_why,
    evidence=waits_evidence,
    advice=_advice,
)
