"""What columns say, free of the numbers of names, categories and lanes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from htagraph.trace.columns import Events
from htagraph.trace.kept import Extents
from htagraph.trace.kineto.collecting import Columns, add_events
from htagraph.trace.kineto.decode import BlockDecoder
from htagraph.trace.kineto.events import call_columns, columns
from htagraph.trace.kineto.from_blocks import BlockColumns
from htagraph.trace.kineto.scan.scanner import Scanner
from tests.damage import Json, log

_TEXTS = {bulk.column.name for bulk in (*columns(), *call_columns()) if bulk.column.dtype == "str"}


def collected(
    pieces: Sequence[Sequence[Json]], *, compiled: bool = True, exact: bool = False, calls: bool = False
) -> Columns:
    """Return the columns of events that come in several pieces."""
    into, scanner, position = Columns(log()), Scanner(calls=calls), 0
    decode = BlockDecoder({"distributedInfo": {"backend": "gloo"}} if calls else {})
    decode.exact = exact
    blocks = BlockColumns(into)
    for events in pieces:
        text = json.dumps(events).encode()
        if compiled:
            block, _ = scanner.scan(text[1:-1], 0, exact=exact)
            assert block is not None
            blocks.add(position, block)
        else:
            add_events(into, position, decode(text))
        position += len(events)
    return into


def described(into: Columns) -> Json:
    """Return everything that columns say; ask only once, because durations below 0 are reported."""
    flows, lanes = into.flows(Extents().result()), list(into.lanes.lanes)
    return {
        "events": _rows(into, into.table()),
        "instants": _rows(into, into.instants()),
        "flows": [
            (identity, is_start, lanes[lane], time)
            for identity, is_start, lane, time in zip(
                flows.id.tolist(), flows.is_start.tolist(), flows.lane.tolist(), flows.time.tolist(), strict=True
            )
        ],
        "counts": {phase: count for phase, count in into.counts.items() if count},
        "threads": into.thread_names,
        "durations": [(position, event.ph, event.name) for position, event in into.durations],
        "window end": into.window_end,
        "style": into.style,
        "issues": [(issue.what, issue.detail, issue.count) for issue in into.log.issues(0)],
    }


def _rows(into: Columns, table: Events) -> list[dict[str, Any]]:
    names, categories, lanes = list(into.names), list(into.categories), list(into.lanes.lanes)
    args = {name: column.dense(len(table)).tolist() for name, column in table.args.items()}
    return [
        {
            "index": int(table.index[row]), "name": names[table.name[row]], "category": categories[table.category[row]],
            "lane": lanes[table.lane[row]], "start": int(table.start[row]), "duration": int(table.duration[row]),
            **{
                name: ("" if values[row] < 0 else names[values[row]]) if name in _TEXTS else values[row]
                for name, values in args.items()
            },
        }
        for row in range(len(table))
    ]  # fmt: skip
