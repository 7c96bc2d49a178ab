"""One file → a Trace, its events as models, the facts that it states of its recording, or some events again."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from operator import attrgetter
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from htagraph.core.arrays import Array
from htagraph.core.device_kinds import DeviceShape, name_by_shape
from htagraph.core.errors import DamagedTraceError, IssueLog, NotATraceError, TraceError, shown
from htagraph.core.tables import described
from htagraph.trace.columns import CHECKED, MAX_RANKS, Device, Events, Facts, Group, Trace
from htagraph.trace.kept import YEAR_NS, Extent, Frames, Sieve, extent_of, refuse_out_of_range, shifted, valid
from htagraph.trace.kineto.by_arguments import with_meaning_of_arguments
from htagraph.trace.kineto.collecting import Columns, add_durations, add_events
from htagraph.trace.kineto.decode import ENVELOPE, BlockDecoder, event_decoder, event_text_decoder, find_events, split
from htagraph.trace.kineto.events import (
    DeviceProperties,
    DistributedInfo,
    Event,
    Header,
    canonical_category,
    parse_event,
)
from htagraph.trace.kineto.node_flows import node_dependencies
from htagraph.trace.kineto.source import SMALL_BYTES, ahead, iter_bytes
from htagraph.trace.kineto.times import padded
from htagraph.trace.remote import TracePath, known_state, path_of

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.trace.kineto.scan.scanner import EventTexts

__all__ = [
    "EXPORTED_KEY", "SETTINGS", "STARTS", "SUFFIXES", "UNPADDED", "WITHOUT_PYTORCH", "arguments",
    "category_arguments", "check_arguments", "checked", "columns", "event", "metadata", "parsed", "read_event",
    "read_events", "recognizes", "survey",
]  # fmt: skip

SUFFIXES: tuple[str, ...] = (".json", ".json.gz", ".json.zst", ".json.tmp", ".json.gz.tmp")
"""How names of these files end."""
SETTINGS: Mapping[str, str] = {
    "device": "activities=[CPU, CUDA]",
    "steps": "schedule=… and prof.step() in the loop",
    "no_steps": "no ProfilerStep annotation: call prof.step() in the loop",
    "ranks": "a file of every rank, recorded after init_process_group",
    "shapes": "record_shapes=True",
    "modules": "with_stack=True",
    "memory": "profile_memory=True",
    "records": "_ExperimentalConfig(enable_cuda_sync_events=True)",
    "regions": "torch.profiler.record_function('name')",
    "step": "call prof.step() in the loop",
    "host": "ProfilerActivity.CPU",
    "operators": "activities=[CPU, CUDA]",
    "graphs": "PyTorch's profiler",
    "lost_device": " (PyTorch prints a warning where the profiler may not record)",
}
"""What to record with, see `htagraph.trace.readers.Reader`."""
WITHOUT_PYTORCH: Mapping[str, str] = {}
"""Settings for programs without PyTorch: none, as PyTorch's profiler writes these files."""
EXPORTED_KEY = "htagraph"
"""Root key of the files that htagraph exports from traces, such as overlays. They are not recordings."""
STARTS, UNPADDED = "starts", "unpadded"
"""Bookmarks: where reading may begin, as rows of (number of an event, position of its text in the decompressed file),
ascending, none where the file was decoded event by event; and whether fractions of times lack their leading zeros
(March 2024), which columns correct."""
_SETTINGS_KEY = "htagraph_profile"  # that of `htagraph.trace.recording.profile`

_TAIL_BYTES = 1 << 20
"""Bytes at the end of a file in which the keys behind the events are looked for. Chosen: process groups of a large job
fit; a larger tail costs memory only."""


def recognizes(path: TracePath) -> bool:
    """Return whether a file is named as Kineto's are."""
    return path.name.endswith(SUFFIXES)


