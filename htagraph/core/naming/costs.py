"""Names that decide operations and bytes: operators with a formula, element types, hardware counters."""

from __future__ import annotations

import re

from htagraph.core.naming.patterns import matches
from htagraph.core.naming.regions import LINEAR

__all__ = [
    "element_bytes",
    "flop_formula",
    "flop_per_count",
    "is_complex",
    "is_dram_bytes",
    "is_dram_part",
    "is_tf32_kernel",
    "numbers_per_element",
]

_FLOP_FORMULAS = (
    (re.compile(r"aten::(mm|_scaled_mm(_v2)?|_int_mm)"), "mm"),
    (re.compile(r"aten::(addmm_?|_addmm_activation)"), "addmm"),
    (re.compile(r"aten::bmm"), "bmm"),
    (re.compile(r"aten::baddbmm_?"), "baddbmm"),
    (re.compile(LINEAR), "linear"),
    (re.compile(r"aten::_?convolution"), "convolution"),
    (re.compile(r"aten::convolution_backward"), "convolution_backward"),
    (re.compile(r"aten::(_scaled)?_?grouped_mm(_v2)?"), "grouped_mm"),
    (re.compile(r"aten::_scaled_dot_product_attention_math\w*"), "attention_in_full"),
    (re.compile(r"aten::_scaled_dot_product_flash_attention"), "attention_to_end"),
    (re.compile(r"aten::_scaled_dot_product_flash_attention_backward"), "attention_to_end_backward"),
    (re.compile(r"aten::_scaled_dot_product_\w*attention\w*_backward"), "attention_backward"),
    (re.compile(r"aten::(_scaled_dot_product_\w*attention\w*|scaled_dot_product_attention)"), "attention"),
    (re.compile(r"flash_?attn::_flash_attn_forward"), "flash_attn"),
    (re.compile(r"flash_?attn::_flash_attn_backward"), "flash_attn_backward"),
)


def flop_formula(name: str) -> str:
    """Return the name of the formula for an operator's floating-point operations, or ``""`` if there is none.

    Example:
        >>> flop_formula("aten::addmm"), flop_formula("aten::relu")
        ('addmm', '')
    """
    return next((formula for pattern, formula in _FLOP_FORMULAS if pattern.fullmatch(name)), "")


_ELEMENT_BYTES = {  # by the name that a trace has in "Input type", in lower case
    "double": 8, "float": 4, "c10::half": 2, "c10::bfloat16": 2, "long int": 8, "long": 8, "int": 4, "short int": 2,
    "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip


def element_bytes(type_name: str) -> int:
    """Return the size of one tensor element, bytes, by the name of its type in the trace; 0 if it is unknown.

    Example:
        >>> element_bytes("c10::BFloat16"), element_bytes("float"), element_bytes("c10::Float8_e4m3fn")
        (2, 4, 1)
    """
    return 1 if type_name.startswith("c10::Float8") else _ELEMENT_BYTES.get(type_name.lower(), 0)


def is_complex(type_name: object) -> bool:
    """Return True for the name of a type of complex numbers, of which products have formulas of their own.

    Example:
        >>> is_complex("c10::complex<float>"), is_complex("float")
        (True, False)
    """
    return isinstance(type_name, str) and type_name.startswith("c10::complex<")


def numbers_per_element(type_name: str) -> int:
    """Return how many numbers an element of a tensor holds: 2 of those of 4 bits, which are packed in pairs.

    Example:
        >>> numbers_per_element("c10::Float4_e2m1fn_x2"), numbers_per_element("c10::Float8_e4m3fn")
        (2, 1)
    """
    return 2 if type_name.startswith("c10::Float4") and type_name.endswith("_x2") else 1


def is_tf32_kernel(name: str) -> bool:
    """Return True if the name of a 32-bit matrix product's kernel says that it computes in TF32, on matrix units.

    Example:
        >>> is_tf32_kernel("cutlass_80_tensorop_s1688gemm_256x128"), is_tf32_kernel("ampere_sgemm_128x64_tn")
        (True, False)
    """
    return matches(r"tf32|xf32|s1688|s16816gemm_f32", name)


_FLOP_COUNTER = re.compile(r"smsp__sass_thread_inst_executed_op_([hfd])(fma|mul|add)_pred_on\.sum")


def flop_per_count(counter: str) -> int:
    """Return the floating-point operations that one count of a hardware counter stands for: 2, 1, or 0 (not FLOP).

    Example:
        >>> flop_per_count("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), flop_per_count("dram__bytes.sum")
        (2, 0)
    """
    match = _FLOP_COUNTER.fullmatch(counter)
    return 0 if match is None else 2 if match[2] == "fma" else 1


def is_dram_bytes(counter: str) -> bool:
    """Return True for the hardware counter of all bytes that a kernel moved to or from device memory.

    Example:
        >>> is_dram_bytes("dram__bytes.sum"), is_dram_bytes("dram__bytes_read.sum"), is_dram_bytes("dram__cycles.sum")
        (True, False, False)
    """
    return counter == "dram__bytes.sum"


def is_dram_part(counter: str) -> bool:
    """Return True for the hardware counters of the bytes that a kernel read from device memory, or wrote to it.

    Example:
        >>> is_dram_part("dram__bytes_read.sum"), is_dram_part("dram__bytes.sum")
        (True, False)
    """
    return counter in ("dram__bytes_read.sum", "dram__bytes_write.sum")
