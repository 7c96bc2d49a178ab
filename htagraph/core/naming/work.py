"""Names of calls that enqueue work, and of the work: graphs, kernels, copies."""

from __future__ import annotations

import re

from htagraph.core.naming.patterns import matches

__all__ = ["copy_kind", "is_graph_launch", "is_kernel_launch", "is_memory_call", "is_triton_kernel"]


def is_graph_launch(name: str) -> bool:
    """Return whether a runtime call replays a whole graph of works.

    Example:
        >>> is_graph_launch("cudaGraphLaunch"), is_graph_launch("cudaLaunchKernel")
        (True, False)
    """
    return matches(r"GraphLaunch", name)


_KERNEL_LAUNCH = re.compile(r"(cuda|hip|cu)(Ext)?(Module)?(Cooperative)?LaunchKernel|(cuda|cu)LaunchCooperativeKernel")


def is_kernel_launch(name: str) -> bool:
    """Return whether a runtime or driver call launches one kernel.

    Example:
        >>> is_kernel_launch("cudaLaunchKernelExC"), is_kernel_launch("cudaMemcpyAsync")
        (True, False)
    """
    return _KERNEL_LAUNCH.match(name) is not None


def is_memory_call(name: str) -> bool:
    """Return whether a runtime or driver call copies or sets memory.

    Example:
        >>> is_memory_call("cudaMemcpyAsync"), is_memory_call("cudaLaunchKernel")
        (True, False)
    """
    return matches(r"^(cuda|hip|cu)Mem(cpy|set)", name)


def copy_kind(name: str) -> str:
    """Return which kind of copy or set of memory a device activity is, without the kinds of memory.

    Example:
        >>> copy_kind("Memcpy HtoD (Pinned -> Device)"), copy_kind("Memset (Device)")
        ('Memcpy HtoD', 'Memset')
    """
    found = re.match(r"Memset|Memcpy \w+", name)
    return found[0] if found else "other"


def is_triton_kernel(name: str) -> bool:
    """Return whether a kernel is one that inductor generated with Triton.

    Example:
        >>> is_triton_kernel("triton_poi_fused_add_cos_sin_0"), is_triton_kernel("ampere_sgemm_128x64_nn")
        (True, False)
    """
    return name.startswith("triton_")
