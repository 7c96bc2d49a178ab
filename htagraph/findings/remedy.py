"""Work that is done in a way for which a better one is known, recognized by what was recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from htagraph.analyses.roofline import roofline
from htagraph.core import naming
from htagraph.core.arrays import Array, marked
from htagraph.core.devices import narrow_speedup, tf32_speedup
from htagraph.core.errors import SelectionError
from htagraph.core.kernels import ELEMENTWISE, SINGLE_PRECISION
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.statistics import MOST
from htagraph.findings import preconditions, transfer_ways, way_facts
from htagraph.findings.change import Gain, PredictedChange, gain_in_job, gain_of, less_text, usual_us
from htagraph.findings.finding import PREDICTS, Claim, Evidence, Finding, gain_in, in_short, of_activities, saved_claim
from htagraph.findings.limits import MIN_PERCENT, MOST_ROWS, SHORT_LIST
from htagraph.findings.operator_ways import usual_work
from htagraph.findings.phrases import Advice, plural, share_text, size_text, time_text
from htagraph.findings.preconditions import Precondition, checks_of
from htagraph.findings.reach import MODELLED, REACH, Reach, within
from htagraph.findings.results import Results
from htagraph.findings.way_facts import WayFact
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.allocator import allocator_calls, time_without_waiting
from htagraph.graph.measures.own_time import untraced_edges
from htagraph.graph.measures.steps import gain_steps, regular_steps
from htagraph.graph.selection import Criteria, mask_of
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.arguments import argument_texts
from htagraph.queries.change_scope import asked_at
from htagraph.queries.host_time import MANY
from htagraph.queries.inputs import devices_in
from htagraph.queries.precision import single_precision_kernels, uses_tf32
from htagraph.queries.pytorch_version import HAS_TF32_SETTING, has_version
from htagraph.whatif.options import CHANGES, criteria_text
from htagraph.whatif.scenario import what_if

__all__ = ["REMEDY", "WAYS_OF_REDUCTIONS", "RemedyClaim", "RemedyKind"]

_SMALL_BYTES = 1_000_000
"""Bytes; chosen: on NVLink and faster networks of 100 GB/s, 1 MB takes as long as the start of a transfer. Doubled,
messages that are mostly transfer are told to be small."""


def _inside(graph: DependencyGraph, name: int) -> str:
    """Return the criterion that selects the activities inside the activities of a name, an index into `graph.names`."""
    return criteria_text({"op": naming.exact_glob(graph.names[name])})


def _pageable(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the copies from or to pageable memory, by the kind of copy that takes the most time."""
    acts = graph.activities
    is_pageable = naming.names_that(lambda name: naming.matches(naming.DEFAULT_NAMING.pageable, name), graph.names)
    copies = np.flatnonzero(acts.on_device & (acts.kind == ActivityKind.MEMORY) & is_pageable[acts.name])
    if len(copies):
        name = int(np.bincount(acts.name[copies], acts.duration[copies]).argmax())
        rows = copies[acts.name[copies] == name]
        size = acts.arg("bytes")[rows]
        total, us = float(size[size > 0].sum()), float(acts.duration[rows].sum()) / 1000
        speed = f", at {total / us / 1000:.3g} GB/s" if total and us else ""
        text = f"{graph.names[name]} copies {size_text(total)} in {time_text(us)}{speed}, and blocks the host"
        yield text, (("--pin-memory", ""),), rows


