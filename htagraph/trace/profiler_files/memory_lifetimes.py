"""From when to when each allocation of a snapshot's history was in use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

__all__ = ["lifetimes"]

_COLUMNS = {
    "device": "int64", "address": "uint64", "bytes": "int64", "stack": "int64", "born": "int64", "died": "int64",
}  # fmt: skip


def lifetimes(events: pd.DataFrame, in_use: pd.DataFrame, grows: Sequence[str], shrinks: Sequence[str]) -> pd.DataFrame:
    """Return every allocation; documented at `MemorySnapshot.allocations`.

    An allocation ends with the next free of its address. A free without one ends what was there before the history
    began, and a block in use without one was there before and still is.

    Args:
        events: of the snapshot.
        in_use: its blocks in use.
        grows: actions that allocate.
        shrinks: actions that free.
    """
    count = len(events)
    frees = events["action"].isin(shrinks).to_numpy()
    rows = np.flatnonzero(frees | events["action"].isin(grows).to_numpy())
    device, address = events["device"].to_numpy()[rows], events["address"].to_numpy()[rows]
    order = np.lexsort((rows, address, device))
    rows, device, address = rows[order], device[order], address[order]
    is_free = frees[rows]
    follows = np.zeros(len(rows), np.bool_)  # whether one concerns the address of the one before it
    follows[1:] = (device[1:] == device[:-1]) & (address[1:] == address[:-1])
    ends = np.flatnonzero(follows[1:] & is_free[1:])
    died = np.full(len(rows), count, np.int64)
    died[ends] = rows[ends + 1]
    begun = follows.copy()  # whether an allocation comes before this free
    begun[1:] &= ~is_free[:-1]
    born, lost = rows[~is_free], rows[is_free & ~begun]
    parts = [
        _part(events.iloc[born], born, died[~is_free]),
        _part(events.iloc[lost].assign(stack=-1), -1, lost),
        _part(_older(events.iloc[born[died[~is_free] == count]], in_use), -1, count),
    ]
    return pd.concat(parts, ignore_index=True).astype(_COLUMNS)


def _part(what: pd.DataFrame, born: np.ndarray | int, died: np.ndarray | int) -> pd.DataFrame:
    return what[["device", "address", "bytes", "stack"]].assign(born=born, died=died)


def _older(recorded: pd.DataFrame, in_use: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks in use that no recorded allocation made."""
    made = pd.MultiIndex.from_frame(recorded[["device", "address"]])
    older = in_use[~pd.MultiIndex.from_frame(in_use[["device", "address"]]).isin(made)]
    return older.drop(columns="bytes").rename(columns={"requested_bytes": "bytes"})
