"""Which stretches of a thread's time are a data loader's own: it waits for a batch, or copies it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.naming import is_data_loader
from htagraph.graph.evidence.job import Job

__all__ = ["loader_regions"]

Array = npt.NDArray[np.int64]


def loader_regions(job: Job, source: Array, owner: Array) -> Array:
    """Return the loader's annotation or operator whose own time each stretch is; -1 for none.

    An annotation inside a Python function is the innermost region, though the function is what runs: where Python
    stacks are recorded, a function surrounds every loader.

    Args:
        job: the job.
        source: the moment that each stretch begins with.
        owner: the activity that runs in it, -1 for none.
    """
    acts = job.activities
    names = [number for number, name in enumerate(job.names) if is_data_loader(name)]
    if not names:
        return np.full(len(source), -1, np.int64)
    innermost = np.where(source % 2, acts.parent[source // 2], source // 2)
    region = np.where((owner >= 0) & ~_named(acts.name, innermost, names), owner, innermost)
    return np.where(_named(acts.name, region, names), region, -1).astype(np.int64)


def _named(name: npt.NDArray[np.int32], activity: Array, names: list[int]) -> npt.NDArray[np.bool_]:
    return (activity >= 0) & np.isin(name[activity], names)
