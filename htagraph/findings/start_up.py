"""On the critical path are first calls that take far longer than later ones."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Evidence, Finding, of_activities
from htagraph.findings.limits import SHORT_LIST
from htagraph.findings.phrases import and_list, share_text, time_text
from htagraph.findings.results import Results

__all__ = ["START_UP"]


def _when(results: Results) -> list[Claim]:
    path, calls = results.path, results.first_calls
    if not calls:
        return []
    share = 100 * sum(calls.values()) / max(path.makespan_ns, 1)
    acts, names = path.graph.activities, path.graph.names
    longest = sorted(calls, key=lambda call: -calls[call])
    facts = {
        "calls": tuple((names[acts.name[call]], calls[call] / 1000) for call in longest),
        "free_us": sum(calls.values()) / 1000,
    }  # fmt: skip
    return [Claim("start_up", names[acts.name[longest[0]]], share, "percent", rows=tuple(longest), facts=facts)]


def _words(claim: Claim) -> str:
    calls = claim.facts["calls"]
    named = [f"{name} ({time_text(us)})" for name, us in calls[:SHORT_LIST]]
    named += [f"{len(calls) - SHORT_LIST} more"] if len(calls) > SHORT_LIST else []
    return (
        f"Start-up is {share_text(claim.figure)} of the critical path: first calls, as when contexts are made and code "
        f"is loaded, of {and_list(named)}."
    )


START_UP = Finding(
    "start_up", when=_when, short=_words, evidence=lambda results, claim: Evidence(
        rows=of_activities(results, claim.rows, "First calls on the critical path")
    ),
    advice=lambda _: "Record after a warm-up, to see the steady job.",
)  # fmt: skip
