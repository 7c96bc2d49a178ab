"""Events read again from their file: one with all its arguments, some arguments of many, every argument tested."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from operator import attrgetter
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
from pydantic import TypeAdapter, ValidationError

from htagraph.core.arrays import Array
from htagraph.core.errors import IssueLog, TraceError
from htagraph.core.tables import described
from htagraph.trace.columns import CHECKED, Trace
from htagraph.trace.kineto.decode import ENVELOPE, event_decoder, event_text_decoder
from htagraph.trace.kineto.events import Event, canonical_category, parse_event
from htagraph.trace.kineto.read import STARTS, UNPADDED, parsed
from htagraph.trace.kineto.source import iter_bytes
from htagraph.trace.kineto.split import split
from htagraph.trace.kineto.times import padded
from htagraph.trace.remote import TracePath, path_of

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.trace.kineto.scan.scanner import EventTexts

__all__ = ["arguments", "category_arguments", "check_arguments", "event", "read_event"]

_Label = int | float | str | None
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
    beginning), see `read.STARTS`. With `unpadded`, fractions of times get their leading zeros, see `read.UNPADDED`.
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
    wanted: dict[_Label, bool] = {}
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
    tallies: dict[tuple[str, str], _Tally] = {}
    log = IssueLog(str(path))
    for _, events in split(iter_bytes(path_of(path), log), event_decoder(), {}, log):
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
    converted = [value for value, result in zip(values, parsed, strict=True) if _is_converted(value, result)]
    if wrong and not tally.wrong:
        tally.example = _text(wrong[0])
    elif converted and not tally.example:
        tally.example = _text(converted[0])
    tally.wrong += len(wrong)
    tally.converted += len(converted)


def _is_converted(value: object, result: object) -> bool:
    """Return True if a value was null, or had to be converted from text to number or from number to text."""
    return value is None or isinstance(value, str) != isinstance(result, str)


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
        str(key): TypeAdapter(several[each.annotation])
        for each in fields.values()
        for key in getattr(each.validation_alias, "choices", ())
    }
