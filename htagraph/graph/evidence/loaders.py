"""Which stretches of a thread's time are a data loader's own: it waits for a batch, or copies it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.naming import is_data_loader, names_that
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
    named = names_that(is_data_loader, job.names)
    if not named.any():
        return np.full(len(source), -1, np.int64)
    is_loader = np.append(named[job.activities.name], [False])  # the last stands for none, -1
    place = source >> 1
    innermost = np.where(source & 1, job.activities.parent[place], place)
    region = np.where((owner < 0) | is_loader[innermost], innermost, owner)
    return np.where(is_loader[region], region, -1)
