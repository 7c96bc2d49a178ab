"""Kernels and ops of a transformer: names and launch shapes as in PyTorch's traces, and relative durations.

A `share` is a duration as a multiple of `Job.kernel_us`, that of a layer's large matrix product. The shares are chosen:
matrix products and attention dominate, and backward takes about twice as long as forward; doubling one doubles that
kernel. Grids, blocks and registers are only written into the traces: no time depends on them.
"""

from typing import Final, NamedTuple


class Kernel(NamedTuple):
    """A kernel's name and what its launch looks like."""

    name: str
    grid: tuple[int, int, int] = (1024, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 32
    shared: int = 0


class BackwardOp(NamedTuple):
    """One op, with its kernel, under a backward node."""

    name: str
    kernel: Kernel
    share: float  # of Job.kernel_us
    shape: str = ""


class LayerOp(NamedTuple):
    """One differentiable op of a layer: its nested names, its kernel, and what backward does for it."""

    path: tuple[str, ...]
    kernel: Kernel
    share: float  # of Job.kernel_us
    node: str  # autograd node
    backward: tuple[BackwardOp, ...]
    parameters: int = 0
    shape: str = ""
    module: str = ""
    reduce_forward: bool = False  # row-parallel: all-reduce the output
    reduce_backward: bool = False  # column-parallel: all-reduce the input's gradient


def _elementwise(functor: str) -> Kernel:
    name = (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, "
        "std::array<char*, 3ul> >"
        f"(int, at::native::{functor}, std::array<char*, 3ul>)"
    )
    return Kernel(name, (8192, 1, 1), (128, 1, 1), 20, 0)


GEMM_NN: Final = Kernel(
    "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", (64, 16, 1), (256, 1, 1), 234, 73728
)
GEMM_NT: Final = Kernel(
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nt", (32, 32, 1), (128, 1, 1), 232, 81920
)
GEMM_TN: Final = Kernel(
    "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", (32, 16, 1), (256, 1, 1), 236, 98304
)
LAYER_NORM: Final = Kernel(
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, "
    "c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
    (4096, 1, 1), (32, 4, 1), 32, 24,
)  # fmt: skip
LAYER_NORM_BACKWARD: Final = Kernel(
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<"
    "c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, "
    "c10::BFloat16 const*, c10::BFloat16*, int)",
    (4096, 1, 1), (512, 1, 1), 40, 64,
)  # fmt: skip
FLASH: Final = Kernel(
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, "
    "false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)",
    (16, 8, 16), (128, 1, 1), 255, 49152,
)  # fmt: skip
FLASH_BACKWARD: Final = Kernel(
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<"
    "64, 128, 128, 8, 4, 4, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_bwd_params)",
    (16, 8, 16), (256, 1, 1), 255, 147456,
)  # fmt: skip
ADD: Final = _elementwise("CUDAFunctor_add<c10::BFloat16>")
GELU: Final = _elementwise("GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}")
GELU_BACKWARD: Final = _elementwise(
    "GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}"
)
FILL: Final = _elementwise("FillFunctor<float>")
MUL: Final = _elementwise("BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >")
ADDCMUL: Final = _elementwise("addcmul_cuda_kernel(at::TensorIteratorBase&, c10::Scalar const&)::{lambda()#1}")
ADDCDIV: Final = _elementwise("addcdiv_cuda_kernel(at::TensorIteratorBase&, c10::Scalar const&)::{lambda()#1}")
SQRT: Final = _elementwise("sqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}")
SUM: Final = Kernel(
    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, "
    "at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float, "
    "c10::BFloat16> >, unsigned int, c10::BFloat16, 4, 4> >(...)",
    (64, 1, 1), (32, 16, 1), 40, 16,
)  # fmt: skip
EMBEDDING: Final = Kernel(
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, "
    "unsigned int, 2, 2, -2, true>(...)",
    (1088, 1, 1), (128, 1, 1), 32, 0,
)  # fmt: skip
EMBEDDING_BACKWARD: Final = Kernel(
    "void at::native::(anonymous namespace)::compute_grad_weight<c10::BFloat16>("
    "long const*, c10::BFloat16 const*, ...)",
    (512, 1, 1), (32, 1, 1), 30, 0,
)  # fmt: skip
SOFTMAX: Final = Kernel(
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, float, "
    "at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, c10::BFloat16 const*, int)",
    (4096, 1, 1), (1024, 1, 1), 32, 4224,
)  # fmt: skip
SOFTMAX_BACKWARD: Final = Kernel(
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<8, float, float, c10::BFloat16, "
    "at::native::(anonymous namespace)::LogSoftMaxBackwardEpilogue>("
    "c10::BFloat16*, float const*, float const*, int)",
    (4096, 1, 1), (1024, 1, 1), 32, 4224,
)  # fmt: skip
NLL: Final = Kernel(
    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(...)",
    (1, 1, 1), (32, 1, 1), 38, 256,
)  # fmt: skip
MULTI_TENSOR: Final = Kernel(
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 2, 1, 1>, "
    "std::multiplies<float>, float>(...)",
    (320, 1, 1), (512, 1, 1), 36, 0,
)  # fmt: skip
FUSED_ADAM: Final = Kernel(
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::"
    "FusedAdamMathFunctor<float, 4, ADAMW, false> >(...)",
    (320, 1, 1), (512, 1, 1), 56, 0,
)  # fmt: skip
TRITON_GELU: Final = Kernel("triton_poi_fused_gelu_2", (16384, 1, 1), (256, 1, 1), 24, 0)

_ACTIVATION: Final = "[8, 512, 2048]"
_LINEAR: Final = "[2048], [4096, 2048], [2048, 8192]"


def _linear(share: float, module: str, *, reduce_forward: bool, reduce_backward: bool) -> LayerOp:
    backward = (
        BackwardOp("aten::mm", GEMM_NT, share, "[4096, 8192], [8192, 2048]"),
        BackwardOp("aten::mm", GEMM_TN, share, "[8192, 4096], [4096, 2048]"),
        BackwardOp("aten::sum", SUM, 0.04, "[4096, 8192]"),
    )
    path = ("aten::linear", "aten::addmm")
    return LayerOp(
        path, GEMM_NN, share, "AddmmBackward0", backward, 2, _LINEAR, module, reduce_forward, reduce_backward
    )


_HEADS: Final = "[8, 32, 512, 64]"
_LOGITS: Final = "[4096, 50304]"
_NORM: Final = LayerOp(
    ("aten::layer_norm", "aten::native_layer_norm"), LAYER_NORM, 0.06, "NativeLayerNormBackward0",
    (BackwardOp("aten::native_layer_norm_backward", LAYER_NORM_BACKWARD, 0.12, _ACTIVATION),),
    2, _ACTIVATION, "LayerNorm",
)  # fmt: skip
_RESIDUAL: Final = LayerOp(("aten::add",), ADD, 0.06, "AddBackward0", (), 0, _ACTIVATION)
_ATTENTION_OPS: Final = (
    "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention", "aten::_flash_attention_forward",
)  # fmt: skip
_ATTENTION: Final = LayerOp(
    _ATTENTION_OPS, FLASH, 0.7, "ScaledDotProductFlashAttentionBackward0",
    (BackwardOp("aten::_flash_attention_backward", FLASH_BACKWARD, 1.7, _HEADS),), 0, _HEADS,
)  # fmt: skip
_GELU: Final = LayerOp(
    ("aten::gelu",), GELU, 0.12, "GeluBackward0",
    (BackwardOp("aten::gelu_backward", GELU_BACKWARD, 0.14, _ACTIVATION),), 0, _ACTIVATION, "GELU",
)  # fmt: skip

LAYER: Final[tuple[LayerOp, ...]] = (
    _NORM,
    _linear(0.9, "Linear", reduce_forward=False, reduce_backward=True),
    _ATTENTION,
    _linear(0.4, "Linear", reduce_forward=True, reduce_backward=False),
    _RESIDUAL,
    _NORM,
    _linear(1.0, "Linear", reduce_forward=False, reduce_backward=True),
    _GELU,
    _linear(1.0, "Linear", reduce_forward=True, reduce_backward=False),
    _RESIDUAL,
)
EMBED: Final = LayerOp(
    ("aten::embedding", "aten::index_select"), EMBEDDING, 0.08, "EmbeddingBackward0",
    (BackwardOp("aten::embedding_dense_backward", EMBEDDING_BACKWARD, 0.2, _ACTIVATION),),
    1, "[50304, 2048], [8, 512]", "Embedding",
)  # fmt: skip
LOSS: Final[tuple[LayerOp, ...]] = (
    LayerOp(
        ("aten::cross_entropy_loss", "aten::log_softmax", "aten::_log_softmax"), SOFTMAX, 0.25, "LogSoftmaxBackward0",
        (BackwardOp("aten::_log_softmax_backward_data", SOFTMAX_BACKWARD, 0.3, _LOGITS),), 0, _LOGITS,
    ),
    LayerOp(
        ("aten::nll_loss_nd", "aten::nll_loss_forward"), NLL, 0.03, "NllLossBackward0",
        (BackwardOp("aten::nll_loss_backward", FILL, 0.04, _LOGITS),), 0, f"{_LOGITS}, [4096]",
    ),
)  # fmt: skip

FOREACH: Final[tuple[str, ...]] = (
    "aten::_foreach_mul_", "aten::_foreach_lerp_", "aten::_foreach_addcmul_", "aten::_foreach_sqrt",
    "aten::_foreach_div_", "aten::_foreach_addcdiv_",
)  # fmt: skip
LOOP: Final[tuple[tuple[str, Kernel], ...]] = (
    ("aten::mul_", MUL),
    ("aten::lerp_", ADD),
    ("aten::addcmul_", ADDCMUL),
    ("aten::sqrt", SQRT),
    ("aten::addcdiv_", ADDCDIV),
)


class CollectiveNames(NamedTuple):
    """What a kind of collective is called in each place."""

    op: str  # cpu_op around it
    annotation: str
    recorded: str  # `CollectiveNames name`
    kernel: str  # from 2024 on
    kernel_before: str


def _collective(op: str, annotation: str, recorded: str, kernel: str, kernel_before: str) -> CollectiveNames:
    """Return names with the parts that all collectives share."""
    new, old = "(ncclDevKernelArgsStorage<4096ul>)", "(ncclDevComm*, unsigned long, ncclWork*)"
    return CollectiveNames(
        f"c10d::{op}", f"nccl:{annotation}", recorded, f"ncclDevKernel_{kernel}{new}",
        f"ncclKernel_{kernel_before}{old}",
    )  # fmt: skip


_PAIR: Final = ("SendRecv", "SendRecv_RING_SIMPLE_Sum_int8_t")
COLLECTIVES: Final[dict[str, CollectiveNames]] = {
    "all_reduce": _collective(
        "allreduce_", "all_reduce", "allreduce", "AllReduce_Sum_bf16_RING_LL", "AllReduce_RING_LL_Sum_bf16"
    ),
    "all_gather": _collective(
        "_allgather_base_", "_all_gather_base", "_allgather_base", "AllGather_RING_LL", "AllGather_RING_LL_Sum_int8_t"
    ),
    "reduce_scatter": _collective(
        "_reduce_scatter_base_", "_reduce_scatter_base", "_reduce_scatter_base", "ReduceScatter_Sum_bf16_RING_LL",
        "ReduceScatter_RING_LL_Sum_bf16",
    ),
    "all_to_all": _collective("alltoall_base_", "all_to_all", "all_to_allv", *_PAIR),
    "broadcast": _collective(
        "broadcast_", "broadcast", "broadcast", "Broadcast_RING_LL", "Broadcast_RING_LL_Sum_int8_t"
    ),
    "send": _collective("send", "send", "send", *_PAIR),
    "recv": _collective("recv_", "recv", "recv", *_PAIR),
}  # fmt: skip
