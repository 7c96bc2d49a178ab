"""What ``htagraph critical-path`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.findings.phrases import command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.findings.claim import Claim
    from htagraph.queries.paths import CriticalPath

__all__ = ["NO_OPERATOR", "sentences", "untraced_before"]

NO_OPERATOR = "in no operator"
"""What the time of steps outside all operators is called."""


def untraced_before(names: pd.Series[str]) -> pd.Series[str]:
    """Return what host code that no event covers is called, by the names of what comes next; empty for nothing.

    Example:
        >>> import pandas as pd
        >>> untraced_before(pd.Series(["aten::mm", ""])).tolist()
        ['untraced before aten::mm', 'untraced']
    """
    return ("untraced before " + names).where(names != "", "untraced")


def sentences(path: CriticalPath, claims: Sequence[Claim], hops: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return what the path consists of, where it lies, what the host did on it, and what gains most.

    Args:
        path: the critical path.
        claims: what bounds it and what gains most; see `htagraph.findings.conclusions.claims`.
        hops: its `CriticalPath.hops`.
        inputs: the words of the command line that choose what is read.
    """
    from htagraph.findings.claim import Says
    from htagraph.findings.conclusions.claim_sentences import sentences as words_of
    from htagraph.findings.conclusions.claim_sentences import trial

    if not path.makespan_ns:
        return ["Nothing was recorded: there is no critical path."]
    return [
        f"The critical path is {time_text(path.makespan_ns / 1000)} long.",
        *words_of([claim for claim in claims if claim.says is Says.BOUND]),
        *_where(path, hops, inputs),
        *words_of([claim for claim in claims if claim.says is not Says.BOUND]),
        *trial([claim for claim in claims if claim.says is Says.GAIN], inputs),
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
