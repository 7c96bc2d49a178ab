"""Another device: kernels take as long as on a device of another name; the host and the network stay."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.devices import PEAKS, device_named, is_amd, known_device
from htagraph.core.errors import SelectionError, shown
from htagraph.core.flops import cost_of, flop_formula
from htagraph.core.kernels import number_format
from htagraph.core.kinds import ActivityKind, KernelKind, of_kinds
from htagraph.core.naming import copy_kind, is_memory_label, is_product_label, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.arguments import recorded_numbers
from htagraph.queries.kernel_costs import device_name, kernel_costs, shaped_calls
from htagraph.queries.weights import NOTED_SHARE, Modelled, State, with_factors
from htagraph.trace.readers import setting_for
from htagraph.whatif.device_times import PRECISIONS, Kernels, instead, ratios

__all__ = ["device"]

_BY_SIZE = {1: "fp8", 2: "fp16", 4: "fp32", 8: "fp64"}
_PRODUCTS = tuple(kind for kind in KernelKind if kind.is_product)


def device(state: State, /, name: str, *, recorded: str = "") -> State:
    """Return the state in which kernels run on another device; the host, copies to it, and the network stay.

    The new time of a kernel is the recorded time, multiplied by the ratio of a model of both devices: a floor that
    hardly changes, operations at the rate that large products of their type reach, bytes at the bandwidth that large
    kernels reach, and idle units at the end of small products. Kernels of which nothing says what bounds them have an
    interval between both ratios. `Outcome.low` and `Outcome.high` hold how far the model may be off. Shapes
    (``record_shapes=True``) make it better.

    Args:
        name: the product, such as ``"H100 SXM"`` or ``"NVIDIA A100-SXM4-80GB"``.
        recorded: the product that the job was recorded on, where the recording does not say it.

    Raises:
        SelectionError: kernels are on another device already, the job has no device work, a name is unknown or fits
            several products, or the recording does not name its device.

    Source: Williams, Waterman, Patterson 2009 (roofline); `htagraph.core.devices.PEAKS` says where rates are from.
    """
    if not isinstance(name, str) or not isinstance(recorded, str):
        msg = f"give the name of a product, such as 'H100 SXM', not {shown(name)}"
        raise SelectionError(msg)
    if Modelled.DEVICE in state.modelled:
        msg = "kernels are on another device already; give one device"
        raise SelectionError(msg)
    graph = state.graph
    wanted, note = device_named(name)
    rows, kernels = _kernels(graph)
    before = _recorded_devices(graph, np.unique(graph.activities.rank[rows]), recorded)
    ratio, low, high = np.ones((3, len(rows)))
    rank = graph.activities.rank[rows]
    for each in sorted(set(before.values())):
        here = np.isin(rank, [number for number, product in before.items() if product == each])
        found = ratios(_some(kernels, here), each, wanted)
        ratio[here], low[here], high[here] = found if each != wanted else (1.0, 1.0, 1.0)
    changed = with_factors(state, rows, ratio, low, high)
    ran = " and ".join(sorted(set(before.values())))
    told = f"kernels as on {wanted}, recorded on {ran}; this leaves host and network"
    changed = changed.with_model(Modelled.DEVICE, told)
    to_shape = "" if len(shaped_calls(graph).calls) else setting_for(graph.traces.values(), "shapes")
    for text in (note, *_notes(kernels, before, wanted, to_shape)):
        changed = changed.with_note(text) if text else changed
    return changed


def _some(kernels: Kernels, chosen: Array) -> Kernels:
    return Kernels(**{field: column[chosen] for field, column in vars(kernels).items()})


def _recorded_devices(graph: DependencyGraph, ranks: Array, recorded: str) -> dict[int, str]:
    """Return the product that each rank ran on."""
    given = device_named(recorded)[0] if recorded else ""
    known = {rank: given or known_device(device_name(graph, rank)) for rank in ranks.tolist()}
    for rank, product in known.items():
        if not product:
            said = device_name(graph, rank)
            what = f"{said!r} of rank {rank} is no known device" if said else "the recording does not name its device"
            how = "recorded='A100 80GB SXM' (what-if --device NAME,recorded=NAME; capacity --recorded NAME)"
            msg = f"{what}; say which it is like, as {how}"
            raise SelectionError(msg)
    return known


def _kernels(graph: DependencyGraph) -> tuple[Array, Kernels]:
    """Return (the activities that a device's speed scales, what they compute and move)."""
    acts, table = graph.activities, kernel_costs(graph)
    own = not graph.traces  # a user's own frames, of which operators may be timed alone
    rows = table["activity"].to_numpy(np.int64)
    copies = names_that(lambda name: copy_kind(name).endswith(("HtoD", "DtoH", "HtoH")), graph.names)[acts.name[rows]]
    timed = acts.on_device[rows] | (own & (acts.kind[rows] == ActivityKind.OP))
    chosen = timed & ~copies & ~of_kinds(table["kind"].to_numpy(np.int8), (KernelKind.COLLECTIVE,))
    chosen &= acts.kind[rows] != ActivityKind.COMMUNICATION
    if not chosen.any():
        msg = "the job has no kernels whose times could change; record it on a device, with its activities"
        raise SelectionError(msg)
    table, rows = table[chosen], rows[chosen]
    kind = table["kind"].to_numpy(np.int8)
    label = own & names_that(is_product_label, graph.names)[acts.name[rows]]
    product = of_kinds(kind, _PRODUCTS) | label
    flop, moved, written = (_column(graph, rows, name) for name in ("flop", "bytes", "written"))
    product |= flop > 0
    unknown = (kind == KernelKind.OTHER) & ~product & np.isnan(moved) & table["bytes"].isna().to_numpy()
    unknown &= ~(own & names_that(is_memory_label, graph.names)[acts.name[rows]])
    flop = np.where(np.isnan(flop), np.where(product, table["flop"], 0), flop)
    return rows, Kernels(
        time_ns=table["time_us"].to_numpy() * 1000,
        product=product,
        unknown=unknown,
        flop=np.where(flop > 0, flop, np.where(product | unknown, np.nan, 0)),
        bytes=np.where(np.isnan(moved), table["bytes"], moved),
        written=np.where(np.isnan(written), _written(graph, table["operator"].to_numpy(np.int64)), written),
        precision=_precisions(graph, rows, table["element_bytes"].to_numpy(np.int64)),
        alone=~acts.on_device[rows],
        warps=recorded_numbers(graph, ["warps per SM"], rows)["warps per SM"],
    )


def _column(graph: DependencyGraph, rows: Array, name: str) -> Array:
    """Return what a user's frame says of some activities, NaN where it says nothing."""
    values = graph.activities.arg(name)[rows].astype(np.float64) if not graph.traces else np.full(len(rows), -1.0)
    return np.where(values < 0, np.nan, values)


def _written(graph: DependencyGraph, operator: Array) -> Array:
    """Return the elements of the result of the product that each operator computes, NaN if unknown."""
    shaped, known = shaped_calls(graph), operator >= 0
    costs = [cost_of(flop_formula(call.name), call.dims or (), call.values) for call in shaped.calls]
    by_call = np.array([np.nan, *(cost.written if cost else np.nan for cost in costs)], np.float64)
    written = np.full(len(operator), np.nan)
    written[known] = by_call[1 + shaped.number[np.searchsorted(shaped.activity, operator[known])]]
    return written


def _precisions(graph: DependencyGraph, rows: Array, size: Array) -> Array:
    """Return the type of each kernel's numbers: by the size of the operator's elements, and by the kernel's name."""
    acts, places = graph.activities, {name: place for place, name in enumerate(PRECISIONS)} | {"": -1}
    formats = [number_format(name) for name in graph.names]
    by_name = np.array([places[each] for each in formats], np.int64)
    named = by_name[acts.name[rows]]
    if not graph.traces:  # a user's own frame: PyTorch computes in 32 bits unless something else is said
        dtype = acts.arg("dtype")[rows]
        named = np.where(dtype >= 0, by_name[dtype], np.where(named < 0, places["fp32"], named))
    by_size = np.array([places[_BY_SIZE.get(each, "")] for each in range(max(size.max(initial=0), 8) + 1)])[size]
    finer = np.isin(named, (places["bf16"], places["tf32"])) & np.isin(size, (0, 2, 4))
    return np.where((by_size < 0) | finer, named, by_size)


def _notes(kernels: Kernels, before: dict[int, str], wanted: str, to_shape: str) -> list[str]:
    """Return what is to know about a prediction."""
    time, whole = kernels.time_ns, max(kernels.time_ns.sum(), 1.0)
    notes = []
    for number, precision in enumerate(PRECISIONS):
        share = time[kernels.product & (kernels.precision == number)].sum() / whole
        if share >= NOTED_SHARE and instead(precision, wanted) != precision:
            used, part = instead(precision, wanted), f"{share:.0%} of kernel time"
            faster = "; fp16 would be faster" if (precision, used) == ("bf16", "fp32") and PEAKS[wanted].bits_16 else ""
            notes.append(f"{wanted} has no units for {precision}: products in it ({part}) are taken as {used}{faster}")
    if {is_amd(each) for each in before.values()} != {is_amd(wanted)}:
        notes.append("kernels of AMD and NVIDIA differ, which the interval holds")
    lacking = "is in products without shapes" + (f" ({to_shape})" if to_shape else "")
    for share, what in (
        (time[kernels.product & np.isnan(kernels.flop)].sum(), lacking),
        (time[kernels.unknown].sum(), "is in kernels of which nothing says what bounds them: between both ratios"),
    ):
        if share >= NOTED_SHARE * whole:
            notes.append(f"{share / whole:.0%} of kernel time {what}")
    return notes
