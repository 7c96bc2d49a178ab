"""Which tables hold events, and what their rows are in the words of all formats: category, name, lane, arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from htagraph.core.arrays import Array, coded, looked_up
from htagraph.core.naming import is_autograd_node, is_backward
from htagraph.trace.nsys.database import ABSENT, Database, words_of
from htagraph.trace.nsys.names import NCCL, collective, copy_name, domain_of, forward_threads, operator

__all__ = ["CATEGORIES", "NO_STREAM", "SOURCES", "EventRows", "Source", "alike", "thread_of"]

GRAPH, MARK, OS_BESIDE = "cuda_graph", "nvtx_mark", "os_runtime_beside"
"""Categories: a whole CUDA graph; a moment that a program named; calls of the operating system that are no activities:
on threads that do nothing else, and inside calls of CUDA, where they take as long as what CUDA waits for."""
_ID_BITS: Final = 24
"""Bits of a thread's id, and of a process's, in what exports call a global id, by NVIDIA's documentation of exports. It
cannot be doubled."""
NO_STREAM: Final = 4_294_967_295
"""How CUPTI writes "no stream" and "no event": -1 as 32 bits without a sign. It cannot be doubled."""
_MEMORY: Final = {
    0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static", 6: "Managed Static",
}  # fmt: skip
_SYNCS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
_BOTH, _SENT, _RECEIVED = ("in_msg_nelems", "out_msg_nelems"), ("in_msg_nelems",), ("out_msg_nelems",)
_MARKS, _DOMAIN = (34, 65), 75
_NAMES: Final = (33, 39, 64, 72, 73, 74, _DOMAIN, 76, 97, 98, 99)
"""Numbers of ``ENUM_NSYS_EVENT_TYPE`` that only name something; all but these and marks are ranges."""


@dataclass(frozen=True, eq=False)
class EventRows:
    """Rows of one table as columns; numbers that a row lacks are `ABSENT`."""

    start: Array
    end: Array
    names: Sequence[str]
    name: Array
    """Index into `names`; -1 where the file lacks the text."""
    category: Array
    """Index into the categories of the table; -1 for what is no event."""
    process: Array
    """The upper bits of the global id: host, machine and process."""
    lane: tuple[Array, Array]
    """(process or device, thread or stream)."""
    args: dict[str, Array] = field(default_factory=dict)
    """Numbers by column of `Events.args`."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Texts by column, empty where a row has none."""
    open: int = 0
    """Number of ranges without an end."""


class Source(NamedTuple):
    """A table of events."""

    table: str
    read: Callable[[Database, str, str], EventRows]
    categories: tuple[str, ...]
    on_device: bool = False


def process_of(ids: Array) -> Array:
    """Return what tells processes apart in global ids."""
    return np.where(ids == ABSENT, ABSENT, ids >> _ID_BITS)


def thread_of(ids: Array) -> tuple[Array, Array]:
    """Return (process id, thread id) of global ids; -1 where there is none.

    Example:
        >>> [column.tolist() for column in thread_of(np.array([(144 << 24) + 152]))]
        [[144], [152]]
    """
    mask = (1 << _ID_BITS) - 1
    return np.where(ids == ABSENT, -1, ids >> _ID_BITS & mask), np.where(ids == ABSENT, -1, ids & mask)


class _Columns:
    """Columns of a table; those that it lacks are `ABSENT` throughout."""

    def __init__(self, database: Database, table: str, *names: str, where: str = "") -> None:
        self._found = database.numbers(table, ("start", "end", *names), where)
        self.count = len(next(iter(self._found.values()))) if self._found else database.count(table)

    def __getitem__(self, name: str) -> Array:
        return self._found.get(name, np.full(self.count, ABSENT))


def alike(*columns: Array) -> Array:
    """Return a number per row, equal for rows whose columns are equal; columns may hold `ABSENT`, far from all else."""
    return coded(*(np.unique(column, return_inverse=True)[1].ravel() for column in columns))


def _texts_of(database: Database, ids: Array) -> tuple[list[str], Array]:
    """Return (distinct texts, which of them each id stands for; -1 for none)."""
    text_of = database.strings(ids)
    return [*text_of.values()], looked_up(np.array([*text_of], np.int64), np.arange(len(text_of)), ids)


