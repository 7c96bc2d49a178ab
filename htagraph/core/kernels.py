"""Kernels by name: the family that a kernel belongs to, the library it is from, and the format of its numbers.

Each trait of kernels has one table, and a name has the trait of the first row that fits. Names that the linker mangled
are read first. Arguments of a recording, like the types of an operator's inputs, say more than names do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from htagraph.core.kinds import KernelKind
from htagraph.core.names import outlined, readable_name, short_name
from htagraph.core.naming import DEFAULT_NAMING, matches

__all__ = [
    "ELEMENTWISE",
    "SINGLE_PRECISION",
    "SIZES",
    "is_single_precision",
    "is_tf32_kernel",
    "is_tuned_kernel",
    "kernel_family",
    "kernel_kind",
    "kernel_library",
    "number_format",
]

ELEMENTWISE = "elementwise_kernel"
"""What is in the name of PyTorch's kernels that compute each element by itself."""


class _Family(NamedTuple):
    """A family of kernels."""

    name: str
    """The word that readers use."""
    kind: KernelKind
    """The kind, by which rates are compared."""
    pattern: str
    """The regular expression that a name of the family matches; case is ignored."""


_FAMILIES = (
    _Family("memset", KernelKind.MEMSET, r"^Memset|^aten::(zero|fill)_$|FillFunctor"),
    _Family("copy", KernelKind.COPY, r"^Memcpy|^__amd_rocclr_copy"),
    _Family(
        "optimizer",
        KernelKind.OPTIMIZER,
        r"multi_tensor_apply|fused_?adam|adagrad|^aten::_(foreach|fused)_|^Optimizer\.step",
    ),
    _Family(
        "attention",
        KernelKind.ATTENTION,
        r"fmha|flash_?(fwd|bwd|attn|att_|infer)|attn_fwd|attn_bwd|attention|mha_(fwd|bwd)|paged_attn|unified_attn",
    ),
    _Family(
        "convolution",
        KernelKind.CONVOLUTION,
        r"conv(?!ert)|[dw]grad|fprop|winograd|scudnn|im2col|col2im|implicit_gemm|igemm_(fwd|bwd|wrw)|fft[12]d",
    ),
    _Family(
        "GEMM",
        KernelKind.GEMM,
        r"(?<!fb)gemm|gemv|^Cijk_|nvjet|splitk|matmul|(^|_)bmm|cublas|dot_kernel|fused_moe_kernel"
        r"|^aten::((_scaled_|_int_|_?grouped_)?(add)?mm_?|(badd)?bmm_?|linear|mv|addmv|_scaled_grouped_mm)$",
    ),
    _Family(
        "MoE routing",
        KernelKind.INDEX,
        r"(?=[efgmprst])(?:rout(ing|er)|moe_?\w{0,20}?(align|permut|sort|gat(e|ing)|topk|finalize|prefix|sum)|moe::dev::finalize"
        r"|topk_?(gating|softmax|sigmoid)|(grouped|fused)_topk|(permute|sort)_tokens|token_?permut"
        r"|expert_?(map|offset|prefix|token|count|id)|(?<![a-z])ep_(scatter|gather)|(pre|post)_reorder"
        r"|row_id_map|sort_chunks_by|expandInputRows)",
    ),
    _Family("norm", KernelKind.REDUCTION, r"norm|welford|(^|_|::)bn_|GammaBeta"),
    _Family(
        "reduction",
        KernelKind.REDUCTION,
        r"softmax|reduce_|reduction|loss|triton_(red|per)_|cross_entropy|checkForNaN"
        r"|^aten::(sum|mean|max|min|amax|amin|var|std|prod|cumsum|any|all|argmax|argmin|logsumexp|topk)(\.|$)|pool",
    ),
    _Family(
        "index",
        KernelKind.INDEX,
        r"index|gather|scatter|embedding|sort|topk|permute_|unique|masked_select|nonzero|DeviceSelect|DeviceScan",
    ),
    _Family(
        "copy",
        KernelKind.COPY,
        r"CatArray|copy|transpose|nchwToNhwc|nhwcToNchw|^aten::(cat|stack|clone|contiguous|to|_to_copy)$",
    ),
    _Family(
        "elementwise",
        KernelKind.ELEMENTWISE,
        r"elementwise|triton_|dropout|threshold|gelu|relu|silu|Functor|^aten::\w+$",
    ),
)
"""The family of a kernel, or of an operator that computes on the host."""
_OTHER = _Family("other", KernelKind.OTHER, "")


@lru_cache(maxsize=1 << 17)  # names of kernels and operators: a few thousand in a job, all of one that compiles many
def _family(name: str) -> _Family:
    text = readable_name(name)
    return next((family for family in _FAMILIES if matches(family.pattern, text)), _OTHER)


def kernel_kind(name: str) -> KernelKind:
    """Return the kind of a kernel, of a copy, or of an operator that computes on the host, by its name.

    Example:
        >>> kernel_kind("ampere_sgemm_32x128_tn").label, kernel_kind("Memcpy HtoD (Pinned -> Device)").label
        ('gemm', 'copy')
        >>> kernel_kind("aten::native_layer_norm").label, kernel_kind("aten::add_").label
        ('reduction', 'elementwise')
    """
    return _family(name).kind


def kernel_family(name: str) -> str:
    """Return the family that readers know a kernel by: GEMM, attention, norm, reduction, elementwise, and so on.

    Example:
        >>> kernel_family("void moe_align_block_size_kernel<int>(int*)"), kernel_family("ncclDevKernel_AllReduce_Sum")
        ('MoE routing', 'collective')
        >>> kernel_family("_ZN5cudnn25bn_fw_tr_1C11_kernel_NCHWIfEEvi")
        'norm'
    """
    return "collective" if matches(DEFAULT_NAMING.communication, outlined(name)) else _family(name).name


