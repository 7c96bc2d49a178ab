"""What names in exports say: calls with a version, NVTX ranges that PyTorch wrote, ranges that are steps, NCCL's."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, looked_up
from htagraph.core.naming import step_number
from htagraph.core.transfers import DIRECTIONS

__all__ = ["NCCL", "Operator", "collective", "copy_name", "domain_of", "forward_threads", "operator", "steps"]

NCCL: Final = "NCCL"
"""The domain of NCCL's ranges."""
_OPERATOR: Final = re.compile(r"\w+(?:::\w+)*(?:: \w[\w:]*)?", re.ASCII)
_NUMBER: Final = re.compile(r"\d+", re.ASCII)
_ONE_NUMBER: Final = re.compile(r"\D*(\d{1,9})\D*", re.ASCII | re.DOTALL)  # step numbers are int32
_STEP: Final = re.compile(
    r"(?:^|[^a-z])(?:step|iter|iteration|batch|microstep|train_?step|training_?step)(?![a-z])", re.IGNORECASE | re.ASCII
)
_NCCL_CALL: Final = re.compile(r"p?nccl[A-Z]\w*", re.ASCII)
_NAMED_STEPS = 0.5
"""Share of the time from a rank's first launch to its last that ranges cover if their names say that they are steps.
Chosen: steps follow each other, and recordings begin and end between them. Doubled, nothing is a step."""
_ANY_STEPS = 0.9
"""The same share where names say nothing of steps. Chosen: only steps cover a recording. Doubled, nothing is a step."""


def copy_name(kind: int, source: str, target: str) -> str:
    """Return the name of a copy as PyTorch's profiler has it.

    Example:
        >>> copy_name(1, "Pinned", "Device")
        'Memcpy HtoD (Pinned -> Device)'
    """
    return f"Memcpy {DIRECTIONS.get(kind, 'Unknown')} ({source} -> {target})"


class Operator(NamedTuple):
    """An NVTX range that `torch.autograd.profiler.emit_nvtx` wrote."""

    name: str
    sequence: int
    """-1 for none."""
    sizes: str
    """Shapes of its inputs as JSON; empty if they were not recorded."""
    is_operator: bool
    """False for what a program named by `record_function`."""


def operator(text: str) -> Operator | None:
    """Return what PyTorch wrote into the name of a range, or None for a range of the program's own.

    Example:
        >>> operator("aten::mm, seq = 12, op_id = 7, sizes = [[2, 3], [3, 4]]")
        Operator(name='aten::mm', sequence=12, sizes='[[2, 3], [3, 4]]', is_operator=True)
        >>> operator("forward, part 2") is None
        True
    """
    rest, _, _ = text.partition(", input_op_ids = ")
    rest, _, sizes = rest.partition(", sizes = ")
    rest, by_id, number = rest.rpartition(", op_id = ")
    rest = rest if by_id else number
    name, by_sequence, sequence = rest.rpartition(", seq = ")
    if not (by_id or by_sequence or sizes):
        return None
    known = bool(by_sequence) and sequence.isascii() and sequence.isdigit() and len(sequence) <= 18
    name = name if known else rest
    return Operator(name, int(sequence) if known else -1, _shapes(sizes), _OPERATOR.fullmatch(name) is not None)


def _shapes(text: str) -> str:
    """Return a list of shapes as JSON, empty if it is cut short."""
    return text if text.startswith("[") and text.endswith("]") and not text.strip("[]0123456789, ") else ""


def domain_of(name: str, domain: str) -> str:
    """Return the name of a range with its domain, as Nsight Systems shows it; NCCL's domain is known by its calls.

    Example:
        >>> domain_of("ncclAllReduce", ""), domain_of("forward", ""), domain_of("forward", "model")
        ('NCCL:ncclAllReduce', 'forward', 'model:forward')
    """
    domain = domain or (NCCL if _NCCL_CALL.fullmatch(name) else "")
    return f"{domain}:{name}" if domain else name


def collective(payload: str) -> dict[str, Any]:
    """Return what the payload of one of NCCL's ranges says, by label; nothing if it is no JSON.

    Example:
        >>> collective('{"NCCL communicator ID": 7, "Message size [bytes]": 4096}')
        {'NCCL communicator ID': 7, 'Message size [bytes]': 4096}
    """
    try:
        found = json.loads(payload) if payload else None
    except (ValueError, RecursionError):
        return {}
    flat: dict[str, Any] = {}
    levels = [found]
    while levels:
        level = levels.pop()
        if isinstance(level, dict):
            flat |= {str(key): value for key, value in level.items() if not isinstance(value, dict | list)}
            levels += [value for value in level.values() if isinstance(value, dict | list)]
        elif isinstance(level, list):
            levels += level
    return flat


def steps(
    names: Sequence[str], start: Array, end: Array, thread: Array, window: tuple[int, int]
) -> tuple[str, dict[int, int]]:
    """Return (the name that steps have in common, the number of the step that each range is, by its position).

    Steps are ranges that repeat on one thread, that do not overlap, and that cover a rank's time, from its first launch
    to its last (`window`, ns): most of it where they are named so, else nearly all. Numbers are those in the names if
    they ascend, else they count from 0. Where there are `ProfilerStep` ranges, none are needed.

    Example:
        >>> names, at = ["iter 3", "iter 4", "loss"], np.array([0, 10, 12])
        >>> steps(names, at, at + 9, 0 * at, (1, 19))
        ('iter #', {0: 3, 1: 4})
    """
    groups: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    if any(step_number(name) is not None for name in names):
        return "", {}
    for row in np.lexsort((-end, start)).tolist():
        groups[_NUMBER.sub("#", names[row]), int(thread[row])].append(row)
    best: tuple[bool, float, int, str, list[int]] = (False, 0.0, 0, "", [])
    for (name, _), rows in groups.items():
        first, last = start[rows], end[rows]
        named = _STEP.search(name) is not None
        if len(rows) < 2 or (first[1:] < last[:-1]).any() or (not named and "#" in name):  # parts, such as layer 3
            continue
        inside = np.minimum(last, window[1]) - np.maximum(first, window[0])
        share = float(np.maximum(inside, 0).sum()) / max(1, window[1] - window[0])
        if share >= (_NAMED_STEPS if named else _ANY_STEPS):
            best = max(best, (named, round(share, 2), -len(rows), name, rows))
    *_, name, rows = best
    only = [_ONE_NUMBER.fullmatch(names[row]) for row in rows]
    numbers = [int(found[1]) for found in only if found]
    ascend = len(numbers) == len(rows) and numbers == sorted(set(numbers))
    return name, dict(zip(rows, numbers if ascend else range(len(rows)), strict=True))


def forward_threads(sequence: Array, backward: Array, thread: Array) -> Array:
    """Return for each operator the thread whose forward operator it is the backward of, 0 for none.

    Operators share the sequence number of autograd; of those with one number, the forward ones have other names.
    """
    forward = np.flatnonzero((sequence >= 0) & ~backward)
    order = forward[np.argsort(sequence[forward], kind="stable")]
    return np.where(backward, looked_up(sequence[order], thread[order], sequence, 0), 0)
