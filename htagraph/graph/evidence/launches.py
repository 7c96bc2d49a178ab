"""Which launches replay a CUDA graph, as the rules for launches need to know."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_graph_launch
from htagraph.graph.evidence.job import Job

__all__ = ["graph_launches"]


def graph_launches(job: Job) -> npt.NDArray[np.bool_]:
    """Return which activities are calls that launch a CUDA graph (many kernels and copies with one correlation id)."""
    acts = job.activities
    launches = acts.kind == ActivityKind.LAUNCH
    names = [name for name in np.unique(acts.name[launches]) if is_graph_launch(job.names[name])]
    return launches & np.isin(acts.name, names)
