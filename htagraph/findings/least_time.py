"""The least time of device work: bytes, operations and the run of a kernel allow nothing shorter."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Mask
from htagraph.core.computing import once
from htagraph.core.devices import peak_of
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.kernel_costs import device_name, kernel_costs

__all__ = ["least_ns", "least_share"]

_KERNEL_NS: Final = 2000
"""Time of a kernel that does nearly nothing, ns. Measured: kernels of 5,000 elements take 1.5 to 2.5 µs on an A100 and
an MI300X. Doubled, kernels of 4 µs have no code that could be faster."""


@once
def least_ns(graph: DependencyGraph) -> npt.NDArray[np.float64]:
    """Return the least time of each activity, ns: 0 for all but kernels, and no longer than recorded.

    Bytes and operations count where shapes were recorded and the device is known.

    Args:
        graph: the job.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> bool((least_ns(graph) <= graph.activities.duration).all())
        True
    """
    acts = graph.activities
    is_kernel = acts.on_device & (acts.kind == ActivityKind.COMPUTATION)
    least = np.where(is_kernel, _KERNEL_NS, 0).astype(np.float64)
    costs = kernel_costs(graph)
    rows = costs["activity"].to_numpy(np.int64)
    size = costs["element_bytes"].to_numpy(np.int64)
    peaks = {rank: peak_of(device_name(graph, rank)) for rank in graph.ranks}
    for rank, peak in peaks.items():
        if peak is None:
            continue
        in_rank = (acts.rank[rows] == rank) & is_kernel[rows]
        kernels = rows[in_rank]
        moving_ns = costs["bytes"].to_numpy(np.float64)[in_rank] / peak.gb_s
        rates = {width: 1000 * peak.tflop_s(width, tf32=True) for width in np.unique(size[in_rank]).tolist()}
        rate = np.array([rates[width] or np.inf for width in size[in_rank].tolist()], np.float64)
        computing_ns = costs["flop"].to_numpy(np.float64)[in_rank] / rate
        least[kernels] = np.fmax(least[kernels], np.fmax(moving_ns, computing_ns))
    return np.minimum(least, acts.duration)


def least_share(graph: DependencyGraph, chosen: Mask) -> float:
    """Return the least share of the time of activities that the device needs; 0 for host work.

    Args:
        graph: the job.
        chosen: the activities.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> 0 < least_share(graph, graph.activities.on_device) < 1
        True
    """
    acts = graph.activities
    works = chosen & acts.on_device
    lasted_ns = float(acts.duration[works].sum())
    return float(least_ns(graph)[works].sum()) / lasted_ns if lasted_ns else 0.0