def _coded(keys: Array, word: Callable[..., str]) -> tuple[list[str], Array]:
    """Return (the words of distinct columns of keys, which of them each column has)."""
    _, first, number = np.unique(alike(*keys), return_index=True, return_inverse=True)
    return [word(*key) for key in keys[:, first].T.tolist()], number


_Names: TypeAlias = tuple[Sequence[str], Array]
_WORK: Final = ("deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId", "graphId")


def _work(found: _Columns, names: _Names, **args: Array) -> EventRows:
    device, stream = found["deviceId"], found["streamId"]
    stream = np.where(stream == NO_STREAM, -1, stream)
    args |= {"device": device, "stream": stream, "correlation": found["correlationId"], "context": found["contextId"]}
    args |= {"graph_node_id": found["graphNodeId"], "graph_id": found["graphId"]}
    lane = np.where(device == ABSENT, -1, device), np.where(stream == ABSENT, -1, stream)
    process, one = process_of(found["globalPid"]), np.zeros(found.count, np.int64)
    return EventRows(found["start"], found["end"], *names, one, process, lane, args)


def _kernels(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "demangledName", "shortName", "mangledName", *_WORK, where=where)
    texts, name = _texts_of(database, found["demangledName"])
    if (name < 0).any():
        ids = found["demangledName"]
        for column in ("shortName", "mangledName"):
            ids = np.where(ids == ABSENT, found[column], ids)
        texts, name = _texts_of(database, ids)
    return _work(found, (texts, name))


def _copies(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "copyKind", "srcKind", "dstKind", "bytes", *_WORK, where=where)
    memory = words_of(database, "ENUM_CUDA_MEM_KIND", _MEMORY)

    def word(kind: int, source: int, target: int) -> str:
        return copy_name(kind, memory.get(source, "Unknown"), memory.get(target, "Unknown"))

    names = _coded(np.stack([found[column] for column in ("copyKind", "srcKind", "dstKind")]), word)
    duration = found["end"] - found["start"]
    known = (found["bytes"] >= 0) & (duration > 0) & (found["start"] != ABSENT)
    rate = np.divide(found["bytes"], duration, out=np.full(found.count, -1.0), where=known)
    return _work(found, names, bytes=found["bytes"], bandwidth_gb_s=rate)


def _sets(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "memKind", "bytes", *_WORK, where=where)
    memory = words_of(database, "ENUM_CUDA_MEM_KIND", _MEMORY)
    names = _coded(found["memKind"][None], lambda kind: f"Memset ({memory.get(kind, 'Unknown')})")
    return _work(found, names, bytes=found["bytes"])


def _graphs(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "graphExecId", *_WORK, where=where)
    ids = np.where(found["graphExecId"] > 0, found["graphExecId"], found["graphId"])
    names = _coded(ids[None], lambda graph: f"CUDA graph {graph}" if graph != ABSENT else "CUDA graph")
    return _work(found, names)


def _sync_kinds(kind: Array, stream: Array, event: Array) -> Array:
    """Return which of the four kinds a synchronization is; old releases write 0, and the ids tell."""
    by_event = (event != ABSENT) & (event != NO_STREAM)
    on_stream = (stream != ABSENT) & (stream != NO_STREAM)
    told = np.where(by_event, np.where(on_stream, 2, 1), np.where(on_stream, 3, 4))
    return np.where(np.isin(kind, list(_SYNCS)), kind, told)


def _syncs(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "syncType", "eventId", "eventSyncId", *_WORK, where=where)
    kind = _sync_kinds(found["syncType"], found["streamId"], found["eventId"])
    names = _coded(kind[None], lambda number: _SYNCS[number])
    stream, record = _records(database, found)
    return _work(found, names, wait_on_stream=stream, wait_on_record=record)


def _records(database: Database, waits: _Columns) -> tuple[Array, Array]:
    """Return (stream, correlation id) of the record that each wait is for: of its id, else the event's last."""
    records = _Columns(
        database, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "eventId", "eventSyncId", "streamId", "correlationId", "globalPid"
    )
    stream, call_of = np.full(waits.count, ABSENT), np.full(waits.count, ABSENT)
    if not records.count:
        return stream, call_of
    for key in ("eventId", "eventSyncId"):  # the second is surer, and comes last
        names = ("globalPid", key, "correlationId")
        keys = [np.concatenate([each[name] for each in (records, waits)]) for name in names]
        event, wait_event = np.split(alike(*keys[:2]), [records.count])
        moment, wait = np.split(alike(*keys), [records.count])
        order = np.argsort(moment, kind="stable")
        last = order[np.searchsorted(moment, wait, sorter=order) - 1]
        known = (event[last] == wait_event) & (moment[last] < wait) & (waits[key] > 0) & (waits[key] != NO_STREAM)
        stream[known], call_of[known] = (records[name][last[known]] for name in ("streamId", "correlationId"))
    return stream, call_of