def columns(  # noqa: PLR0913 - what every reader takes
    path: TracePath, rank_in: Callable[[Facts, IssueLog], int], progress: Callable[[int], None] | None = None, *,
    compiled: bool = True, frames: Frames | None = None, sieve: Sieve | None = None, part: int | None = None,
) -> Trace:  # fmt: skip
    """Return one file's events as columns; a file has one process, so that there is no `part` of it."""
    stat = known_state(path)
    log = IssueLog(str(path))
    raw_header: dict[str, Any] = {}
    frames = frames or Frames(asked=True)
    decode, into = BlockDecoder(raw_header, frames), Columns(log, frames, sieve)
    add_block = None
    if compiled:
        from htagraph.trace.kineto.from_blocks import BlockColumns  # loads compiled code

        add_block = BlockColumns(into).add
    pieces = iter_bytes(path, log, progress)
    scan, scan_ahead = (decode.scan, decode.ahead) if compiled else (None, None)
    for position, events in split(ahead(pieces) if compiled else pieces, decode, raw_header, log, scan, scan_ahead):
        if isinstance(events, list):
            add_events(into, position, events)
        elif add_block is not None:  # for the type checker: only a scan makes blocks
            add_block(position, events)
        del events  # see split: before the next block
        into.thin()
    _refuse_without_events(path, into.counts, log)
    header = _header(raw_header, log)
    facts = _facts(header, raw_header, log)
    add_durations(into)
    into.thin(last=True)
    frames.report(log)
    table = with_meaning_of_arguments(into.table(), into.names)
    extent = extent_of(table) if sieve is None else sieve.extent
    _refuse_without_times(path, extent, log)
    table, instants, flows = valid(table, extent), valid(into.instants(), extent), into.flows(extent)
    table = _with_operators(table, into, extent)
    dependencies = node_dependencies(table, into.node_flows(extent), log, whole=sieve is None)
    lost = extent.outliers + into.instant.count - len(instants)
    log.add("time_outlier", "events hours away from all others (a clock error of the profiler); dropped", lost)
    into.style.report(log)
    if into.window_end is None and extent.events:
        log.add("no_window_end", "no 'Record Window End' event: the file was cut short, or written by another tool")
    if facts.base_ns is None and extent.events and extent.last < YEAR_NS:
        log.add("no_base_time", "times are relative, but the file has no baseTimeNanoseconds: ranks share no clock")
    base, rank = facts.origin_ns, rank_in(facts, log)
    out_of_unit = "baseTimeNanoseconds (ns), or an event's ts or dur (µs), is not in its unit"
    refuse_out_of_range(extent, base, path, out_of_unit)
    return Trace(
        rank=rank, path=path, facts=facts, names=tuple(into.names), categories=tuple(into.categories),
        lanes=tuple(into.lanes.lanes), thread_names=into.thread_names, events=shifted(table, base),
        instants=shifted(instants, base), flows=flows.shifted(base),
        counts=dict(into.counts), issues=log.issues(rank), fingerprint=stat,
        bookmarks={
            STARTS: np.array(into.starts, np.int64).reshape(-1, 2), UNPADDED: np.array([into.style.unpadded]),
        },
        dependencies=dependencies, recorded_until=into.recorded_until(base),
    )  # fmt: skip


def _with_operators(table: Events, into: Columns, extent: Extent) -> Events:
    """Return the events of a file without calls with the operators of device work, as flows name them."""
    if not into.operator_flow_parts or "correlation" in table.args:
        return table
    from htagraph.trace.kineto.operator_flows import with_operators  # for old files only

    return with_operators(table, into.operator_flows(extent))


def _refuse_without_events(path: TracePath, counts: Mapping[str, int], log: IssueLog) -> None:
    if not counts and log.has("truncated"):
        msg = f"{path}: the file ends within its first event; was the job killed while the profiler exported?"
        raise DamagedTraceError(msg)
    if set(counts) <= {""} and (counts or log.has("event_unreadable")):
        msg = f"{path}: not a Kineto trace: JSON, but the list does not hold events (objects with a phase, ph)"
        raise NotATraceError(msg)


