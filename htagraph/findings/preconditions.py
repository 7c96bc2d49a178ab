"""Preconditions of an advice: facts that must hold so that a person can follow it, checked against the recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

from htagraph.analyses.roofline import roofline
from htagraph.core import naming
from htagraph.core.arrays import Ints, marked
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import MOST
from htagraph.findings.phrases import spoken
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.allocator import allocator_calls
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.arguments import argument_texts
from htagraph.queries.fetched_values import use_of
from htagraph.queries.host_time import MANY, calls_that_wait
from htagraph.queries.pytorch_version import Version, has_version

__all__ = [
    "ARE_MANY",
    "CACHES_MEMORY",
    "GO_TO_DEVICE",
    "HAS_FUSED_CLASS",
    "HAS_GRAPHS",
    "HAS_ROOFS",
    "HAS_ROOM",
    "HAS_WIDE_GRADIENTS",
    "IS_CAPTURABLE",
    "IS_NOT_REPLAYED",
    "IS_NOT_USED_AT_ONCE",
    "IS_REPEATED",
    "SHAPES_COME_AGAIN",
    "Precondition",
    "checks_of",
]

_FUSED_SINCE: Final[dict[str, Version]] = {"Adam": (2, 0), "AdamW": (2, 0), "SGD": (2, 3), "Adagrad": (2, 4)}
"""Version of PyTorch since which each class of its optimizers has fused=True. Source: torch/optim of PyTorch 1.13 to
2.13."""
_LATELY_FUSED: Final = frozenset({"Adagrad"})
"""Classes with fused=True for devices in recent versions alone. Source: the same."""


_TYPE_ARGUMENTS: Final = ("dtype", "Input type")
"""Arguments in which the profiler writes the type that a collective sends: on devices, and on hosts."""
_FLOAT32: Final = re.compile(r"\bfloat(32)?\b")
"""Single precision in these arguments, in small letters. Source: torch.profiler of PyTorch 2."""


class Precondition(NamedTuple):
    """A fact that an advice rests on."""

    holds: Callable[[DependencyGraph, Ints], bool | None]
    """Returns whether the fact holds, given a job and the activities of the advice; None where nothing recorded says
    so."""
    check: str = ""
    """The fact to check where nothing recorded says so, as a sentence; empty for a fact that needs no check."""


def checks_of(preconditions: Iterable[Precondition], graph: DependencyGraph, rows: Ints) -> tuple[str, ...] | None:
    """Return sentences on facts to check before an advice is followed; None where a precondition is false.

    Args:
        preconditions: the preconditions of the advice.
        graph: the job.
        rows: the activities that the advice is about.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> checks_of([HAS_GRAPHS], graph, graph.select(rank=0).activities)
        ()
    """
    checks = list[str]()
    for precondition in preconditions:
        holds = precondition.holds(graph, rows)
        if holds is None:
            checks += spoken(precondition.check)
        elif not holds:
            return None
    return tuple(checks)


def _has_fused_class(graph: DependencyGraph, rows: Ints) -> bool | None:
    """Return whether the optimizers of some regions have a fused implementation that the job does not use yet.

    The version of PyTorch counts as far as the recording tells it.
    """
    acts = graph.activities
    inside = graph.tree.inside(marked(rows, len(acts)))
    is_fused = naming.names_that(naming.is_fused_optimizer, graph.names)[acts.name]
    if (inside & is_fused).any():
        return False
    names = np.unique(acts.name[rows]).tolist()
    classes = {naming.optimizer_class(graph.names[name]) for name in names}
    if not classes <= set(_FUSED_SINCE):
        return False
    answers = {has_version(graph, _FUSED_SINCE[class_name]) for class_name in classes}
    if False in answers:
        return False
    return None if None in answers or classes & _LATELY_FUSED else True


def _has_graphs(graph: DependencyGraph, _rows: Ints) -> bool | None:
    """Return whether a job launches through CUDA or HIP, as the names of its launch calls say."""
    acts = graph.activities
    names = np.unique(acts.name[acts.kind == ActivityKind.LAUNCH]).tolist()
    if not names:
        return None
    return any(naming.is_of_graphs(graph.names[name]) for name in names)


def _is_not_replayed(graph: DependencyGraph, rows: Ints) -> bool:
    """Return whether graphs replay no more than half of some device work already."""
    acts = graph.activities
    cause = acts.cause[rows]
    is_replay = naming.names_that(naming.is_graph_launch, graph.names)[acts.name[cause]] & (cause >= 0)
    return bool(is_replay.sum() <= MOST * len(rows))


def _are_many(_graph: DependencyGraph, rows: Ints) -> bool:
    """Return whether there are as many activities as many small pieces of work."""
    return len(rows) >= MANY


def _has_room(graph: DependencyGraph, _rows: Ints) -> bool | None:
    """Return whether the allocators of all devices hold less than nearly all memory of their devices."""
    fullest = -1.0
    for trace in graph.traces.values():
        table = trace.instants
        if not len(table):
            continue
        kind = table.arg("device_type")
        number = table.arg("device_id")
        reserved = table.arg("total_reserved")
        for device in trace.facts.devices:
            held = reserved[(kind > 0) & (number == device.id)]
            if device.memory and held.max(initial=0) > 0:
                fullest = max(fullest, float(held.max()) / device.memory)
    return None if fullest < 0 else fullest < LIMITS.nearly_all


def _caches_memory(graph: DependencyGraph, _rows: Ints) -> bool:
    """Return whether memory is cached: without a cache, most kernels have a call for the memory of their result."""
    launches = np.count_nonzero(graph.activities.kind == ActivityKind.LAUNCH)
    calls = len(allocator_calls(graph))
    return bool(not launches or calls < MOST * launches)


def _is_capturable(graph: DependencyGraph, _rows: Ints) -> bool | None:
    """Return whether most launches of a step follow each other with no call that waits for the device between them.

    A captured region holds no wait, and no decision of the host by a value of the device. Without steps, nothing says
    which launches repeat, unless most of all follow each other.
    """
    acts = graph.activities
    is_launched = acts.on_device & (acts.cause >= 0)
    launched = np.unique(acts.cause[is_launched]).astype(np.int64)
    is_in_step = acts.step[launched] >= 0
    has_steps = bool(is_in_step.any())
    if has_steps:
        launched = launched[is_in_step]
    calls = calls_that_wait(graph)
    shares = list[float]()
    for rank in graph.ranks:
        of_rank = launched[acts.rank[launched] == rank]
        waits = calls[acts.rank[calls] == rank]
        ends = np.sort(graph.time[2 * waits + 1])
        stretch = np.searchsorted(ends, acts.start[of_rank], side="right")
        shares += _largest_shares(stretch, acts.step[of_rank])
    if not shares or float(np.median(shares)) > MOST:
        return True
    return False if has_steps else None


def _largest_shares(stretch: Ints, step: Ints) -> list[float]:
    """Return for each step the share of its launches that the stretch with most of them has.

    Args:
        stretch: the number of the stretch between two waits, for each launch.
        step: the step of each launch.
    """
    shares = list[float]()
    for number in np.unique(step).tolist():
        in_step = stretch[step == number]
        most = int(np.bincount(in_step).max())
        shares.append(most / len(in_step))
    return shares


def _is_not_used_at_once(graph: DependencyGraph, rows: Ints) -> bool:
    """Return whether the values that calls wait for may be fetched later, or more rarely."""
    return not use_of(graph, rows)


def _is_repeated(graph: DependencyGraph, rows: Ints) -> bool:
    """Return whether copies are of a loader, in steps, or have computation between them: a model is copied once."""
    acts = graph.activities
    names = np.unique(acts.name[~acts.on_device]).tolist()
    if any(naming.is_data_loader(graph.names[name]) for name in names):
        return True
    if (acts.step[rows] >= 0).any():
        return True
    computes = acts.kind == ActivityKind.COMPUTATION
    for rank in np.unique(acts.rank[rows]).tolist():
        kernels = np.flatnonzero(computes & (acts.rank == rank))
        copies = rows[acts.rank[rows] == rank]
        starts = np.sort(acts.start[kernels])
        place = np.searchsorted(starts, acts.start[copies])
        if len(np.unique(place)) > 1:
            return True
    return False


def _has_wide_gradients(graph: DependencyGraph, rows: Ints) -> bool | None:
    """Return whether most reductions whose type was recorded are in float32; None where no type was recorded.

    The type stands beside a kernel, or beside the operator that launched it.
    """
    acts = graph.activities
    cause = acts.cause[rows]
    launches = cause[acts.on_device[rows] & (cause >= 0)]
    operators = graph.tree.nearest(acts.kind == ActivityKind.OP, launches)
    launching = operators[operators >= 0]
    beside = np.unique(np.concatenate([rows, launching]))
    texts = argument_texts(graph, [*_TYPE_ARGUMENTS], beside)
    types = [text.decode().lower() for argument in _TYPE_ARGUMENTS for text in texts[argument] if text]
    is_wide = [bool(_FLOAT32.search(text)) for text in types]
    return float(np.mean(is_wide)) > MOST if types else None


def _has_roofs(graph: DependencyGraph, _rows: Ints) -> bool:
    """Return whether the work of some operator can be counted, without which a roofline has no answer."""
    return bool(len(roofline(graph)))


def _shapes_come_again(graph: DependencyGraph, rows: Ints) -> bool | None:
    """Return whether most calls have shapes of inputs that many other calls have; None where none were recorded."""
    shapes = [text for text in argument_texts(graph, ["Input Dims"], rows)["Input Dims"] if text]
    return len(shapes) >= MANY * len(set(shapes)) if shapes else None


def _go_to_device(graph: DependencyGraph, _rows: Ints) -> bool | None:
    """Return whether memory of the host is copied to a device; None where no device work was recorded."""
    acts = graph.activities
    if not acts.on_device.any():
        return None
    copied = np.unique(acts.name[acts.kind == ActivityKind.MEMORY]).tolist()
    return any(naming.is_copy_to_device(graph.names[name]) for name in copied)


HAS_WIDE_GRADIENTS: Final = Precondition(
    _has_wide_gradients, "The type of gradients was not recorded: 16 bits help float32 only."
)
"""The gradients that ranks reduce are in float32."""
HAS_FUSED_CLASS: Final = Precondition(
    _has_fused_class, "Adam has it since PyTorch 2.0, SGD since 2.3, Adagrad for devices in recent versions alone."
)
"""The class of the optimizer has fused=True, and the job does not use it yet."""
HAS_GRAPHS: Final = Precondition(_has_graphs, "CUDA graphs need a device of CUDA or HIP.")
"""The device replays graphs."""
IS_NOT_REPLAYED: Final = Precondition(_is_not_replayed)
"""The work is not in CUDA graphs already."""
ARE_MANY: Final = Precondition(_are_many)
"""There are many small pieces of work."""
HAS_ROOM: Final = Precondition(_has_room)
"""Memory is not nearly full, so that a job may take more of it."""
CACHES_MEMORY: Final = Precondition(_caches_memory)
"""Memory that tensors give back is kept by PyTorch's allocator."""
IS_CAPTURABLE: Final = Precondition(
    _is_capturable, "CUDA graphs hold only code in which the host never waits for the device."
)
"""Most launches of a step follow each other with no wait for the device between them."""
IS_NOT_USED_AT_ONCE: Final = Precondition(_is_not_used_at_once)
"""The values that the host waits for may be fetched later, or more rarely."""
IS_REPEATED: Final = Precondition(_is_repeated)
"""Copies are made again and again, and not once for a model."""
HAS_ROOFS: Final = Precondition(_has_roofs)
"""A roofline of the job has an answer."""

SHAPES_COME_AGAIN: Final = Precondition(
    _shapes_come_again, "It pays where shapes come again and again; autocast may help more."
)
"""Inputs have few shapes, so that trying kernels out pays."""
GO_TO_DEVICE: Final = Precondition(_go_to_device, "The recording does not say whether they go to the device.")
"""Tensors of the host are copied to the device."""
