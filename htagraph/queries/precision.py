"""The precision in which products of matrices compute: by the inputs of their operators first, then by their names."""

from __future__ import annotations

import json

import numpy as np

from htagraph.core.arrays import Ints, Mask
from htagraph.core.kernels import is_single_precision, is_tf32_kernel, kernel_library, number_format
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.arguments import argument_texts

__all__ = ["single_precision_kernels", "uses_tf32"]

_INPUT_TYPES = "Input type"
"""The argument in which the profiler writes the types of an operator's inputs."""
_FLOATS = frozenset({"fp8", "fp16", "bf16", "fp32", "fp64"})


def single_precision_kernels(graph: DependencyGraph) -> Ints:
    """Return the names of kernels that multiply in single precision on general cores, as indices into `graph.names`.

    A kernel counts if its name says so and no operator that launched the kernel has inputs of other types only.

    Args:
        graph: the job.

    Returns:
        Indices into `graph.names`, ascending (int64).

    Raises:
        TraceError: a file is gone or was changed since it was loaded.

    Example:
        >>> import htagraph as hg
        >>> single_precision_kernels(hg.load("data/gloo_ddp")).tolist()
        []
    """
    acts = graph.activities
    is_computation = acts.on_device & (acts.kind == ActivityKind.COMPUTATION)
    used = np.zeros(len(graph.names), np.bool_)
    used[acts.name[is_computation]] = True
    named = np.flatnonzero(used)
    named = named[names_that(is_single_precision, [graph.names[name] for name in named.tolist()])]
    rows = np.flatnonzero(is_computation & np.isin(acts.name, named))
    return np.setdiff1d(named, acts.name[rows[_has_other_inputs(graph, rows)]]).astype(np.int64)


def uses_tf32(graph: DependencyGraph, rows: Ints) -> Mask:
    """Return which kernels are of a library that is allowed to use TF32 already, as it runs some kernel in TF32.

    Convolutions and products have a setting each: for convolutions, PyTorch allows TF32 from the start.

    Args:
        graph: the job.
        rows: kernels that multiply in single precision, as indices into the activities.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> bool(uses_tf32(graph, graph.select(kind="computation").activities).any())
        False
    """
    acts = graph.activities
    is_computation = acts.kind == ActivityKind.COMPUTATION
    is_tf32 = names_that(
        is_tf32_kernel,
        graph.names,
    )
    chosen = is_computation & is_tf32[acts.name]
    with_tf32 = np.flatnonzero(chosen)
    is_convolution = _is_convolution(
        graph,
        with_tf32,
    )
    products_use = bool(np.any(~is_convolution))
    convolutions_use = bool(np.any(is_convolution))
    return np.where(
        _is_convolution(graph, rows),
        convolutions_use,
        products_use,
    )


def _is_convolution(graph: DependencyGraph, rows: Ints) -> Mask:
    """Return which kernels compute convolutions: by their operator, or by their library where no operator is known."""
    acts = graph.activities
    is_operator = acts.kind == ActivityKind.OP
    operator = graph.tree.nearest(
        is_operator,
        rows,
    )
    is_named = names_that(
        lambda name: "conv" in name.lower(),
        graph.names,
    )
    is_of_library = names_that(
        lambda name: kernel_library(name) == "cudnn",
        graph.names,
    )
    return np.where(
        operator >= 0,
        is_named[acts.name[operator]],
        is_of_library[acts.name[rows]],
    )


def _has_other_inputs(graph: DependencyGraph, rows: Ints) -> Mask:
    """Return which kernels belong to operators with floating-point inputs, none of these in single precision."""
    is_operator = graph.activities.kind == ActivityKind.OP
    operator = graph.tree.nearest(is_operator, rows)
    operators = np.unique(operator[operator >= 0])
    texts = argument_texts(graph, [_INPUT_TYPES], operators)[_INPUT_TYPES].tolist()
    is_other = dict(zip(texts, map(_lacks_single, texts), strict=True))
    return np.isin(operator, operators[[is_other[text] for text in texts]])


def _lacks_single(text: bytes | None) -> bool:
    """Return True for recorded types of inputs with floating-point numbers, but not in single precision."""
    types = json.loads(text) if text else []
    formats = {number_format(word) for word in types if isinstance(word, str)} if isinstance(types, list) else set()
    return bool(formats & _FLOATS) and "fp32" not in formats
