"""Names of calls that enqueue device work, and of the work itself: CUDA graphs, kernels, copies."""

from __future__ import annotations

import re

from htagraph.core.naming.patterns import matches

__all__ = ["copy_kind", "is_graph_launch", "is_kernel_launch", "is_memory_call", "is_poll", "is_triton_kernel"]


def is_graph_launch(name: str) -> bool:
    """Return True for a runtime call that launches a whole CUDA graph.

    Example:
        >>> is_graph_launch("cudaGraphLaunch"), is_graph_launch("cudaLaunchKernel")
        (True, False)
    """
    return matches(r"GraphLaunch", name)


_KERNEL_LAUNCH = re.compile(r"(cuda|hip|cu)(Ext)?(Module)?(Cooperative)?LaunchKernel|(cuda|cu)LaunchCooperativeKernel")


def is_kernel_launch(name: str) -> bool:
    """Return True for a runtime or driver call that launches one kernel.

    Example:
        >>> is_kernel_launch("cudaLaunchKernelExC"), is_kernel_launch("cudaMemcpyAsync")
        (True, False)
    """
    return _KERNEL_LAUNCH.match(name) is not None


def is_memory_call(name: str) -> bool:
    """Return True for a runtime or driver call that copies or sets memory.

    Example:
        >>> is_memory_call("cudaMemcpyAsync"), is_memory_call("cudaLaunchKernel")
        (True, False)
    """
    return matches(r"^(cuda|hip|cu)Mem(cpy|set)", name)


def is_poll(name: str) -> bool:
    """Return True for a runtime or driver call that only asks whether work is over, and never waits or starts any.

    Example:
        >>> is_poll("cudaEventQuery"), is_poll("hipStreamQuery"), is_poll("cudaEventSynchronize")
        (True, True, False)
    """
    return matches(r"^(cuda|hip|cu)(Event|Stream)Query$", name)


def copy_kind(name: str) -> str:
    """Return the direction of a copy, such as ``Memcpy HtoD``, or ``Memset``; ``other`` for any other activity.

    Example:
        >>> copy_kind("Memcpy HtoD (Pinned -> Device)"), copy_kind("Memset (Device)")
        ('Memcpy HtoD', 'Memset')
    """
    match = re.match(r"Memset|Memcpy \w+", name)
    return match[0] if match else "other"


def is_triton_kernel(name: str) -> bool:
    """Return True for a Triton kernel that inductor generated.

    Example:
        >>> is_triton_kernel("triton_poi_fused_add_cos_sin_0"), is_triton_kernel("ampere_sgemm_128x64_nn")
        (True, False)
    """
    return name.startswith("triton_")
