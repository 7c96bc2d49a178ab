"""The facts of a recording in a file: few, as the format has no place for ranks, devices and settings."""

from __future__ import annotations

import itertools
from typing import Final

from htagraph.core.errors import IssueLog, NotATraceError
from htagraph.core.naming import FRAME, RUNTIME_CATEGORIES
from htagraph.trace.columns import Facts
from htagraph.trace.kineto.scan.grammar import with_padding
from htagraph.trace.kineto.source import SMALL_BYTES, iter_bytes
from htagraph.trace.pftrace.packets import (
    ANNOTATION_NAMES,
    CATEGORY_NAMES,
    Packets,
    packets_of,
    refuse_foreign,
    text_of_file,
)
from htagraph.trace.remote import TracePath

__all__ = ["facts_of", "survey"]

_EXPORTED: Final = "args"
"""The one name of arguments in files that htagraph exports."""
_ELSEWHERE: Final = "an export to .json"
_LACKS: Final = (
    (
        "ranks, groups and devices",
        "the format has no place for what PyTorch knows of the job",
        _ELSEWHERE,
    ),
    (
        "directions of copies",
        "PyTorch does not write them in this format",
        _ELSEWHERE,
    ),
)


def survey(path: TracePath, *, and_tail: bool) -> Facts:
    """Return the facts in the first packets of a file."""
    log = IssueLog(str(path))
    pieces = iter_bytes(
        path,
        log,
        piece_bytes=SMALL_BYTES,
        check=refuse_foreign,
    )
    head = b"".join(itertools.islice(pieces, 1))
    try:
        packets = packets_of(
            with_padding(head),
            log,
            whole=False,
        )
    except NotATraceError:  # the first packet may be long
        packets = packets_of(text_of_file(path, log), log)
    return facts_of(packets)


def facts_of(packets: Packets) -> Facts:
    """Return the facts in the packets of a file."""
    categories = packets.interned_texts(CATEGORY_NAMES)
    keys = packets.interned_texts(ANNOTATION_NAMES)
    is_export = keys == [_EXPORTED] and packets.base_ns is None
    return Facts(
        base_ns=packets.base_ns,
        has_stacks=FRAME in categories,
        on_cuda=bool(RUNTIME_CATEGORIES & set(categories)),
        exported=is_export,
        lacks=() if is_export else _LACKS,
        written={"clocks": packets.offsets},
    )
