"""Kernels of one job are replaced by other kernels in the other job."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.core.naming import short_name
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.words import cut
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import plural

__all__ = ["REPLACED_KERNELS", "ReplacedKernelsClaim"]


@dataclass(frozen=True, kw_only=True)
class ReplacedKernelsClaim(Claim):
    """Kernels are replaced; the figure counts these."""

    old: str
    """The first kernel before."""
    new: str
    """The kernel in its place after."""


def _when(pair: JobPair) -> list[ReplacedKernelsClaim]:
    table = pair.diff.renamed
    pairs = zip(table["before"].map(short_name), table["after"].map(short_name), strict=True)
    replaced = [(old, new) for old, new in pairs if old != new]
    if not replaced:
        return []
    old, new = replaced[0]
    return [ReplacedKernelsClaim("replaced_kernels", old, len(replaced), "count", old=old, new=new)]


def _short(claim: ReplacedKernelsClaim) -> str:
    joint = ":" if claim.figure == 1 else ", such as"
    kernels = plural(int(claim.figure), "kernel")
    return f"{kernels} replaced{joint} {cut(claim.new)} instead of {cut(claim.old)}."


REPLACED_KERNELS = Finding("replaced_kernels", when=_when, short=_short)
