from __future__ import annotations

import pytest

from htagraph.core.naming.costs import (
    element_bytes,
    flop_formula,
    flop_per_count,
    is_dram_bytes,
    is_dram_part,
    is_tf32_kernel,
)


@pytest.mark.parametrize(
    ("name", "formula"),
    [("aten::mm", "mm"), ("aten::matmul", ""), ("aten::_convolution", "convolution"), ("aten::cudnn_convolution", ""),
     ("aten::_scaled_dot_product_flash_attention", "attention_to_end"), ("aten::_flash_attention_forward", ""),
     ("aten::_scaled_dot_product_efficient_attention_backward", "attention_backward"), ("aten::addmm_extra", ""),
     ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"), ("aten::addmm_", "addmm"),
     ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", "attention_backward"),
     ("aten::_scaled_dot_product_flash_attention_backward", "attention_to_end_backward"),
     ("aten::_scaled_dot_product_attention_math", "attention_in_full"), ("aten::_grouped_mm", "grouped_mm"),
     ("aten::_scaled_grouped_mm_v2", "grouped_mm"), ("flash_attn::_flash_attn_forward", "flash_attn"),
     ("flash_attn::_flash_attn_backward", "flash_attn_backward"), ("flash_attn::_flash_attn_varlen_forward", "")],
)  # fmt: skip
def test_each_operator_has_its_formula(name: str, formula: str) -> None:
    assert flop_formula(name) == formula


def test_types_have_the_size_of_their_elements() -> None:
    assert [element_bytes(name) for name in ("c10::Half", "double", "bool", "Scalar", "")] == [2, 8, 1, 0, 0]


@pytest.mark.parametrize(
    ("name", "tf32"),
    [
        ("ampere_sgemm_128x64_tn", False), ("cutlass_80_tensorop_s1688gemm_256x128_16x4_nn_align4", True),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn", True), ("Cijk_Ailk_Bljk_S_MX_B_xf32", True),
    ],
)  # fmt: skip
def test_tf32_kernels_say_so_in_their_names(name: str, tf32: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert is_tf32_kernel(name) == tf32


@pytest.mark.parametrize("width", "hfd")
def test_a_multiply_add_counts_as_two_operations(width: str) -> None:
    counter = f"smsp__sass_thread_inst_executed_op_{width}{{}}_pred_on.sum"
    assert [flop_per_count(counter.format(op)) for op in ("fma", "mul", "add", "shift")] == [2, 1, 1, 0]


def test_bytes_of_memory_are_counted_whole_or_in_two_parts() -> None:
    counters = ["dram__bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"]
    assert [is_dram_bytes(counter) for counter in counters] == [True, False, False, False]
    assert [is_dram_part(counter) for counter in counters] == [False, True, True, False]
