"""A caution: recording slows the host, which bounds the job."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.findings.bound import BOUND, is_unrecorded
from htagraph.findings.finding import PREDICTS, Claim, Finding
from htagraph.findings.limits import LARGE_SHARE
from htagraph.findings.results import Results
from htagraph.graph.measures.ledger import Part

__all__ = ["RECORDED", "RecordedClaim"]


@dataclass(frozen=True, kw_only=True)
class RecordedClaim(Claim):
    """Recording slows the host; the figure is the share of the critical path that is the host's, percent."""

    has_stacks: bool
    """Whether Python functions were recorded."""
    stacks_percent: float = 0.0
    """Percent of the events of hosts that are Python functions."""


def _when(results: Results) -> list[RecordedClaim]:
    """Claim it where a host that launches bounds the job; a recording cannot show how much slower it makes a host."""
    # without a device, hosts do the work themselves, in few and long operators, which recording slows little
    acts = results.graph.activities
    unrecorded = any(map(is_unrecorded, results.claims(BOUND.when)))
    if results.bound.cause != "host" or unrecorded or not acts.on_device.any():
        return []
    is_python = of_kinds(acts.kind, (ActivityKind.PYTHON,))
    has_stacks = bool(is_python.any())
    stacks_percent = 100 * float(is_python.sum()) / max(1, int((~acts.on_device).sum()))
    percent = results.bound.causes.get("host", 0.0)
    claim = RecordedClaim("recorded", "", percent, "percent", has_stacks=has_stacks, stacks_percent=stacks_percent)
    return [claim]


def _short(claim: RecordedClaim) -> str:
    stacks = ", most with Python stacks" if claim.has_stacks else ""
    return f"recording slows host code{stacks}: without a profiler, steps are shorter and gains smaller"


def _why(claim: RecordedClaim) -> str:
    """Return that Python stacks slow the host, where these are many of its events; empty elsewhere."""
    if claim.stacks_percent < 100 * LARGE_SHARE:
        return ""
    return "how much recorded Python stacks slow the host: record without them before acting"


RECORDED = Finding(
    "recorded",
    needs=PREDICTS | {Part.HOST},
    when=_when,
    short=_short,
    why=_why,
    is_caution=True,
    advice=lambda claim: "Record without Python stacks, which cost most." if claim.has_stacks else "",
)
