"""What ``htagraph critical-path`` and ``htagraph opportunities`` say."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from htagraph.findings import verdict
from htagraph.findings.bound import BOUND, is_unrecorded
from htagraph.findings.changes import ProposedChange, ProposedChanges
from htagraph.findings.finding import Claim
from htagraph.findings.gain import GAIN
from htagraph.findings.interrupted import INTERRUPTED
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import command_line, plural
from htagraph.findings.start_up import START_UP
from htagraph.queries.paths import CriticalPath

__all__ = ["CONCLUSIONS", "opportunities_sentences", "path_sentences", "tried"]

CONCLUSIONS = (BOUND, INTERRUPTED, START_UP, GAIN, *verdict.CHANGES_OF_JOB)
"""The findings that bear on what to improve."""


def path_sentences(
    path: CriticalPath,
    claims: Sequence[Claim],
    first: ProposedChange | None,
    hops: pd.DataFrame,
    inputs: Sequence[str],
) -> list[str]:
    """Return what the path consists of, where it lies, what the host did on it, and what gains most.

    The claims are those of `htagraph.findings.verdict.OF_PATH`, of a whole job also those of its changes; the hops are
    those of the path, `first` is what to do first.
    """
    if not path.makespan_ns:
        return ["Nothing was recorded: there is no critical path."]
    where = "The path waits for no other rank: all of it is on one."
    if len(hops):
        moves = f"The path moves to another rank {plural(len(hops), 'time')}, where one rank waits for another"
        where = f"{moves}. To see why: {command_line('stragglers', inputs)}"
    lines = verdict.sentences(sorted(claims, key=lambda claim: claim.says != BOUND.name))
    bounds = sum(claim.says == BOUND.name for claim in claims)
    return [*lines[:bounds], *([where] if len(path.graph.ranks) > 1 else []), *lines[bounds:], *tried(first, inputs)]


def opportunities_sentences(claims: Sequence[Claim], found: ProposedChanges, inputs: Sequence[str]) -> list[str]:
    """Return what to do first with its command, and why; the claims are those of `CONCLUSIONS`."""
    why = verdict.sentences(claim for claim in claims if claim.says != GAIN.name)
    if found.first is None and not any(map(is_unrecorded, claims)):
        why.append(f"No change that is known would gain {MIN_PERCENT:.0f} %.")
    return [*tried(found.first, inputs), *why]


def tried(first: ProposedChange | None, inputs: Sequence[str]) -> list[str]:
    """Return what to do first, and the command that predicts it."""
    if first is None:
        return []
    said = f"First: {first.text}"
    return [f"{said.removesuffix('.')}: {first.change.command(inputs)}" if first.change else said]