def _refuse_without_times(path: TracePath, extent: Extent, log: IssueLog) -> None:
    lost = [issue.detail for issue in log.issues() if issue.what == "time_corrupt"]
    if lost and not extent.events:
        msg = (
            f"{path}: no event has a time that can be read; {lost[0]}; export the trace again from the profiler: a "
            "program that changed the file may have lost the times"
        )
        raise DamagedTraceError(msg)


def read_events(path: str | PathLike[str]) -> Iterator[Event]:
    """Yield every event of a trace file as its validated pydantic model, in the file's order.

    Use `read_events` where you need objects; `load` is about twenty times faster.

    Times are the decimals in the file. Files of two weeks in March 2024 lack the leading zeros of fractions (``12.5``
    meant 12.005 µs). This error shows only once the whole file is read: `load` corrects the times, `read_events` does
    not.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.

    Yields:
        Models of `htagraph.trace.kineto.events`, each with every argument that the file had.

    Raises:
        TraceError: the file cannot be read, or an event does not fit its model; the message names event and field.

    Warns:
        UserWarning: after the last event, if the file is damaged: what was repaired or lost.

    Example:
        >>> import htagraph as hg
        >>> first = next(hg.read_events("data/demo/rank-0.json.gz"))
        >>> first.ph in "XMisfC"
        True
    """
    path = path_of(path)
    log = IssueLog(str(path))
    for position, raws in split(iter_bytes(path, log), event_decoder(), {}, log):
        for number, raw in enumerate(raws, position):
            yield parsed(raw, number, path)
    if log.issues():
        problems = "; ".join(f"{issue.detail} ({issue.count})" for issue in log.issues())
        warnings.warn(f"{path}: {problems}", stacklevel=2)


def survey(path: TracePath, *, and_tail: bool) -> Facts:
    """Return the facts that stand before the events: cheap, enough to find a file's rank.

    With `and_tail`, a ``distributedInfo`` that is not before the events is looked for behind them, where traces on
    demand (requested from outside the job) have it: this decompresses the whole of a packed file.
    """
    log = IssueLog(str(path))
    raw: dict[str, Any] = {}
    find_events(iter_bytes(path, log, piece_bytes=SMALL_BYTES), raw, log)
    if and_tail and "distributedInfo" not in raw:
        from htagraph.trace.kineto.salvage import salvage_header  # few files have a header behind the events

        tail, most = b"", path.stat().st_size - _TAIL_BYTES  # a packed file holds more, and has to be unpacked
        for piece in iter_bytes(path, log, start=max(0, most)):
            tail = (tail + piece)[-_TAIL_BYTES:]
        raw |= salvage_header(tail, log)
    return _facts(_header(raw, log), raw, log)


def metadata(facts: Facts) -> dict[str, Any]:
    """Return what a file says beside its events, by the keys of Kineto, with the types of the schema."""
    return _header(dict(facts.written), IssueLog("")).model_dump(by_alias=True, exclude_none=True)