_LIBRARIES = (
    (r"nccl|rccl|multimem|cross_device_reduce", "nccl"),
    (r"flash|fmha", "flash"),
    (r"scudnn|cudnn|miopen|[dw]grad|^igemm_", "cudnn"),
    (r"cutlass|cublas|(?<!fb)gemm|gemv|nvjet|^Cijk_|splitKreduce|dot_kernel", "cublas"),
    (r"triton", "triton"),
    (r"at::native|c10::", "pytorch"),
    (r"cub::|thrust", "cub"),
)


def kernel_library(name: str) -> str:
    """Return the family of libraries that a kernel is from where its name shows it, else ``""``.

    ``cublas`` stands for all libraries of matrix products (CUTLASS, hipBLASLt), ``cudnn`` for all of convolutions.

    Example:
        >>> kernel_library("ampere_sgemm_32x128_tn"), kernel_library("Cijk_Alik_Bljk_BBS"), kernel_library("mine")
        ('cublas', 'cublas', '')
    """
    text = readable_name(name)
    return next((library for pattern, library in _LIBRARIES if matches(pattern, text)), "")


_TF32 = r"tf32|xf32|s1688|s16816gemm_f32"
_FORMATS = (
    ("fp8", r"e4m3|e5m2|fp8|float8"),
    ("bf16", r"bf16|bfloat16|_B_?BS|[<( ]unsigned short, "),  # Composable Kernel has bfloat16 as unsigned short
    ("tf32", _TF32),
    ("fp16", r"fp16|float16|half|f16|h884|h1688|hgemm|s16816|_H_?HS"),
    ("fp64", r"fp64|float64|double|dgemm"),
    ("", r"signed char|int8|imma|i8816|i16832"),  # products of integers, whose sums are floats
    ("fp32", r"fp32|float32|sgemm|^float$|simt|scudnn|ffma|[<( ]float(?=[ ,*>&)]|$)"),
)
"""The format of a product's inputs. Narrower formats come first: kernels of narrow inputs sum in float."""
SIZES = {"fp8": 1, "fp16": 2, "bf16": 2, "tf32": 4, "fp32": 4, "fp64": 8}
"""Bytes of a number by its format."""


def number_format(name: str) -> str:
    """Return the format of numbers that the name of a type, or of a product's kernel, shows; ``""`` if it shows none.

    Example:
        >>> number_format("torch.bfloat16"), number_format("ampere_sgemm_128x64_tn"), number_format("mine")
        ('bf16', 'fp32', '')
        >>> number_format("convolve_sgemm<__nv_bfloat16, 5>(int)"), number_format("dgrad_engine<float, 512>(int)")
        ('bf16', 'fp32')
    """
    text = readable_name(name)
    return next((made for made, pattern in _FORMATS if matches(pattern, text)), "")


def is_tf32_kernel(name: str) -> bool:
    """Return True if the name of a 32-bit matrix product's kernel says that it computes in TF32, on matrix units.

    Example:
        >>> is_tf32_kernel("cutlass_80_tensorop_s1688gemm_256x128"), is_tf32_kernel("ampere_sgemm_128x64_tn")
        (True, False)
    """
    return matches(_TF32, name)


SINGLE_PRECISION = "(?i)sgemm|scudnn"
"""The pattern that most names of products in single precision fit, and some names of narrower products."""
_GENERAL_CORES = r"sgemm|scudnn|simt|ffma|[dw]grad|convolve"
"""Functions that multiply on general cores, if their inputs are single precision."""
_BESIDE_PRODUCTS = r"winograd\w*(data|output|delta|tiles)|reduce|gemmk1|tensorop"
"""Functions that prepare or finish a product, or that memory bounds: tensor cores change nothing for these."""


def is_single_precision(name: str) -> bool:
    """Return True for the name of a kernel that multiplies matrices in single precision, and not on tensor cores.

    Example:
        >>> is_single_precision("ampere_sgemm_128x64_tn"), is_single_precision("convolve_sgemm<__nv_bfloat16, 5>(int)")
        (True, False)
    """
    function = short_name(name)
    is_product = matches(_GENERAL_CORES, function) or matches("cutlass_[0-9]+_simt", readable_name(name))
    return is_product and not matches(_BESIDE_PRODUCTS, function) and number_format(name) == "fp32"


_NARROW = frozenset({"fp8", "fp16", "bf16"})
_NARROW_PRODUCT = r"^nvjet_(sm\d+_)?[hotq]"
"""Products of cuBLAS whose names begin with letters of narrow inputs: half, bfloat16 (t), 8 bits (q), 4 bits (o)."""


def is_tuned_kernel(name: str) -> bool:
    """Return True for a kernel of a vendor's library, or of flash attention, that multiplies in 16 bits or fewer.

    No setting makes these kernels faster: less work does.

    Example:
        >>> is_tuned_kernel("ampere_bf16_s16816gemm_bf16_64x64_tn"), is_tuned_kernel("nvjet_tst_64x8")
        (True, True)
        >>> is_tuned_kernel("ampere_sgemm_128x64_tn"), is_tuned_kernel("triton_mm")
        (False, False)
    """
    library = kernel_library(name)
    made = number_format(name)
    is_flash = library == "flash" and made not in ("fp32", "tf32")
    is_product = library in ("cublas", "cudnn") and (made in _NARROW or matches(_NARROW_PRODUCT, name))
    return is_flash or is_product