def _on_host(found: _Columns, names: _Names, category: Array | None = None, **args: Array) -> EventRows:
    ids, category = found["globalTid"], np.zeros(found.count, np.int64) if category is None else category
    return EventRows(found["start"], found["end"], *names, category, process_of(ids), thread_of(ids), args)


def _calls(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "nameId", "eventClass", "globalTid", "correlationId", where=where)
    texts, name = _texts_of(database, found["nameId"])
    texts = [re.sub(r"_v\d{4,5}$", "", text) for text in texts]  # as CUPTI adds, but cuMemFree_v2 is a name
    driver = np.array([*(text.startswith("cu") and not text.startswith("cuda") for text in texts), False])[name]
    driver = np.where(np.isin(found["eventClass"], (0, 1)), found["eventClass"] == 1, driver)
    return _on_host(found, (texts, name), driver.astype(np.int64), correlation=found["correlationId"])


def _os_calls(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "nameId", "globalTid", where=where)
    calls = _Columns(database, "CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid")
    ranges = database.numbers("NVTX_EVENTS", ("globalTid",)).get("globalTid", calls["globalTid"][:0])
    beside = ~np.isin(found["globalTid"], np.concatenate([[ABSENT], calls["globalTid"], ranges]))
    beside |= found["end"] <= found["start"]  # such as the moment at which tracing begins
    beside |= _inside(found, calls)
    return _on_host(found, _texts_of(database, found["nameId"]), beside.astype(np.int64))


def _inside(found: _Columns, around: _Columns) -> Array:
    """Return which rows begin inside a row of another table on their thread."""
    _, thread = np.unique(np.concatenate([around["globalTid"], found["globalTid"]]), return_inverse=True)
    begin, end = around["start"], around["end"]
    order = np.lexsort((begin, thread[: around.count]))
    inside = np.zeros(found.count, np.bool_)
    for number in np.unique(thread[around.count :]).tolist():
        rows = np.flatnonzero(thread[around.count :] == number)
        own = order[thread[order] == number]
        reach = np.maximum.accumulate(end[own]) if len(own) else end[:0]
        at = np.searchsorted(begin[own], found["start"][rows], side="right") - 1
        inside[rows] = (at >= 0) & (np.append(reach, ABSENT)[at] > found["start"][rows])
    return inside


def _plain(database: Database, table: str, where: str) -> EventRows:
    """Return calls that are nothing but a name and a time."""
    found = _Columns(database, table, "nameId", "globalTid", where=where)
    return _on_host(found, _texts_of(database, found["nameId"]))


def _ranges(database: Database, table: str, where: str) -> EventRows:
    found = _Columns(database, table, "eventType", "textId", "globalTid", "domainId", where=where)
    texts, text = _nvtx_texts(database, table, where, found)
    kind, domain = found["eventType"], found["domainId"]
    names: dict[str, int] = {}
    naming = np.flatnonzero((kind == _DOMAIN) & (text >= 0))
    domains = {of: texts[at] for of, at in zip(domain[naming].tolist(), text[naming].tolist(), strict=True)}
    marked, names_something = np.isin(kind, _MARKS), np.isin(kind, _NAMES)
    unending = ~marked & ~names_something & (found["end"] == ABSENT)
    parsed = [operator(each) for each in texts]
    sequence_of = np.array([*(each.sequence if each else -1 for each in parsed), -1])
    is_operator = np.array([*(each is not None and each.is_operator for each in parsed), False])
    _, first, number = np.unique(alike(text, domain), return_index=True, return_inverse=True)
    short = [
        names.setdefault(domain_of(each.name if (each := parsed[at]) else texts[at], domains.get(of, "")), len(names))
        if at >= 0 else -1 for at, of in zip(text[first].tolist(), domain[first].tolist(), strict=True)
    ]  # fmt: skip
    name = np.array([*short, -1], np.int64)[number]
    category = np.where(marked | unending, 2, np.where(is_operator[text], 0, 1))
    category[names_something] = -1
    sequence = np.where(category < 2, sequence_of[text], -1)
    backward = np.array([*(is_backward(each) or is_autograd_node(each) for each in names), False])[name]
    args = {"sequence_number": sequence}
    forward = np.where(sequence >= 0, forward_threads(sequence, backward, thread_of(found["globalTid"])[1]), ABSENT)
    args |= {"fwd_thread_id": forward} if (sequence >= 0).any() else {}
    sizes = [each.sizes if each else "" for each in parsed]
    rows = _on_host(found, (list(names), name), category, **args)
    rows = replace(rows, end=np.where(category == 2, rows.start, rows.end), open=int(unending.sum()))
    rows.texts["input_dims"] = [sizes[at] if at >= 0 else "" for at in text.tolist()] if any(sizes) else []
    _add_collectives(database, table, where, rows)
    return rows


