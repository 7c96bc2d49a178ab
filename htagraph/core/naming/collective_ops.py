"""Names of communication kernels and calls: which collective, and send or receive."""

from __future__ import annotations

import re
from functools import lru_cache

from htagraph.core.naming.kinds_by_name import DEFAULT_NAMING, Naming
from htagraph.core.naming.patterns import matches

__all__ = ["collective_op", "is_collective_call", "transfer_direction"]

_COLLECTIVE_OPS = tuple(
    (re.compile(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (r"reduce_?scatter", "reduce_scatter"),
        (r"all_?reduce|cross_device_reduce", "all_reduce"),
        (r"all_?gather", "all_gather"),
        (r"all_?to_?all|all2all|deep_?ep::", "all_to_all"),
        (r"broadcast|bcast", "broadcast"),
        (r"send_?recv|(^|[:_])i?(send|recv(_?any_?source)?)(?![a-z])", "send_recv"),
        (r"barrier", "barrier"),
        (r"gather", "gather"),
        (r"scatter", "scatter"),
        (r"reduce", "reduce"),
    )
)


_COLLECTIVE_CALL = re.compile(r"^(\w*ccl|gloo|mpi|c10d|symm_mem):", re.IGNORECASE)


@lru_cache(maxsize=4096)
def collective_op(name: str, naming: Naming = DEFAULT_NAMING, *, host: bool = False) -> str:
    """Return the collective that a name stands for, such as ``"all_reduce"``, or ``""`` if it names none.

    Args:
        name: the name of a communication kernel, operator or annotation, or a ``Collective name`` argument.
        naming: the patterns that decide kinds; its `host_communication` counts as a library's prefix.
        host: True for operators and annotations: they name a collective only behind a library's prefix (``nccl:``,
            ``c10d::``), since ``aten::scatter`` and others communicate nothing.

    Example:
        >>> collective_op("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)")
        'all_reduce'
        >>> collective_op("c10d::alltoall_base_", host=True), collective_op("aten::scatter", host=True)
        ('all_to_all', '')
    """
    if host and not _COLLECTIVE_CALL.search(name) and not matches(naming.host_communication, name):
        return ""
    return next((word for pattern, word in _COLLECTIVE_OPS if pattern.search(name)), "")


_SEND_OR_RECV = re.compile(r"(?:^|[:_])i?(send|recv)(?:_?any_?source)?(?!_?recv|[a-z])", re.IGNORECASE)


def transfer_direction(name: str) -> int:
    """Return 1 for the name of a send, -1 for a receive, 0 for anything else.

    Example:
        >>> transfer_direction("nccl:send 0->1"), transfer_direction("c10d::recv_"), transfer_direction("nccl:barrier")
        (1, -1, 0)
    """
    match = _SEND_OR_RECV.search(name)
    return 0 if match is None else 1 if match[1].lower() == "send" else -1


def is_collective_call(name: str) -> bool:
    """Return True for an operator that enqueues a collective.

    Example:
        >>> is_collective_call("c10d::allreduce_")
        True
    """
    return name.startswith("c10d::")
