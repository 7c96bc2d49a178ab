"""What htagraph concludes, from its public interface alone: the only file here that uses more than its simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import htagraph as hg
from benchmarks.conclusions_truth.gains import Row
from benchmarks.conclusions_truth.host_pauses import Pause
from htagraph.findings.finding import Claim, claims_that_are
from htagraph.findings.host_pause import HostPauseClaim

__all__ = ["Said", "said_of"]


@dataclass(frozen=True)
class Said:
    """What is concluded about one job."""

    graph: hg.DependencyGraph
    claims: tuple[Claim, ...]
    verdict: list[str]
    opportunities: list[Row]

    def of(self, kind: str) -> list[Claim]:
        """Return the claims of a kind, by the name of its finding."""
        return [claim for claim in self.claims if claim.says == kind]

    @property
    def straggler(self) -> int | None:
        """The rank that makes the others wait; None for none."""
        return hg.stragglers(self.graph).straggler

    @property
    def groups(self) -> int:
        """How many process groups communication was matched in."""
        return len(set(self.graph.matches.group)) if self.graph.matches is not None else 0

    @property
    def pauses(self) -> list[Pause]:
        """The host's longest pauses that are named."""
        return [
            Pause(claim.about, claim.inside, claim.ranks[0], claim.total_us, claim.longest_us)
            for claim in claims_that_are(HostPauseClaim, self.claims)
        ]

    @property
    def idle(self) -> dict[str, float]:
        """Percent of the time from first to last device work by cause of idleness."""
        return {claim.about: claim.figure for claim in self.of("device_idle")}

    @property
    def bound(self) -> tuple[str, float]:
        """What bounds the job, and its share, percent."""
        claims = self.of("bound")
        return (claims[0].about, claims[0].figure) if claims else ("", 0.0)


def said_of(folder: Path) -> Said:
    """Return what is concluded about the job in a folder or file."""
    graph = hg.load(folder)
    summary = hg.summarize(graph)
    table = summary.tables["opportunities"]
    rows = [Row(*each) for each in table[["what", "name", "gain_percent"]].itertuples(index=False)]
    return Said(graph, summary.claims, list(summary.verdict), rows)
