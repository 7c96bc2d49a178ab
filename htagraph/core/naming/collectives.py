"""Names of communication: which collective, and in which direction."""

from __future__ import annotations

import re
from functools import lru_cache

from htagraph.core.naming.patterns import matches
from htagraph.core.naming.rules import DEFAULT_NAMING, Naming

__all__ = ["collective_op", "is_collective_call", "transfer_direction"]

_COLLECTIVE_OPS = tuple(
    (re.compile(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (r"reduce_?scatter", "reduce_scatter"),
        (r"all_?reduce|cross_device_reduce", "all_reduce"),
        (r"all_?gather", "all_gather"),
        (r"all_?to_?all|all2all|deep_?ep::", "all_to_all"),
        (r"broadcast|bcast", "broadcast"),
        (r"send_?recv|(^|[:_])i?(send|recv)(?![a-z])", "send_recv"),
        (r"barrier", "barrier"),
        (r"gather", "gather"),
        (r"scatter", "scatter"),
        (r"reduce", "reduce"),
    )
)


_COLLECTIVE_CALL = re.compile(r"^(\w*ccl|gloo|mpi|c10d|symm_mem):", re.IGNORECASE)


@lru_cache(maxsize=4096)
def collective_op(name: str, naming: Naming = DEFAULT_NAMING, *, host: bool = False) -> str:
    """Return which collective a name stands for, ``""`` where it does not say.

    Args:
        name: of a communication kernel, of an operator or annotation, or a ``Collective name`` argument.
        naming: what the names of events mean; a kernel that it does not count as communication has no collective.
        host: the name is an operator's or annotation's, which is a collective only behind a library's prefix.

    Example:
        >>> collective_op("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)")
        'all_reduce'
        >>> collective_op("c10d::alltoall_base_", host=True), collective_op("aten::scatter", host=True)
        ('all_to_all', '')
    """
    if host and not _COLLECTIVE_CALL.search(name) and not matches(naming.host_communication, name):
        return ""
    return next((word for pattern, word in _COLLECTIVE_OPS if pattern.search(name)), "")


_SEND_OR_RECV = re.compile(r"(?:^|[:_])i?(send|recv)(?!_?recv|[a-z])", re.IGNORECASE)


def transfer_direction(name: str) -> int:
    """Return 1 if a call or argument names a send, -1 for a receive, 0 for anything else.

    Example:
        >>> transfer_direction("nccl:send 0->1"), transfer_direction("c10d::recv_"), transfer_direction("nccl:barrier")
        (1, -1, 0)
    """
    found = _SEND_OR_RECV.search(name)
    return 0 if found is None else 1 if found[1].lower() == "send" else -1


def is_collective_call(name: str) -> bool:
    """Return whether an operator enqueues a collective.

    Example:
        >>> is_collective_call("c10d::allreduce_")
        True
    """
    return name.startswith("c10d::")
