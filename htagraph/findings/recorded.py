"""A caution: recording slows the host, which bounds the job."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.findings.bound import BOUND, is_unrecorded
from htagraph.findings.finding import PREDICTS, Claim, Finding
from htagraph.findings.results import Results
from htagraph.graph.measures.ledger import Part

__all__ = ["RECORDED", "RecordedClaim"]


@dataclass(frozen=True, kw_only=True)
class RecordedClaim(Claim):
    """Recording slows the host; the figure is the share of the critical path that is the host's, percent."""

    has_stacks: bool
    """Whether Python functions were recorded."""


def _when(results: Results) -> list[RecordedClaim]:
    """Claim it where a host that launches bounds the job; a recording cannot show how much slower it makes a host."""
    # without a device, hosts do the work themselves, in few and long operators, which recording slows little
    acts = results.graph.activities
    unrecorded = any(map(is_unrecorded, results.claims(BOUND.when)))
    if results.bound.cause != "host" or unrecorded or not acts.on_device.any():
        return []
    has_stacks = bool(of_kinds(acts.kind, (ActivityKind.PYTHON,)).any())
    percent = results.bound.causes.get("host", 0.0)
    return [RecordedClaim("recorded", "", percent, "percent", has_stacks=has_stacks)]


def _short(claim: RecordedClaim) -> str:
    stacks = ", most with Python stacks" if claim.has_stacks else ""
    return f"recording slows host code{stacks}: without a profiler, steps are shorter and gains smaller"


RECORDED = Finding(
    "recorded",
    needs=PREDICTS | {Part.HOST},
    when=_when,
    short=_short,
    is_caution=True,
    advice=lambda claim: "Record without Python stacks, which cost most." if claim.has_stacks else "",
)
