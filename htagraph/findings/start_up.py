"""The recording holds the start of a process: time that no job after a warm-up has."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from htagraph.core.statistics import MOST
from htagraph.findings.change import Whole, gain_without_interval
from htagraph.findings.finding import Claim, Evidence, Finding, gain_in, in_short, of_activities
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import and_list, plural, share_text, time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.start_up import KINDS
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.start_up import start_up_by_rank, trials_of
from htagraph.queries.warm_up import WarmRegion, warm_region

__all__ = ["NOTES", "START_UP", "StartUpClaim", "start_up_note", "start_up_text"]

_ADVICE = "record after a warm-up"
_AWAITED = "ranks wait for it, too"
NOTES = {
    "idle": "it is part of the idle times above",
    "stragglers": _AWAITED,
    "what-if": "it is part of the time of the whole job",
    "plan": "it is left out",
    "diff": "it is part of the compared times",
    "collectives": _AWAITED,
    "launches": "it is part of the times of calls above",
    "phases": "it is part of the times above",
    "kernels": "kernels that tuning only tries out are part of the times above",
}
"""How the reports of commands treat start-up that do not state the finding, as a part of a sentence."""
_WORDS = {"tuning": "tuning of kernels", "compiling": "compilation"}
"""Words for kinds of start-up; every other kind is counted, or has the name of its call or operator."""
_COUNTED = {"kernel": "launch", "group": "collective"}
"""The first of these is start-up, once for each kernel or group."""
_SEVERAL = {"launch": "launches", "collective": "collectives"}
"""The plural of these words."""


def start_up_text(graph: DependencyGraph) -> str:
    """Return how long start-up takes on the rank with most of it, and its causes; empty for no start-up."""
    of_ranks = start_up_by_rank(graph)
    if not of_ranks:
        return ""
    rank = next(iter(of_ranks))
    ranks = f" on rank {rank}" if len(graph.ranks) > 1 else ""
    if len(of_ranks) > 1:
        are_alike = min(of_ranks.values()) >= LIMITS.nearly_all * of_ranks[rank]
        ranks = f" on each of {len(of_ranks)} ranks" if are_alike else f"{ranks}, the most of {len(of_ranks)} ranks"
    causes = _causes(graph, rank)
    listed = [f"{name} {time_text(us)}" if len(causes) > 1 else name for name, us in causes[:MAX_LISTED]]
    if len(causes) > MAX_LISTED:
        others_us = sum(us for _, us in causes[MAX_LISTED:])
        listed.append(f"{len(causes) - MAX_LISTED} more {time_text(others_us)}")
    return f"{time_text(of_ranks[rank] / 1000)}{ranks} ({and_list(listed)})"


def start_up_note(graph: DependencyGraph, command: str, *, has_times: bool = True) -> list[str]:
    """Return the sentence that names start-up in the report of a command; none without start-up.

    Args:
        graph: the job.
        command: the command.
        has_times: whether the report has times, which may hold start-up.
    """
    text = start_up_text(graph)
    if not text or command not in NOTES:
        return []
    if command == "kernels" and not len(trials_of(graph)):
        return []
    note = NOTES[command]
    is_so = len(graph.ranks) > 1 if note == _AWAITED else has_times
    treated = f"; {note}" if is_so else ""
    return [f"Start-up takes {text}{treated}: {_ADVICE}."]


def _causes(graph: DependencyGraph, rank: int) -> list[tuple[str, float]]:
    """Return the causes of a rank's start-up, and how long each takes, µs, the longest first."""
    acts = graph.activities
    start_up = graph.start_up
    rows = start_up.of(acts.rank[start_up.activity] == rank)
    total_us: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for activity, kind, ns in zip(rows.activity.tolist(), rows.kind.tolist(), rows.time.tolist(), strict=True):
        called = "" if KINDS[kind] in _COUNTED else in_short(graph.names[acts.name[activity]])
        cause = KINDS[kind] if KINDS[kind] in _COUNTED else _WORDS.get(KINDS[kind], called)
        total_us[cause] += ns / 1000
        count[cause] += 1
    named = [(_firsts(cause, count[cause]) if cause in _COUNTED else cause, us) for cause, us in total_us.items()]
    return sorted(named, key=lambda cause: -cause[1])


