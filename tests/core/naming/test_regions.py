from __future__ import annotations

import pytest

from htagraph.core.naming.regions import (
    inference_phase,
    is_backward,
    is_compiled_region,
    is_data_loader,
    is_module_frame,
    operator_of_frame,
    step_number,
)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ProfilerStep#0", 0), ("ProfilerStep#551", 551), ("ProfilerStep#7 (train)", 7), ("ProfilerStep", None),
        ("ProfilerStep#", None), ("my ProfilerStep#3", None), ("ProfilerStep#12345678901234567890", None),
    ],
)  # fmt: skip
def test_a_step_has_the_number_in_its_name(name: str, number: int | None) -> None:
    assert step_number(name) == number


NAMES = {
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": is_data_loader,
    "autograd::engine::evaluate_function: MmBackward0": is_backward,
    "nn.Module: Linear_0": is_module_frame,
    "Torch-Compiled Region: 0/0": is_compiled_region,
    "## Call CompiledFxGraph fab ##": is_compiled_region,
    "aten::mm": None,
    "MmBackward0": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_region_is_of_one_kind_at_most(name: str) -> None:
    kinds = (is_data_loader, is_backward, is_module_frame, is_compiled_region)
    assert [kind for kind in kinds if kind(name)] == [NAMES[name]] * (NAMES[name] is not None)


@pytest.mark.parametrize(
    ("name", "phase", "tokens"),
    [
        ("execute_context_1(512)_generation_0(0)", "prefill", 512),
        ("execute_context_0(0)_generation_31(31)", "decode", 31),
        ("execute_context_1(512)_generation_31(31)", "mixed", 543),
        ("step[DECODE bs=8 toks=8]", "step[DECODE bs=* toks=*]", 8),
        ("forward", "forward", -1),
    ],
)
def test_an_inference_annotation_names_its_phase_and_tokens(name: str, phase: str, tokens: int) -> None:
    assert inference_phase(name) == (phase, tokens)


@pytest.mark.parametrize(
    ("frame", "operator"),
    [
        ("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "mm"),
        ("at::_ops::add__Tensor::redispatch(c10::DispatchKeySet)", "add__Tensor"),
        ("at::native::mm(at::Tensor const&)", ""),
        ("forward", ""),
    ],
)
def test_only_dispatch_frames_name_an_operator(frame: str, operator: str) -> None:
    assert operator_of_frame(frame) == operator