def parsed(raw: dict[str, Any], number: int, path: TracePath) -> Event:
    """Return an event of a file as its model."""
    try:
        return parse_event(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"{path}: event {number}: {where}: {first['msg']} (got {shown(first['input'])})"
        raise TraceError(msg) from error


def _header(raw: dict[str, Any], log: IssueLog) -> Header:
    try:
        return Header.model_validate(raw)
    except ValidationError as error:
        bad = {str(problem["loc"][0]) for problem in error.errors()}
        for key in sorted(bad):
            log.add("header_key_lost", f"header key {key} has an unexpected type; ignored")
        return Header.model_validate({key: value for key, value in raw.items() if key not in bad})


def _facts(header: Header, raw: Mapping[str, Any], log: IssueLog) -> Facts:
    """Return what a header says, in the words of all formats."""
    info = header.distributed_info or DistributedInfo()
    settings = raw.get(_SETTINGS_KEY)
    if not 0 <= (info.world_size or 0) <= MAX_RANKS:
        log.add("header_key_lost", f"world_size {info.world_size} is no number of ranks; ignored")
        info = info.model_copy(update={"world_size": None})
    listed: list[Any] = [each.ranks for each in info.pg_config]
    for number, ranks in enumerate(listed):
        if isinstance(ranks, list):
            listed[number], plain = _shared(tuple(ranks))
            with suppress(LookupError, TypeError):  # a file may give the header another name
                raw["distributedInfo"]["pg_config"][number]["ranks"] = plain
    run = {
        "world size": info.world_size,
        "job": header.job_name,
        "version": header.job_version,
        "attempt": header.job_attempt_index,
    }
    return Facts(
        rank=info.rank, world_size=info.world_size or 0, backend=info.backend or "", host=header.host_name or "",
        groups=tuple(
            Group(each.pg_name or "", each.pg_desc or "", each.pg_size, ranks)
            for each, ranks in zip(info.pg_config, listed, strict=True)
        ),
        devices=tuple(map(_device, header.device_properties)),
        job=header.job_name or "", run=", ".join(f"{what} {value}" for what, value in run.items() if value is not None),
        base_ns=header.base_time_nanoseconds, has_shapes=bool(header.record_shapes or header.with_flops),
        has_stacks=bool(header.with_stack), on_cuda=header.cuda_runtime_version is not None,
        settings=settings if isinstance(settings, dict) else {}, exported=EXPORTED_KEY in raw, written=raw,
    )  # fmt: skip


def _device(properties: DeviceProperties) -> Device:
    """Return a device of a header, by its shape where it has no name."""
    memory = max(properties.total_global_mem or 0, 0)
    architecture = (properties.compute_major or 0, properties.compute_minor or 0)
    shape = DeviceShape(architecture, properties.num_sms or 0, memory, properties.warp_size or 0)
    return Device(properties.id, properties.name or name_by_shape(shape), memory)


@lru_cache
def _shared(ranks: tuple[int, ...]) -> tuple[tuple[int, ...], list[int]]:
    """Return ranks for groups and for headers: each file lists all ranks, so they are shared by the files of a job."""
    return ranks, list(ranks)


_LARGE_BYTES = 1 << 20
"""Bytes of a file, packed or not, from which a compiled scan reads its events again. Chosen: it takes 0.1 s to load,
and saves as much on a packed file of that size. Doubled, files of 1 to 2 MB take up to 0.1 s more."""
_EXAMPLE_LENGTH = 80
"""Characters of an example value. Chosen to fit a table; a longer limit makes the table wider, no count changes."""
_Kind: TypeAlias = tuple[str, str | None, str]
"""(phase, category, name of an instant event): what decides the model of an event."""


def event(trace: Trace, index: int) -> Event:
    """Return the event at position `index` of the events of a file that was read, as its model."""
    starts = trace.bookmarks[STARTS]
    before = np.flatnonzero(starts[:, 0] <= index)
    start = tuple(starts[before[-1]].tolist()) if len(before) else (0, -1)
    return read_event(trace.unchanged_path(), index, start, unpadded=bool(trace.bookmarks[UNPADDED][0]))


def read_event(path: TracePath, index: int, start: tuple[int, int] = (0, -1), *, unpadded: bool = False) -> Event:
    """Return the event at position `index` of the file's events.

    Reading begins at `start`: an event at or before it, and where its text begins in the decompressed file (-1: at the
    beginning), see `STARTS`. With `unpadded`, fractions of times get their leading zeros, see `UNPADDED`.
    """
    log = IssueLog(str(path))
    before, at = start
    pieces = iter_bytes(path, log) if at < 0 else itertools.chain((b"[",), iter_bytes(path, log, start=at))
    for position, texts in split(pieces, event_text_decoder(), {}, log):
        number = index - before - position
        if number < len(texts):
            # through split, since text that bulk decoding skips, such as bad UTF-8, may need repair
            alone = iter((b"[", bytes(texts[number]), b"]"))
            for _, raws in split(alone, event_decoder(), {}, log):
                return parsed(_padded(raws[0]) if unpadded else raws[0], index, path)
            break
    msg = f"{path}: has no event {index}; was the file changed since it was loaded?"
    raise TraceError(msg)


def _padded(raw: dict[str, Any]) -> dict[str, Any]:
    """Return an event with the leading zeros that the fractions of its times lack."""
    return raw | {key: padded(str(raw[key])) for key in ("ts", "dur") if isinstance(raw.get(key), Decimal | str)}


def arguments(path: TracePath, names: Sequence[str], events: Array, *, as_text: bool) -> dict[str, Array]:
    """Return some arguments of some events of a file, each as an array of objects; the file is read once.

    `as_text` gives the JSON (bytes) that a value is. An event that lacks an argument has None.
    """
    columns = {name: np.full(len(events), None, object) for name in names}
    order = np.argsort(events, kind="stable")
    ascending = events[order]
    fields = {name: f"argument_{i}" for i, name in enumerate(names)}
    struct = _event_struct(fields, msgspec.Raw if as_text else Any)
    decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder(list[struct]).decode  # type: ignore[valid-type]
    decode_one: Callable[[bytes], Any] = msgspec.json.Decoder(struct).decode
    for position, block in _blocks(path, decode, _scan(path)):
        in_block = slice(*np.searchsorted(ascending, (position, position + len(block))))
        some = map(block.__getitem__, (ascending[in_block] - position).tolist())
        args = [(decode_one(one) if isinstance(one, bytes) else one).args for one in some]
        for name, field in fields.items():
            found: Iterator[Any] = map(attrgetter(field), args)
            if as_text:  # a msgspec.Raw would keep the whole block in memory
                found = (None if each is None else bytes(each) for each in found)
            columns[name][order[in_block]] = np.fromiter(found, object, len(args))
        if in_block.stop == len(events):
            break  # what follows was not asked for
    return columns


def category_arguments(path: TracePath, category: str | None = None) -> pd.DataFrame:
    """Return every argument of a file's events of one category, or of all events, activities or not.

    One row per event, indexed by its position in the file's events (``event``, int64), one column (object) per argument
    that any of them has, in the order of appearance; NaN or None where an event lacks it.
    """
    import pandas as pd  # takes a moment to load, and single events do without

    raw = msgspec.defstruct("CategoryEvent", [*ENVELOPE, ("args", msgspec.Raw, msgspec.Raw(b"{}"))], gc=False)
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    positions: list[int] = []
    args_by_event: list[dict[str, Any]] = []
    wanted: dict[int | float | str | None, bool] = {}
    for position, events in _blocks(path, msgspec.json.Decoder(list[raw]).decode):  # type: ignore[valid-type]
        for label in {event.cat for event in events}.difference(wanted):
            wanted[label] = category is None or canonical_category(str(label)) == category
        for number, event in enumerate(events, position):
            if wanted[event.cat]:
                positions.append(number)
                args_by_event.append(decode(event.args))
    return pd.DataFrame(args_by_event, index=pd.Index(positions, dtype="int64", name="event"), dtype=object)


def _scan(path: TracePath) -> Callable[[memoryview, int], EventTexts | None] | None:
    """Return what finds the texts of events quickly; None for small files, for which it is not worth loading."""
    if path.stat().st_size < _LARGE_BYTES:
        return None
    from htagraph.trace.kineto.scan.scanner import EventTextScanner  # numba takes a moment to load

    return EventTextScanner()


def _event_struct(fields: dict[str, str], value: Any) -> type[msgspec.Struct]:  # noqa: ANN401 - a type
    keys = {field: name for name, field in fields.items()}
    args = msgspec.defstruct("SomeArgs", [(field, value, None) for field in keys], rename=keys, gc=False, frozen=True)
    return msgspec.defstruct("EventWithSomeArgs", [*ENVELOPE, ("args", args, args())], gc=False)


def _blocks(
    path: TracePath,
    decode: Callable[[bytes], list[Any]],
    scan: Callable[[memoryview, int], EventTexts | None] | None = None,
) -> Iterator[tuple[int, Any]]:
    log = IssueLog(str(path))  # problems of the file were reported when it was loaded
    return split(iter_bytes(path, log), decode, {}, log, scan)


@dataclass
class _Tally:
    """Counts for one argument of one category."""

    known: bool
    events: int = 0
    converted: int = 0
    wrong: int = 0
    example: str = ""


@described(CHECKED)
def check_arguments(path: str | PathLike[str]) -> pd.DataFrame:
    """Return every argument that the events of a file have, and how many values of each argument have another type.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.

    Returns:
        One row per category and argument, sorted by category, then by first appearance: {columns}.

    Raises:
        TraceError: the file cannot be read.

    Example:
        >>> table = check_arguments("data/demo/rank-0.json.gz")
        >>> int(table["wrong"].sum())
        0

    Source: HTA's validate_trace_format.
    """
    log = IssueLog(str(path))
    blocks = split(iter_bytes(path_of(path), log), event_decoder(), {}, log)
    return checked(events for _, events in blocks)


def checked(blocks: Iterable[Iterable[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return the table of `check_arguments`, of blocks of events with Kineto's keys."""
    tallies: dict[tuple[str, str], _Tally] = {}
    for events in blocks:
        values: dict[_Kind, dict[str, list[Any]]] = {}
        for event in events:
            for key, value in (event.get("args") or {}).items():
                values.setdefault(_kind(event), {}).setdefault(key, []).append(value)
        for kind, arguments in values.items():
            for key, written in arguments.items():
                _check(tallies, kind, key, written)
    rows = [(*key, t.known, t.events, t.converted, t.wrong, t.example) for key, t in tallies.items()]
    return CHECKED.frame(rows).sort_values("category", kind="stable", ignore_index=True)


def _kind(event: Mapping[str, Any]) -> _Kind:
    """Return the (phase, category, name of an instant event) that decide an event's model."""
    phase, category = str(event.get("ph")), event.get("cat")
    name = str(event.get("name")).partition(":")[0] if phase in ("i", "I") else ""
    return phase, None if category is None else str(category), name


def _check(tallies: dict[tuple[str, str], _Tally], kind: _Kind, key: str, values: list[Any]) -> None:
    """Count the values of one argument of one kind of event."""
    phase, category, name = kind
    adapter = _adapters(kind).get(key)
    label = canonical_category(category) if category else name or f"phase {phase}"
    tally = tallies.setdefault((label, key), _Tally(known=adapter is not None))
    tally.events += len(values)
    if adapter is None:
        return
    try:
        parsed, wrong = adapter.validate_python(values), []
    except ValidationError as error:
        places = {int(problem["loc"][0]) for problem in error.errors(include_url=False)}
        wrong = [values[place] for place in sorted(places)]
        values = [value for place, value in enumerate(values) if place not in places]
        parsed = adapter.validate_python(values)
    pairs = zip(values, parsed, strict=True)  # nulls count, and texts for numbers and numbers for texts
    converted = [one for one, other in pairs if one is None or isinstance(one, str) != isinstance(other, str)]
    if wrong and not tally.wrong:
        tally.example = _text(wrong[0])
    elif converted and not tally.example:
        tally.example = _text(converted[0])
    tally.wrong += len(wrong)
    tally.converted += len(converted)


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _EXAMPLE_LENGTH else text[: _EXAMPLE_LENGTH - 1] + "…"


@cache
def _adapters(kind: _Kind) -> dict[str, TypeAdapter[list[Any]]]:
    """Return, for each argument of a kind of event, a validator of lists of its values."""
    phase, category, name = kind
    raw = {"ph": phase, "name": name} | ({} if category is None else {"cat": category})
    model: type[Event] = type(parse_event(raw))
    several: Any = list
    fields = getattr(model.model_fields["args"].annotation, "model_fields", {})
    return {
        str(key): TypeAdapter(several[each.annotation], config=ConfigDict(coerce_numbers_to_str=True))
        for each in fields.values()
        for key in getattr(each.validation_alias, "choices", ())
    }
