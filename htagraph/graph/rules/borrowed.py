"""BODY and AUTOGRAD of operators that a capture's recording lent to a replayed CUDA graph. Lag 0.

They take no time on the host: they are at the start of the launch.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["borrowed"]


def borrowed(job: RecordedJob) -> Edges:
    """Return edges that keep each borrowed frame at the start of its launch, and join backward operators to modules.

    The frame's end follows from its start, and its start from that of what encloses it; a module frame of the forward
    operator ends before its backward operator starts.
    """
    acts = job.activities
    rows = np.flatnonzero(acts.borrowed)
    apart = acts.arg("borrowed_forward")[rows]
    backward = rows[apart > 0]
    starts = np.concatenate([2 * acts.parent[rows], 2 * rows]), np.concatenate([2 * rows, 2 * rows + 1])
    parts = [Edges.of(*starts, 0, EdgeKind.BODY, Provenance.INFERRED, activity=np.concatenate([rows, rows]))]
    module = 2 * (backward - apart[apart > 0]) + 1
    parts.append(Edges.of(module, 2 * backward, 0, EdgeKind.AUTOGRAD, Provenance.INFERRED))
    return Edges.concatenate(parts)
