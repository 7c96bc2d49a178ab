"""Which ranks ran on one host: they share its clock."""

from __future__ import annotations

from collections.abc import Mapping

from htagraph.trace.columns import Trace

__all__ = ["hosts_of"]


def hosts_of(traces: Mapping[int, Trace]) -> dict[int, int]:
    """Return the number of each rank's host, equal for ranks of one host; a rank whose host is unknown is left out.

    A host is known by its name. Files without one are of one host if they list the same devices, at least as many as
    the job has ranks, and no two of them ran on the same device or in the same process.

    Args:
        traces: what was read, by rank.
    """
    name = {rank: trace.facts.host for rank, trace in traces.items()}
    number: dict[str, int] = {}
    hosts = {rank: number.setdefault(host, len(number)) for rank, host in name.items() if host}
    nameless = [trace for rank, trace in traces.items() if rank not in hosts]
    if not hosts and _share_devices(nameless):
        return dict.fromkeys(traces, 0)
    return hosts


def _share_devices(traces: list[Trace]) -> bool:
    """Return whether all files list the same devices, enough for all ranks, and each rank used others of them."""
    tables = [trace.facts.devices for trace in traces]
    if len(tables) < 2 or any(table != tables[0] for table in tables):
        return False
    size = max(len(traces), *(trace.facts.world_size for trace in traces))
    used = [_pids(trace) for trace in traces]
    return size <= len(tables[0]) and all(used) and len(set().union(*used)) == sum(map(len, used))


def _pids(trace: Trace) -> set[int]:
    """Return the numbers of the devices and of the processes that a file has events of."""
    return {pid for pid, _ in trace.lanes if isinstance(pid, int) and pid >= 0}
