"""Sequences in whose middle collectives are missing: their parts belong to the others' sequence, each under its shift.

A whole sequence lies beside the others under one shift. Where a record was lost in the middle, what comes behind it is
one place nearer. Parts of the sequence show the shift before and behind the hole; between them, ends tell where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.construction.matching.sequence_alignment import Cluster, Fit, Track, fit_pair
from htagraph.graph.tolerances import LIMITS

__all__ = ["with_broken"]


_NOT_ALIKE: Final = 1e15
"""ns: what it costs to put collectives of other kinds, sizes or steps side by side. Chosen: more than any times can
differ by. It may be doubled without effect."""


def with_broken(tracks: list[Track], clusters: list[Cluster]) -> tuple[list[Track], list[Cluster]]:
    """Return the tracks and the clusters, with those left out that fit one of their pool in parts.

    Only of tracks that certainly belong together: of a named group, or of ranks that have no other communication. Each
    is added to the cluster of the longest track of its pool in pieces, which are new tracks.

    Args:
        tracks: all sequences, by number.
        clusters: which of them belong together under one shift each.
    """
    held = {number for each in clusters for number in each.shift}
    left = [track for track in tracks if track.certain and not track.pairwise and track.number not in held]
    left = [track for track in left if len(track) >= 2 * LIMITS.proof]
    tracks, clusters = list(tracks), list(clusters)
    for pool in sorted({track.pool for track in left}):
        own = [each for each in clusters if any(tracks[number].pool == pool for number in each.shift)]
        if len(own) > 1:
            continue  # nobody can tell to which of them
        alone = sorted((track for track in left if track.pool == pool), key=lambda track: (-len(track), track.rank))
        if not own:
            if len(alone) < 2:
                continue
            own = [Cluster({alone.pop(0).number: 0})]
        _extend(tracks, own[0], alone)
        if len(own[0].shift) > 1 and own[0] not in clusters:
            clusters.append(own[0])
    return tracks, clusters


def _extend(tracks: list[Track], fellows: Cluster, alone: Sequence[Track]) -> None:
    """Add tracks in pieces to a cluster whose longest track they fit; the pieces are appended to `tracks`."""
    longest = max((tracks[number] for number in fellows.shift), key=len)
    ranks = {tracks[number].rank for number in fellows.shift}
    for track in alone:
        place = _places(longest, track) if track.rank not in ranks else None
        if place is None:
            continue
        ranks.add(track.rank)
        apart = place - np.arange(len(track))
        for piece in np.split(np.arange(len(track)), np.flatnonzero(np.diff(apart)) + 1):
            number = len(tracks)
            tracks.append(replace(_slice(track, piece), number=number, part_of=track.number))
            fellows.shift[number] = int(place[piece[0]]) + fellows.shift[longest.number]


def _slice(track: Track, rows: Array) -> Track:
    """Return some consecutive collectives of a track as a track."""
    return replace(
        track, rows=track.rows[rows], start=track.start[rows], end=track.end[rows], label=track.label[rows],
        barrier=track.barrier[rows], steps=None if track.steps is None else track.steps[rows],
    )  # fmt: skip


def _places(a: Track, b: Track) -> npt.NDArray[np.int64] | None:
    """Return the place in `a` of each collective of `b`, ascending; None where its parts do not fit."""
    parts = np.array_split(np.arange(len(b)), max(2, min(LIMITS.few, len(b) // LIMITS.proof)))
    hint = 0.0 if a.host >= 0 and a.host == b.host else None
    fits = [_fit(a, _slice(b, part), hint) for part in parts]
    offsets = [fit.offset for fit in fits if fit is not None]
    if not offsets:
        return None
    usual = float(np.median(offsets))
    apart = LIMITS.most * float(np.median(np.diff(b.end)))
    shifts: list[int | None] = [
        fit.shift - int(part[0]) if fit is not None and abs(fit.offset - usual) <= apart + fit.spread else None
        for part, fit in zip(parts, fits, strict=True)
    ]
    place = np.full(len(b), -1, np.int64)
    at = 0
    while at < len(parts):
        stop = at + 1
        if shifts[at] is None:
            while stop < len(parts) and shifts[stop] is None:
                stop += 1
            before, behind = shifts[at - 1] if at else None, shifts[stop] if stop < len(parts) else None
            rows = np.concatenate(parts[at:stop])
            place[rows] = rows + _around_hole(a, b, rows, (before, behind), usual)
        else:
            place[parts[at]] = parts[at] + np.int64(shifts[at] or 0)
        at = stop
    fits_in = place[0] >= 0 and place[-1] < len(a) and (np.diff(place) > 0).all()
    return place if fits_in and (_costs(a, b, np.arange(len(b)), place, usual) < _NOT_ALIKE).all() else None


def _fit(a: Track, part: Track, hint: float | None) -> Fit | None:
    """Return how a part of a track lies beside another track, with its shift against that one."""
    fit = fit_pair(a, part, hint)
    return fit if fit is not None and fit.first == a.number else None


def _around_hole(
    a: Track, b: Track, rows: Array, shifts: tuple[int | None, int | None], offset: float
) -> npt.NDArray[np.int64]:
    """Return the shift of each of some consecutive collectives, which changes once where that costs least.

    Args:
        a: the track beside which they are.
        b: their track.
        rows: their places in it.
        shifts: the shift of what comes before them and behind them; None at the ends of the track.
        offset: the clock of b less that of a, ns.
    """
    before, behind = shifts
    if before is None and behind is None:
        return np.zeros(len(rows), np.int64)
    befores = [before] if before is not None else [int(behind or 0) - each for each in range(LIMITS.few + 1)]
    behinds = [behind] if behind is not None else [int(before or 0) + each for each in range(LIMITS.few + 1)]
    best, chosen = np.inf, np.zeros(len(rows), np.int64)
    for first in befores:
        for last in behinds:
            one, other = (_costs(a, b, rows, rows + shift, offset) for shift in (first, last))
            total = np.append(0.0, np.cumsum(one)) + np.append(np.cumsum(other[::-1])[::-1], 0.0)
            cut = int(np.argmin(total))
            if total[cut] < best:
                best, chosen = float(total[cut]), np.where(np.arange(len(rows)) < cut, first, last)
    return chosen


def _costs(a: Track, b: Track, rows: Array, place: Array, offset: float) -> npt.NDArray[np.float64]:
    """Return how far apart the ends of collectives of b and those at some places of a are, ns."""
    inside = (place >= 0) & (place < len(a))
    at = np.clip(place, 0, len(a) - 1)
    alike = inside & (a.label[at] == b.label[rows])
    alike &= (a.step[at] == b.step[rows]) | (a.step[at] < 0) | (b.step[rows] < 0)
    return np.where(alike, np.abs(b.end[rows] - a.end[at] - offset), _NOT_ALIKE)