def _allocator(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the calls of steps in which the allocator gives memory back and asks for other memory."""
    acts = graph.activities
    flushes = graph.flushes
    if not len(flushes):
        return
    calls = np.setdiff1d(allocator_calls(graph), graph.start_up.activity)
    steps = np.unique(acts.step[flushes.call])
    rows = calls[np.isin(acts.step[calls], steps)]  # of the same steps, too: what was given back is asked for later
    of_rank = np.bincount(acts.rank[rows], time_without_waiting(graph, rows))
    each_us = of_rank[np.unique(acts.rank[rows])] / 1000
    alike = each_us.max() < 2 * each_us.min()
    took = time_text(each_us.mean()) if alike else f"{time_text(each_us.min())} to {time_text(each_us.max())}"
    once = f"In step {steps[0]}, t" if len(graph.steps) > 1 and len(steps) == 1 and steps[0] >= 0 else "T"
    took += " per rank" * (len(each_us) > 1)
    text = f"{once}he allocator gives memory back and asks for it again: its calls take {took}"
    if flushes.are_recorded:
        most = int(flushes.reserved_bytes.argmax())
        held = f"{size_text(float(flushes.reserved_bytes[most]))} held"
        freed = f"{size_text(float(flushes.freed_bytes[most]))} of them given back"
        text = f"{once}he allocator ran out of its cache and flushed it ({held}, {freed}): its calls take {took}"
    names = np.unique(acts.name[rows]).tolist()
    yield text, tuple(("--scale", f"{way_facts.named_as(graph, name)}:0") for name in names), rows


def _optimizer(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the optimizer whose kernels together take less than half of the time of the host that launches them."""
    acts = graph.activities
    steps = regular_steps(graph, graph.time)[0]
    if gain_steps(graph) <= 1:  # the saving is that of the whole job, not of a regular step
        steps = steps[:0]
    called = np.flatnonzero(~acts.on_device & naming.names_that(naming.is_optimizer, graph.names)[acts.name])
    for name in np.unique(acts.name[called]).tolist():
        around = called[acts.name[called] == name]
        usual = around[np.isin(acts.step[around], steps)]
        work = usual_work(graph, usual if len(usual) else around)
        if work.kernels < 2 or work.ran_us >= MOST * work.lasted_us:
            continue
        launches = f"{in_short(graph.names[name])} launches {plural(round(work.kernels), 'kernel')} each time"
        text = f"{launches}, which run {time_text(work.ran_us)} of the {time_text(work.lasted_us)} that it takes"
        region = _inside(graph, name)
        stays = REACH["optimizer"].likely
        yield text, (("--fuse", region), ("--scale", f"{region},kind=host:{stays}")), around


def _messages(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the collectives of each name that are launched one after the other, many in a row, with small messages."""
    # between two of them is at most a copy and a division: another order of the job cannot need them apart
    acts, waits = graph.activities, graph.waits
    size = np.full(len(acts), -1, np.int64)
    size[waits.activity] = waits.bytes
    works = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    works = works[np.lexsort((acts.start[acts.cause[works]], acts.rank[works]))]
    talks = acts.kind[works] == ActivityKind.COMMUNICATION
    place, rows = np.flatnonzero(talks), works[talks]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (np.diff(place) > 1 + SHORT_LIST) | (np.diff(acts.name[rows]) != 0) | (np.diff(acts.rank[rows]) != 0)
    run = np.cumsum(new) - 1
    rows, run = (each[np.bincount(run)[run] >= MANY] for each in (rows, run))
    for name in np.unique(acts.name[rows]).tolist():
        own = rows[acts.name[rows] == name]
        runs, usual = len(np.unique(run[acts.name[rows] == name])), float(np.median(size[own]))
        all_of_name = acts.duration[works[talks & (acts.name[works] == name)]].sum()
        if 0 <= usual <= _SMALL_BYTES and acts.duration[own].sum() >= LIMITS.nearly_all * all_of_name:
            times = f"{len(own) // runs:,} times in a row"
            text = f"{in_short(graph.names[name])} runs {times}, each with {size_text(usual)}"
            factor = f"{runs / len(own):.4f}"  # as if one took the time of one of them
            yield text, (("--scale", f"kind=communication,{way_facts.named_as(graph, name)}:{factor}"),), own


def _calls(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the collectives of hosts that are asked for many in a row, if bytes are less than half of their time."""
    # nothing is sent faster than by the job's fastest collective: what a call takes beyond that is the call's own
    acts, edge, tree, size = graph.activities, asked_at(graph, graph.waits.activity), graph.tree, graph.waits.bytes
    known = of_kinds(acts.kind[graph.waits.activity], (ActivityKind.HOST_COMMUNICATION,)) & (edge >= 0) & (size > 0)
    size, took = size[known], graph.waits.transfer[known]
    if not known.any() or size.sum() * (took / size).min() >= MOST * took.sum():
        return
    call = graph.edges.source[edge[known]] >> 1
    ops = _outermost(graph)
    place = np.zeros(len(acts), np.int64)
    place[ops] = np.arange(len(ops))
    place = place[tree.nearest(marked(ops, len(acts)), call)]
    order = np.argsort(place, kind="stable")
    call, place, size = call[order], place[order], size[order]
    far = (np.diff(place) > 1 + SHORT_LIST) | (np.diff(acts.lane[call]) != 0)
    run = np.append(0, np.cumsum(far))
    many = np.bincount(run)[run] >= MANY
    names = [each for each in np.unique(acts.name[call]).tolist() if many[acts.name[call] == each].all()]
    rows = call[many & np.isin(acts.name[call], names)]
    if len(rows):
        times = len(rows) // len(np.unique(run[np.isin(call, rows)]))
        most = size_text(float(size.max()))
        text = f"{way_facts.list_of(graph, names)} {times:,} times in a row, each with at most {most}"
        yield text, tuple(("--remove", _inside(graph, name)) for name in names), rows


def _loops(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the operators without device work that are short and follow each other, each name of them many times."""
    acts, ops = graph.activities, _outermost(graph)
    usual = pd.Series(acts.duration[ops]).groupby(acts.name[ops]).transform("median").to_numpy()
    apart = graph.tree.around(acts.kind == ActivityKind.LAUNCH)
    apart = apart | naming.names_that(naming.is_autograd_node, graph.names)[acts.name]
    short = (usual < LIMITS.launch_ns) & ~apart[ops]
    run = np.append(0, np.cumsum((np.diff(short) != 0) | (np.diff(acts.lane[ops]) != 0)))[short]
    own = pd.DataFrame({"run": run, "name": acts.name[ops[short]], "row": ops[short]})
    of_run = own.groupby("run")["name"]
    inside = of_run.transform("size") >= MANY**2 * of_run.transform("nunique")
    names = [name for name, part in inside.groupby(own["name"]) if part.mean() >= LIMITS.nearly_all]
    names.sort(key=lambda name: -acts.duration[ops[acts.name[ops] == name]].sum())
    rows = own["row"][inside & own["name"].isin(names)].to_numpy()
    if len(rows):
        usual_us = float(np.median(acts.duration[rows])) / 1000
        listed = way_facts.list_of(graph, names)
        text = f"{listed} {len(rows):,} times, in rows of short calls ({time_text(usual_us)} each)"
        pauses = np.unique(acts.name[graph.edges.target[untraced_edges(graph)] >> 1])
        before = [naming.exact_glob(graph.names[name]) for name in np.intersect1d(names, pauses).tolist()]
        words = [f"{_inside(graph, name)}:0" for name in names]
        words += [f"{criteria_text({'kind': 'untraced', 'before': glob})}:0" for glob in before]
        yield text, tuple(("--scale", word) for word in words), rows


def _outermost(graph: DependencyGraph) -> Array:
    """Return the operators that are in no other operator, in their order on each thread."""
    acts = graph.activities
    ops = graph.tree.outermost(acts.kind == ActivityKind.OP)
    return ops[np.lexsort((acts.start[ops], acts.lane[ops]))]


def _single(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the matrix products that run in single precision on the general cores of a device."""
    acts = graph.activities
    single = single_precision_kernels(graph)
    rows = np.flatnonzero(np.isin(acts.name, single) & (acts.kind == ActivityKind.COMPUTATION))
    rows = rows[~uses_tf32(graph, rows)]
    if not acts.duration[rows].any():
        return
    share = float(acts.duration[rows].sum()) / float(acts.duration[acts.kind == ActivityKind.COMPUTATION].sum())
    names, at = np.unique(acts.name[rows], return_inverse=True)
    longest = names[np.bincount(at, acts.duration[rows]).argmax()]
    which = "the largest: " * (len(names) > 1) + in_short(graph.names[longest])
    text = f"Matrix products in single precision, without tensor cores, are {share_text(100 * share)} of computation"
    chosen: list[Criteria] = [{"kind": "computation", "regex": SINGLE_PRECISION}]
    if not np.array_equal(np.flatnonzero(mask_of(graph, chosen[0])), rows):
        chosen = [{"kind": "computation", "name": naming.exact_glob(graph.names[name])} for name in names.tolist()]
    yield f"{text} ({which})", tuple(("--scale", f"{criteria_text({**criteria})}:0.5") for criteria in chosen), rows


def _types(results: Results) -> str:
    """Return the types that the recorded devices multiply faster, with a question to devices without a known name."""
    speedups = [tf32_speedup(name) for name in devices_in(results.inputs)]
    tf32 = "TF32: torch.set_float32_matmul_precision('high')"
    if has_version(results.graph, HAS_TF32_SETTING) is False:
        return "with float16"
    if None in speedups:
        return f"(float16), or {tf32}, if torch.cuda.get_device_capability() is (8, 0) or more"
    if not any(speedups):
        return "with float16"
    slowest = min(speed for speed in speedups if speed is not None)
    return f"(bfloat16, float16) or {tf32}" if slowest >= LIMITS.uneven else "(bfloat16, float16)"


def _held(results: Results) -> str:
    """Return how much memory the allocator held before a flush, if its counters say so."""
    reserved_bytes = max(results.graph.flushes.reserved_bytes.tolist(), default=-1)
    return f" ({size_text(reserved_bytes)} is held)" if reserved_bytes > 0 else ""


def _pinned(results: Results) -> str:
    """Return the setting of a data loader that pins memory, where most time of pageable copies is to the device."""
    graph = results.warm_graph
    name = next(graph.names[graph.activities.name[rows[0]]] for _, _, rows in _pageable(graph))
    is_input = naming.matches(naming.DEFAULT_NAMING.to_device, name)
    return " (pin_memory=True in the DataLoader)" * is_input


def _below_roof(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the operators that lose most below half of their roof, where a kernel at half of that is no short one."""
    table = roofline(graph)
    half = table["time_us"] * table["roof_percent"] / (100 * MOST)  # of the peak: what tuned kernels reach
    low = (half / table["count"] >= LIMITS.launch_ns / 1000) & (half < table["time_us"])
    lost = (table["time_us"] - half).where(low, 0.0)
    table["lost"], table["part"] = lost, lost.groupby(table["operator"]).transform("sum")
    table["part"] /= table.groupby("operator")["time_us"].transform("sum")
    for row in table[low].sort_values("lost").drop_duplicates("operator", keep="last").to_dict("records"):
        peak, name = "peak rate" if row["bound"] == "compute" else "memory bandwidth", row["operator"]
        reached = f"{'up to ' if row['at_most'] else ''}{share_text(row['roof_percent'])}"
        text = f"{in_short(name)} reaches {reached} of the device's {peak} ({row['shapes']})"
        number = list(graph.names).index(name)
        rows = np.flatnonzero(graph.activities.name == number)
        yield text, (("--scale", f"{_inside(graph, number)},kind=computation:{1 - row['part']:.4f}"),), rows


def _pointwise(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield kernels that compute each element by itself, where kernels of one size follow each other on a stream."""
    acts = graph.activities
    rows = np.flatnonzero(acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER))
    rows = rows[np.lexsort((acts.start[rows], acts.lane[rows]))]
    own = naming.names_that(lambda name: ELEMENTWISE in name, graph.names)[acts.name[rows]]
    apart = np.append(graph.tree.inside(naming.names_that(naming.is_optimizer, graph.names)[acts.name]), False)
    sizes = argument_texts(graph, ["grid", "block"], rows[own]).values()
    size = pd.factorize(np.array([None if None in both else str(both) for both in zip(*sizes, strict=True)], object))[0]
    key = np.full(len(rows), -1)
    key[own] = np.where(apart[acts.cause[rows[own]]], -1, size)
    follows = (key[1:] == key[:-1]) & (key[1:] >= 0) & (np.diff(acts.lane[rows]) == 0)
    run = np.append(0, np.cumsum(~follows))
    total = acts.duration[rows[own]].sum()
    if not follows.any() or naming.names_that(naming.is_compiled_region, graph.names).any():
        return
    factor = pd.Series(acts.duration[rows[own]]).groupby(run[own]).max().sum() / total
    share = share_text(100 * total / acts.duration[rows].sum())
    text = f"Elementwise kernels are {share} of the device's work, many in a row with one size"
    yield text, (("--scale", f"kind=computation,name=*{ELEMENTWISE}*:{factor:.4f}"),), rows[1:][follows]


class _Way(NamedTuple):
    """A way of working for which a better one is known."""

    find: Callable[[DependencyGraph], Iterator[WayFact]]
    """Yields where a job works that way."""
    better: str
    """The change that is closest to the better way, as an end of a sentence."""
    change: str
    """The same change, as a thing."""
    advice: str
    """What to do, with ``{name}`` (words of `_NAMED`, or of an activity) and ``{tuning}`` (a way of torch.compile)."""
    plain: str
    """The same for a program without PyTorch."""
    needs: tuple[Precondition, ...] = ()
    """The preconditions of the advice."""
    reach: Reach = MODELLED
    """The part of the replaced time that stays."""
    further: tuple[str, ...] = ()
    """Further sentences of the advice in a program with PyTorch."""


RemedyKind: TypeAlias = Literal[
    "pageable copies", "allocator", "optimizer", "single precision", "below the roof", "pointwise", "messages", "calls",
    "loops", "compiling", "attention", "accumulation", "late reductions", "wide gradients",
    "whole reductions", "convolutions", "random numbers",
]  # fmt: skip
"""The names of the ways."""
WAYS_OF_REDUCTIONS: Final = frozenset[RemedyKind]({"late reductions", "wide gradients", "whole reductions"})
"""The ways by which the host waits for reductions of gradients."""
_KINDS: Final[dict[RemedyKind, _Way]] = {
    "pageable copies": _Way(
        _pageable,
        "in pinned memory, with no wait for copies to the device",
        "pinned memory for copies",
        "Pin the memory{name} and copy with non_blocking=True.",
        "Pin the memory (cudaHostAlloc), and copy without waiting (cudaMemcpyAsync).",
        (preconditions.IS_REPEATED,),
    ),
    "allocator": _Way(
        _allocator,
        "without these calls of the allocator",
        "memory that the allocator keeps",
        "Use less memory{name}, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        "Use less memory{name}, or keep what is freed (cudaMallocAsync).",
        (preconditions.CACHES_MEMORY,),
    ),
    "optimizer": _Way(
        _optimizer,
        "as one kernel with a quarter of the host time",
        "the optimizer as one kernel",
        "Make the optimizer with fused=True.",
        "Update all parameters in one kernel.",
        (preconditions.HAS_FUSED_CLASS,),
        REACH["optimizer"],
    ),
    "single precision": _Way(
        _single,
        "with such products twice as fast",
        "faster products in single precision",
        "Use autocast {name}.",
        "Multiply in a narrower type, for which the device has faster units.",
        reach=REACH["single precision"],
    ),
    "below the roof": _Way(
        _below_roof,
        "at half of that peak",
        "kernels that reach half of the device's peak",
        "Try other kernels for {name}: another backend{tuning}, or other sizes.",
        "Try other kernels for {name}: another library, or other sizes.",
        reach=REACH["below the roof"],
    ),
    "pointwise": _Way(
        _pointwise,
        "with one kernel in place of each row, as long as its longest",
        "one kernel in place of each row of elementwise kernels",
        "Fuse elementwise kernels: torch.compile, or fused kernels for norms, embeddings and activations.",
        "Fuse elementwise kernels.",
    ),
    "messages": _Way(
        _messages,
        "with one call in place of each row, as long as one of them",
        "one call in place of each row of small messages",
        "Send them as one: with larger buckets (bucket_cap_mb), or as one flat tensor.",
        "Send them as one: with larger buckets, or as one flat tensor.",
    ),
    "calls": _Way(
        _calls,
        "without these collectives",
        "no small collectives in a row",
        "Send them as one: as one flat tensor, coalesced, or in larger buckets.",
        "Send them as one: as one flat tensor, coalesced, or in larger buckets.",
        reach=REACH["calls"],
    ),
    "loops": _Way(
        _loops,
        "without this loop",
        "whole tensors in place of a loop",
        "Replace the loop by operators on whole tensors (vectorize it; foreach=True for an optimizer).",
        "Replace the loop by operators on whole tensors.",
        reach=REACH["loops"],
    ),
    "compiling": _Way(
        way_facts.compiling,
        "without compilation",
        "no compilation in the steps",
        "Shapes or values that code is compiled for change: pad to few sizes, or use torch.compile(dynamic=True) or "
        "torch._dynamo.mark_dynamic.",
        "Shapes or values that code is compiled for change: pad to few sizes.",
        further=("TORCH_LOGS=recompiles says what changed.",),
    ),
    "accumulation": _Way(
        way_facts.accumulation,
        "with one reduction per step of the optimizer",
        "one reduction of gradients per step of the optimizer",
        "Accumulate gradients inside model.no_sync(), for all but the last backward pass before the optimizer's step.",
        "Reduce gradients once per step of the optimizer.",
    ),
    "late reductions": _Way(
        transfer_ways.beside_backward,
        "beside the backward pass",
        "reductions of gradients beside the backward pass",
        "Reduce gradients while the backward pass still runs: {name}.",
        "Reduce gradients while the backward pass still runs.",
        reach=REACH["late reductions"],
    ),
    "wide gradients": _Way(
        transfer_ways.wide_gradients,
        "in 16 bits",
        "gradients sent in 16 bits",
        "Send gradients in 16 bits ({name}).",
        "Send gradients in 16 bits.",
        (preconditions.HAS_WIDE_GRADIENTS,),
        REACH["wide gradients"],
        ("Compare the loss: sums have fewer digits.",),
    ),
    "whole reductions": _Way(
        transfer_ways.whole_reductions,
        "with half of these bytes",
        "reduce-scatters with half of the bytes",
        "Exchange shards (all_to_all_single) and sum them on each rank, or use a backend with its own reduce-scatter.",
        "Exchange shards and sum them on each rank, or use a library with its own reduce-scatter.",
        reach=REACH["wide gradients"],
    ),
    "attention": _Way(
        way_facts.attention,
        "without operators on scores",
        "attention in one operator",
        "Use torch.nn.functional.scaled_dot_product_attention, with inputs for which it has a fused kernel.",
        "Use a fused kernel for attention.",
        reach=REACH["attention"],
    ),
    "convolutions": _Way(
        way_facts.convolutions,
        "with kernels in two thirds of the time",
        "faster kernels of convolutions",
        "Let the library try its kernels (torch.backends.cudnn.benchmark = True), with tensors in channels_last.",
        "Let the library try its kernels (cudnnFindConvolutionForwardAlgorithm).",
        (preconditions.SHAPES_COME_AGAIN,),
        REACH["convolutions"],
    ),
    "random numbers": _Way(
        way_facts.random_numbers,
        "made on the device",
        "random numbers from the device",
        "Make random numbers where they are used: torch.rand(..., device='cuda'), with the type that is needed.",
        "Make random numbers where they are used: on the device, with the type that is needed.",
        (preconditions.GO_TO_DEVICE,),
        REACH["random numbers"],
    ),
}
"""The ways by name."""


_HALF_THE_BYTES: Final = (transfer_ways.wide_gradients, transfer_ways.whole_reductions)
"""The ways whose better way sends half of the bytes."""
_NAMED: Final[dict[Callable[[DependencyGraph], Iterator[WayFact]], Callable[[Results], str]]] = {
    _single: _types,
    _allocator: _held,
    _pageable: _pinned,
    transfer_ways.wide_gradients: lambda results: transfer_ways.how_to_send_narrow(results.graph),
    transfer_ways.beside_backward: lambda results: transfer_ways.how_to_overlap(results.graph),
}
"""The words in place of ``{name}`` in an advice, for advice that does not name an activity."""


@dataclass(frozen=True, kw_only=True)
class RemedyClaim(Claim):
    """A better way is known; the figure is the gain of the change that is closest to it, µs."""

    about: RemedyKind = field(kw_only=False)
    """The way for which a better one is known."""
    text: str
    """The recorded fact, as the start of a sentence."""
    name: str
    """The words in the place of ``{name}`` in the advice."""
    checks: tuple[str, ...] = ()
    """Sentences on facts to check before the advice is followed."""
    is_of_transfers: bool = False
    """Whether the better way is fewer transfers."""
    is_compiled: bool = False
    """Whether torch.compile made code of the job."""


def _when(results: Results) -> list[RemedyClaim]:
    """Claim what is found if the change that is closest to the better way gains, each kind where it gains most."""
    claims, makespan = [], results.makespan_ns
    for kind, way in _KINDS.items():
        find = way.find
        of_kind = []
        if find in (_below_roof, _pointwise) and results.bound.cause != "computation":
            continue
        found_in = results.graph if find is _allocator else results.warm_graph  # who starts flushes nothing
        for text, changes, rows in find(found_in):
            if not len(rows):  # no time to save
                continue
            checks = checks_of(way.needs, found_in, rows)
            if checks is None:
                continue
            scenario = what_if(results.warm_graph)
            with suppress(SelectionError):  # nothing that the change applies to
                for option, value in changes:
                    scenario = CHANGES[option.removeprefix("--")].read(value).apply(scenario)
                outcome = scenario.run()
                small = 100_000 * usual_us(outcome) < MIN_PERCENT * makespan  # to be named, but for other steps
                if not makespan or (small and not results.usual):
                    continue
                options = tuple(word for pair in changes for word in pair if word)
                name = in_short(results.graph.names[results.graph.activities.name[rows[0]]])
                name = _NAMED[find](results) if find in _NAMED else name
                gain = gain_of(outcome, results.whole)
                steps = results.graph.activities.step[rows]
                if results.usual and not np.isin(steps, results.usual).any():  # a part of other steps, and of all
                    gain = gain_in_job(outcome, steps)
                gain = within(gain, _reach_on(results, kind))
                gain = _bounded(results, gain, kind, rows)
                gain = replace(gain, low_us=0.0) if checks and kind == "wide gradients" else gain  # none of 16 bits
                if gain.percent >= MIN_PERCENT:
                    change = PredictedChange(way.change, options, gain)
                    claim = RemedyClaim(
                        "remedy",
                        kind,
                        gain.value_us,
                        "us",
                        rows=tuple(rows[:MOST_ROWS].tolist()),
                        change=change,
                        text=text,
                        name=name,
                        checks=checks,
                        is_of_transfers=find in (_messages, _calls, way_facts.accumulation, *_HALF_THE_BYTES),
                        is_compiled=bool(naming.names_that(naming.is_compiled_region, results.graph.names).any()),
                    )
                    of_kind.append(saved_claim(claim))
        claims += [max(of_kind, key=lambda claim: claim.figure)] if of_kind else []
    return sorted(claims, key=lambda claim: -claim.figure)


def _bounded(results: Results, gain: Gain, kind: RemedyKind, rows: Array) -> Gain:
    """Return a gain that is no more than the change of a way can take away."""
    if kind == "pageable copies":
        return _at_most_own(results, gain, rows)
    return transfer_ways.at_most_overlap(results.graph, gain) if kind == "late reductions" else gain


def _at_most_own(results: Results, gain: Gain, rows: Array) -> Gain:
    """Return a gain that is no more than copies take, on the host or on the device."""
    acts = results.graph.activities
    if results.usual and gain.steps:
        rows = rows[np.isin(acts.step[rows], results.usual)]
    calls = acts.duration[acts.cause[rows]] * (acts.cause[rows] >= 0)
    own_us = float(np.maximum(acts.duration[rows], calls).sum()) / 1000
    return replace(
        gain,
        value_us=min(gain.value_us, own_us),
        low_us=min(gain.low_us, own_us),
        high_us=min(gain.high_us, own_us),
    )


def _reach_on(results: Results, kind: RemedyKind) -> Reach:
    """Return the part of the replaced time that stays on the devices of a job."""
    reach = _KINDS[kind].reach
    if kind != "single precision":
        return reach
    speedups = [narrow_speedup(name) for name in devices_in(results.inputs)]
    fastest = max((speed for speed in speedups if speed), default=0.0)
    return reach._replace(least=max(reach.least, 1 / fastest)) if fastest else reach


def _short(claim: RemedyClaim) -> str:
    return f"{claim.text}; {_KINDS[claim.about].better}, {less_text(gain_in(claim))}."


def _why(claim: RemedyClaim) -> str:
    """Return the recorded fact, as a sentence."""
    return f"{claim.text}."


def _advice(claim: RemedyClaim) -> Advice:
    """Return the advice, and facts to check before."""
    way = _KINDS[claim.about]
    if not claim.recorder.has_pytorch:
        return Advice(way.plain.format(name=claim.name), *claim.checks)
    tuning = "" if claim.is_compiled else ", torch.compile(mode='max-autotune')"
    return Advice(way.advice.format(name=claim.name, tuning=tuning), *way.further, *claim.checks)


REMEDY = Finding(
    "remedy", needs=PREDICTS, when=_when,
    evidence=lambda results, claim: Evidence(rows=of_activities(results, claim.rows, "Some of them")),
    short=_short,
    why=_why,
    advice=_advice,
)  # fmt: skip
