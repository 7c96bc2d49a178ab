"""The texts and lanes that some activities use, and what a trace says about its job beside its events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import Activities, Lane
from htagraph.graph.construction.join import TEXTS
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.columns import Flows, SparseColumn, Table, Trace
from htagraph.trace.kineto.events.header import DeviceProperties, DistributedInfo, Header, ProcessGroup

__all__ = ["header_of", "own_tables"]


def own_tables(
    acts: Activities, names: tuple[str, ...], lanes: tuple[Lane, ...]
) -> tuple[tuple[str, ...], tuple[Lane, ...], Activities]:
    """Return only the names and lanes that some activities use, and the activities numbered accordingly.

    Args:
        acts: the activities.
        names: the texts that their columns number.
        lanes: the lanes that they number.
    """
    texts = [acts.name, acts.category, *(column.values for name, column in acts.args.items() if name in TEXTS)]
    codes = np.unique(np.concatenate(texts))
    codes = codes[codes >= 0]
    used = np.unique(acts.lane)

    def renamed(values: Array) -> Array:
        return np.where(values >= 0, np.searchsorted(codes, values), values).astype(values.dtype)

    args = {
        name: SparseColumn(column.rows, renamed(column.values), column.missing) if name in TEXTS else column
        for name, column in acts.args.items()
    }
    acts = replace(
        acts, name=renamed(acts.name), category=renamed(acts.category),
        lane=np.searchsorted(used, acts.lane).astype(np.int32), args=args,
    )  # fmt: skip
    return tuple(names[code] for code in codes.tolist()), tuple(lanes[lane] for lane in used.tolist()), acts


def header_of(graph: DependencyGraph) -> Trace:
    """Return what the file of a rank says about its host, devices and process groups, without any events.

    Args:
        graph: the graph of one rank.
    """
    rank = graph.ranks[0]
    read = graph.traces.get(rank)
    none = np.zeros(0, np.int32)
    times = none.astype(np.int64)
    events = Table(none, none, none, none, times, times, {})
    flows = Flows(times, none.astype(np.bool_), none, times)
    path = Path() if read is None else read.path
    header = Header() if read is None else _about_the_job(read.header, whole=_communicates_on_hosts(graph))
    pids = sorted({pid for pid, _ in read.lanes if isinstance(pid, int)}) if read is not None else []
    return Trace(
        rank, path, header, (), (), tuple((pid, 0) for pid in pids), {}, events, events, flows,
        {}, (), (0, 0), np.zeros((0, 2), np.int64),
    )  # fmt: skip


def _communicates_on_hosts(graph: DependencyGraph) -> bool:
    return bool((graph.activities.kind == ActivityKind.HOST_COMMUNICATION).any())


def _about_the_job(header: Header, *, whole: bool) -> Header:
    """Return what a header says about hosts, devices and groups; who is in which group only if the whole is asked for.

    Every rank lists the members of each of its groups. With thousands of ranks that is most of what a digest would
    hold, and only communication on hosts needs it: on devices, arguments name the members.
    """
    devices = [DeviceProperties.model_construct(id=each.id, name=each.name) for each in header.device_properties]
    info = header.distributed_info
    if info is not None:
        groups = info.pg_config if whole or not info.world_size else []
        info = DistributedInfo.model_construct(
            rank=info.rank, world_size=info.world_size,
            pg_config=[
                ProcessGroup.model_construct(
                    pg_name=each.pg_name, pg_desc=each.pg_desc, pg_size=each.pg_size, ranks=each.ranks
                ) for each in groups
            ],
        )  # fmt: skip
    return Header.model_construct(
        device_properties=devices, distributed_info=info, host_name=header.host_name, job_name=header.job_name
    )