def _nvtx_texts(database: Database, table: str, where: str, found: _Columns) -> tuple[list[str], Array]:
    """Return (distinct names, that of each row; -1 for none): written in the row, else registered by an id."""
    codes: dict[str, int] = {}
    registered = database.strings(found["textId"])
    written = zip(database.texts(table, "text", where), found["textId"].tolist(), strict=True)
    chosen = [text or registered.get(number, "") for text, number in written]
    number = np.fromiter((codes.setdefault(text, len(codes)) if text else -1 for text in chosen), np.int64, len(chosen))
    return list(codes), number


def _add_collectives(database: Database, table: str, where: str, rows: EventRows) -> None:
    """Add what NCCL's ranges say of their collectives, where the export holds payloads as text."""
    nccl = {number for number, name in enumerate(rows.names) if name.startswith(f"{NCCL}:")}
    written = database.texts(table, "jsonText", where) if nccl else []
    if not any(written):
        return
    columns = {name: np.full(len(rows.start), ABSENT) for name in ("group_size", *_BOTH)}
    texts = {name: [""] * len(rows.start) for name in ("pg_name", "collective_name", "dtype")}
    for row in np.flatnonzero(np.isin(rows.name, list(nccl))).tolist():
        said = collective(written[row])
        size, group, ranks = (said.get(key) for key in _PAYLOAD)
        if isinstance(size, int) and 0 <= size < -ABSENT:
            kind = rows.names[rows.name[row]]
            for name in _RECEIVED if "ReduceScatter" in kind else _SENT if "AllGather" in kind else _BOTH:
                columns[name][row] = size
            texts["dtype"][row], texts["collective_name"][row] = "Byte", kind
        if group is not None:
            texts["pg_name"][row] = f"{group:x}" if isinstance(group, int) else str(group)
        if isinstance(ranks, int) and 0 < ranks < NO_STREAM:
            columns["group_size"][row] = ranks
    rows.args.update(columns)
    rows.texts.update(texts)


_PAYLOAD: Final = ("Message size [bytes]", "NCCL communicator ID", "No. of ranks")
"""Labels of NCCL's payload."""
SOURCES: Final = (
    Source("CUPTI_ACTIVITY_KIND_KERNEL", _kernels, ("kernel",), on_device=True),
    Source("CUPTI_ACTIVITY_KIND_MEMCPY", _copies, ("gpu_memcpy",), on_device=True),
    Source("CUPTI_ACTIVITY_KIND_MEMSET", _sets, ("gpu_memset",), on_device=True),
    Source("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", _graphs, (GRAPH,), on_device=True),
    Source("CUPTI_ACTIVITY_KIND_RUNTIME", _calls, ("cuda_runtime", "cuda_driver")),
    Source("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", _syncs, ("cuda_sync",)),
    Source("NVTX_EVENTS", _ranges, ("cpu_op", "user_annotation", MARK)),
    Source("CUBLAS_EVENTS", _plain, ("user_annotation",)),
    Source("CUDNN_EVENTS", _plain, ("user_annotation",)),
    Source("OSRT_API", _os_calls, ("os_runtime", OS_BESIDE)),
    Source("PROFILER_OVERHEAD", _plain, ("overhead",)),
    Source("CUPTI_ACTIVITY_KIND_OVERHEAD", _plain, ("overhead",)),
)
"""The tables of events, in the order in which events are numbered: position of the table's first row plus row."""
CATEGORIES: Collection[str] = frozenset(category for source in SOURCES for category in source.categories)
"""The categories of events of this format."""