def _firsts(kind: str, count: int) -> str:
    """Return the words of first launches or collectives of some kernels or groups."""
    first_of = _COUNTED[kind]
    return f"first {first_of if count == 1 else _SEVERAL[first_of]} of {plural(count, kind)}"


@dataclass(frozen=True, kw_only=True)
class StartUpClaim(Claim):
    """The recording holds start-up; the figure is its share of the critical path, percent."""

    text: str
    """How long start-up takes on the rank with most of it, and its causes."""
    mostly: str
    """The cause of the largest part, on the rank with most start-up."""
    longest_us: float
    """How long it takes on that rank, µs."""
    path_us: float
    """The length of the critical path, µs."""
    warm: WarmRegion | None = None
    """A region after the named warm-up; None without a region."""


def _when(results: Results) -> list[StartUpClaim]:
    graph = results.graph
    calls = results.first_calls
    text = start_up_text(graph)
    if not text or not (calls or results.is_whole):
        return []
    path_ns = max(results.path.makespan_ns, 1)
    on_path_ns = sum(calls.values())
    longest = sorted(calls, key=lambda call: -calls[call])
    rows = tuple(longest) or tuple(graph.start_up.activity.tolist())
    of_ranks = start_up_by_rank(graph)
    gain = gain_without_interval(on_path_ns / 1000, Whole(path_ns, 0))
    claim = StartUpClaim(
        "start_up",
        "start-up",
        gain.percent,
        "percent",
        rows=rows,
        gain=gain,
        ranks=tuple(of_ranks),
        text=text,
        mostly=_causes(graph, next(iter(of_ranks)))[0][0],
        longest_us=next(iter(of_ranks.values())) / 1000,
        path_us=path_ns / 1000,
        warm=warm_region(graph, next(iter(of_ranks))),
    )
    return [claim]


def _words(claim: StartUpClaim) -> str:
    text = claim.text
    on_path_us = gain_in(claim).value_us
    on_path = time_text(on_path_us)
    if not on_path_us:
        return f"Start-up takes {text}."
    path = time_text(claim.path_us)
    share = f"{share_text(claim.figure)} of the critical path of {path}"
    if time_text(claim.longest_us) == on_path:
        return f"Start-up is {share}: {text}."
    return f"Start-up takes {text}; {share} is start-up, {on_path}."


def _why(claim: StartUpClaim) -> str:
    """Return the cause of the largest part of start-up; empty for a job whose path has no start-up."""
    return f"The largest part of start-up is {claim.mostly}." if gain_in(claim).value_us else ""


def _recommended(claim: StartUpClaim) -> str:
    if claim.figure <= 100 * MOST:
        return "Record after a warm-up, to see the steady job."
    start = f"{share_text(claim.figure)} of the recording is the start of its process"
    if claim.warm is None:
        return f"{start}: {_ADVICE}."
    region = in_short(claim.warm.name)
    return f"{start}: look at {region} alone, after the warm-up (--time {_window(claim.warm)})."


def _window(region: WarmRegion) -> str:
    """Return the window of time of a region in the form of ``--time``, in ms with two digits."""
    begin = math.floor(region.begin_us / 10) / 100
    end = math.ceil(region.end_us / 10) / 100
    return f"{begin:.2f}ms..{end:.2f}ms"


START_UP = Finding(
    "start_up",
    needs=frozenset({Part.MEANING}),
    when=_when,
    short=_words,
    why=_why,
    evidence=lambda results, claim: Evidence(rows=of_activities(results, claim.rows, "Activities of start-up")),
    advice=_recommended,
)
