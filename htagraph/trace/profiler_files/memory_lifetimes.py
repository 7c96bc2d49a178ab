"""Lifetimes of the allocations in a memory snapshot: when each was made and freed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

__all__ = ["lifetimes"]

_COLUMNS = {
    "device": "int64", "address": "uint64", "bytes": "int64", "stack": "int64", "born": "int64", "died": "int64",
}  # fmt: skip


def lifetimes(events: pd.DataFrame, in_use: pd.DataFrame, grows: Sequence[str], shrinks: Sequence[str]) -> pd.DataFrame:
    """Return one row per allocation, with the columns that `MemorySnapshot.allocations` documents.

    An allocation lives until the next free of its address. A free without an allocation ends one that was made before
    the history began. A block in use without an allocation was also made before, and is still alive.

    Args:
        events: the snapshot's events.
        in_use: the snapshot's blocks in use.
        grows: the actions that allocate.
        shrinks: the actions that free.
    """
    count = len(events)
    frees = events["action"].isin(shrinks).to_numpy()
    rows = np.flatnonzero(frees | events["action"].isin(grows).to_numpy())
    device, address = events["device"].to_numpy()[rows], events["address"].to_numpy()[rows]
    order = np.lexsort((rows, address, device))
    rows, device, address = rows[order], device[order], address[order]
    is_free = frees[rows]
    follows = np.zeros(len(rows), np.bool_)  # True if an event has the address of the event before it
    follows[1:] = (device[1:] == device[:-1]) & (address[1:] == address[:-1])
    ends = np.flatnonzero(follows[1:] & is_free[1:])
    died = np.full(len(rows), count, np.int64)
    died[ends] = rows[ends + 1]
    begun = follows.copy()  # True for a free whose allocation is in the history
    begun[1:] &= ~is_free[:-1]
    born, freed_only = rows[~is_free], rows[is_free & ~begun]
    parts = [
        _part(events.iloc[born], born, died[~is_free]),
        _part(events.iloc[freed_only].assign(stack=-1), -1, freed_only),
        _part(_made_before(events.iloc[born[died[~is_free] == count]], in_use), -1, count),
    ]
    return pd.concat(parts, ignore_index=True).astype(_COLUMNS)


def _part(allocated: pd.DataFrame, born: np.ndarray | int, died: np.ndarray | int) -> pd.DataFrame:
    return allocated[["device", "address", "bytes", "stack"]].assign(born=born, died=died)


def _made_before(recorded: pd.DataFrame, in_use: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks in use that were allocated before the history began."""
    made = pd.MultiIndex.from_frame(recorded[["device", "address"]])
    older = in_use[~pd.MultiIndex.from_frame(in_use[["device", "address"]]).isin(made)]
    return older.drop(columns="bytes").rename(columns={"requested_bytes": "bytes"})
