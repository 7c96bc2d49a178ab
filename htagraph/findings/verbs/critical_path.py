"""What ``htagraph critical-path`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.findings import verdict
from htagraph.findings.gain import half_sentence
from htagraph.findings.phrases import command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.findings.claim import Claim
    from htagraph.queries.paths import CriticalPath

__all__ = ["sentences"]


def sentences(path: CriticalPath, claims: Sequence[Claim], hops: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return what the path consists of, where it lies, what the host did on it, and what gains most."""
    if not path.makespan_ns:
        return ["Nothing was recorded: there is no critical path."]
    return [
        f"The critical path is {time_text(path.makespan_ns / 1000)} long.",
        *verdict.sentences(claim for claim in claims if claim.says == "bound"),
        *_where(path, hops, inputs),
        *verdict.sentences(claim for claim in claims if claim.says != "bound"),
        *half_sentence([claim for claim in claims if claim.says == "gain"], inputs),
    ]


def _where(path: CriticalPath, hops: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Say whether other ranks are waited for."""
    if len(path.graph.ranks) < 2:
        return []
    if not len(hops):
        return ["It waits for no other rank."]
    return [
        f"It moves to another rank {plural(len(hops), 'time')}, where one rank waits for another. To see why: "
        f"{command_line('stragglers', inputs)}"
    ]
