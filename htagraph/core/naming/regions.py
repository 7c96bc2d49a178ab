"""Names of operators, annotations and frames: steps, backward, modules, data loaders, compiled code, inference."""

from __future__ import annotations

import re

from htagraph.core.naming.patterns import matches

__all__ = [
    "ANY_STEP",
    "LINEAR",
    "has_loader_workers",
    "inference_phase",
    "is_autograd_node",
    "is_backward",
    "is_compiled_region",
    "is_compiling",
    "is_data_loader",
    "is_gradient_ready",
    "is_module_frame",
    "is_source_frame",
    "is_wait",
    "operator_of_frame",
    "step_number",
]

ANY_STEP = "ProfilerStep#*"
"""Glob of the names of steps."""
LINEAR = "aten::linear"
"""The operator of linear layers."""


_STEP = re.compile(r"^ProfilerStep#(\d{1,9})(?!\d)")  # up to nine digits: step numbers are int32


def step_number(name: str) -> int | None:
    """Return the number N of a step annotation ``ProfilerStep#N``, or None for any other name.

    Example:
        >>> step_number("ProfilerStep#12")
        12
    """
    match = _STEP.match(name)
    return int(match[1]) if match else None


def is_autograd_node(name: str) -> bool:
    """Return True for the operator of an autograd node: what the engine runs for a forward operator.

    Old versions of PyTorch record it without the engine's operator around it.

    Example:
        >>> is_autograd_node("AddmmBackward"), is_autograd_node("MmBackward0"), is_autograd_node("aten::relu_backward")
        (True, True, False)
    """
    return matches(r"^[A-Za-z_]+Backward\d*$", name)


def is_gradient_ready(name: str) -> bool:
    """Return True for the operator after which the gradient of a parameter is complete.

    Example:
        >>> is_gradient_ready("torch::autograd::AccumulateGrad")
        True
    """
    return name.endswith("AccumulateGrad")


def is_data_loader(name: str) -> bool:
    """Return True for the annotation or operator in which a process waits for the data loader's next batch.

    Example:
        >>> is_data_loader("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
        True
    """
    return matches(r"^enumerate\(DataLoader\)|DataLoaderIter\.__next__", name)


def has_loader_workers(name: str) -> bool:
    """Return True for the annotation or operator of a data loader whose batches come from worker processes.

    Example:
        >>> has_loader_workers("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
        True
        >>> has_loader_workers("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        False
    """
    return matches(r"MultiProcessingDataLoaderIter", name)


def is_backward(name: str) -> bool:
    """Return True for the autograd engine's operator around a backward operator.

    Example:
        >>> is_backward("autograd::engine::evaluate_function: MmBackward0")
        True
    """
    return name.startswith("autograd::engine::")


def is_wait(name: str) -> bool:
    """Return True for an operator or Python frame that waits for a collective.

    Example:
        >>> is_wait("_c10d_functional::wait_tensor"), is_wait("<built-in method wait of PyCapsule object at 0x7f01>")
        (True, True)
        >>> is_wait("threading.py(323): wait")
        False
    """
    return matches(r"::wait_tensor$|^<built-in method (wait|synchronize) of (PyCapsule|torch\._C\._distributed)", name)


def is_source_frame(name: str) -> bool:
    """Return True for the Python frame of a function in a source file, as opposed to a built-in one or a module.

    Example:
        >>> is_source_frame("train.py(42): augment"), is_source_frame("<built-in function sleep>")
        (True, False)
    """
    return matches(r"\(\d+\): ", name)


def is_module_frame(name: str) -> bool:
    """Return True for the Python frame of a module's forward.

    Example:
        >>> is_module_frame("nn.Module: Linear_0")
        True
    """
    return name.startswith("nn.Module: ")


def is_compiled_region(name: str) -> bool:
    """Return True for an operator or annotation that runs code compiled by torch.compile.

    Example:
        >>> is_compiled_region("Torch-Compiled Region: 0/0"), is_compiled_region("CompiledFunctionBackward")
        (True, True)
    """
    return matches(r"^Torch-Compiled Region|^CompiledFunction|\bCompiledFxGraph\b", name)


def is_compiling(name: str) -> bool:
    """Return True for an operator, annotation or Python frame that compiles code, such as torch.compile or Triton do.

    Example:
        >>> is_compiling("compile_fx_inner (dynamo_timed)"), is_compiling("torch/_dynamo/convert_frame.py(94): g")
        (True, True)
        >>> is_compiling("Torch-Compiled Region: 0/0"), is_compiling("TorchDynamo Cache Lookup")
        (False, False)
    """
    return matches(
        r"\(dynamo_timed\)$|torch/_dynamo/convert_frame\.py\(|triton/compiler/compiler\.py\(|"
        r"^(cu|cuda|hip)(Module|Library)Load",
        name,
    )


_BATCH = re.compile(r"^execute_(?:\d+_)?context_(\d+)\((?:sq)?(\d*)[^)]*\)_generation_(\d+)\((?:sq)?(\d*)[^)]*\)")


_TOKENS = re.compile(r"\b(?:num_)?tok(?:en)?s?[=:] ?(\d{1,15})", re.IGNORECASE)


def inference_phase(name: str) -> tuple[str, int]:
    """Return (inference phase that an annotation names, number of tokens processed, -1 if the name does not say).

    vLLM's batches are ``prefill``, ``decode`` or ``mixed``. In other names, numbers after ``=`` or ``:`` become ``*``,
    so that batches of different sizes count as one phase.

    Example:
        >>> inference_phase("execute_context_1(512)_generation_31(31)")
        ('mixed', 543)
        >>> inference_phase("execute_32_context_0(sq0sk0)_generation_32(sq32sk55086)")
        ('decode', 32)
        >>> inference_phase("step[EXTEND bs=2 toks=96]"), inference_phase("forward")
        (('step[EXTEND bs=* toks=*]', 96), ('forward', -1))
    """
    batch = _BATCH.match(name)
    if batch:
        prefills, decodes = int(batch[1]) > 0, int(batch[3]) > 0
        word = "mixed" if prefills and decodes else "prefill" if prefills else "decode"
        return word, int(batch[2] or 0) + int(batch[4] or 0)
    tokens = _TOKENS.search(name)
    return re.sub(r"([=:] ?)\d+", r"\1*", name), int(tokens[1]) if tokens else -1


_OPERATOR_FRAME = re.compile(r"^at::_ops::(\w+)::(?:call|redispatch)\b")


def operator_of_frame(name: str) -> str:
    """Return the operator (with overload) that a C++ frame dispatches, or ``""`` for any other frame.

    Example:
        >>> operator_of_frame("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)")
        'mul_Tensor'
        >>> operator_of_frame("torch::unwind::unwind()")
        ''
    """
    match = _OPERATOR_FRAME.match(name)
    return match[1] if match else ""
