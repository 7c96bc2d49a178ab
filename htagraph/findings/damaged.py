"""A caution: recordings lack what ranks did, cannot be read, or are copies of one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import and_list, plural, ranks_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import upper_bounds
from htagraph.graph.measures.waits import Damage, damaged_ranks

__all__ = ["DAMAGED", "DamagedClaim", "cut_note"]

_LACKS = {"cut": "cut short", "lost": "{} of the events lost", "work": "no device work for {} of the launches"}
"""What is wrong with a recording, by the word that `damaged_ranks` has for it."""


@dataclass(frozen=True, kw_only=True)
class DamagedClaim(Claim):
    """Recordings lack a part of the job, or cannot be read; the figure is how many."""

    damaged: Mapping[int, Damage]
    """The damage of recordings, by rank."""
    same: tuple[str, ...] = ()
    """Sentences on files that are copies of one file."""
    unread: tuple[str, ...] = ()
    """The names of files that cannot be read."""


def cut_note(graph: DependencyGraph) -> list[str]:
    """Return the sentence on durations of device work that were cut at the next start; none where no duration was.

    Example:
        >>> import htagraph as hg
        >>> cut_note(hg.load("data/demo"))
        []
    """
    count = int(np.count_nonzero(upper_bounds(graph)))
    if not count:
        return []
    durations = "1 duration of device work is" if count == 1 else f"{count:,} durations of device work are"
    cut = "was cut" if count == 1 else "were cut"
    return [
        f"{durations} impossible and {cut} at the next start: devices are busy for at most the time that is shown, and "
        "idle for at least that."
    ]


def _when(results: Results) -> list[DamagedClaim]:
    damaged, issues = damaged_ranks(results.graph), results.graph.issues
    same = [issue.detail for issue in issues if issue.what == "same_file"]
    unread = [Path(issue.file).name for issue in issues if issue.what == "file_skipped"]
    ranks = tuple(sorted(damaged))
    about, count = ", ".join(map(str, ranks)), len(damaged) + len(unread)
    claim = DamagedClaim(
        "damaged", about, count, "count", ranks=ranks, damaged=damaged, same=tuple(same), unread=tuple(unread)
    )
    return [claim] if count or same else []


def _short(claim: DamagedClaim) -> str:
    damaged, unread, parts = claim.damaged, claim.unread, []
    for kind, text in _LACKS.items():
        ranks = [rank for rank in claim.ranks if damaged[rank].how == kind]
        shares = [damaged[rank].share for rank in ranks]
        share = f"{'up to ' if len(set(shares)) > 1 else ''}{100 * max(shares, default=0):.0f} %"
        parts += [f"{ranks_text(ranks)} ({text.format(share)})"] if ranks else []
    others = f" and {plural(len(unread) - 1, 'other file')}" if unread[1:] else ""
    texts = [*claim.same, *(f"{name}{others} cannot be read" for name in unread[:1])]
    rest = "and the time of the rest looks like the host's or like waiting"
    return "; ".join([*texts, *([f"not all that {and_list(parts)} did was recorded, {rest}"] if parts else [])])


def _why(claim: DamagedClaim) -> str:
    """Return of which ranks a part is missing."""
    if claim.unread:
        more = f" and {plural(len(claim.unread) - 1, 'other file')}" if claim.unread[1:] else ""
        return f"a part of the job: {claim.unread[0]}{more} cannot be read"
    if claim.ranks:
        return f"all that {ranks_text(claim.ranks)} did: the recording lost a part"
    return claim.same[0]


DAMAGED = Finding(
    "damaged", when=_when, short=_short, why=_why, is_caution=True,
    advice=lambda _: "Record again, and let the profiler finish writing (htagraph validate).",
)  # fmt: skip
