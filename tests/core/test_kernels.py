from __future__ import annotations

import sys

import pytest

from htagraph.core.kernels import (
    SIZES,
    is_single_precision,
    is_tf32_kernel,
    kernel_family,
    kernel_kind,
    kernel_library,
    number_format,
)
from htagraph.core.kinds import KernelKind

# (name, family, format of numbers, single precision on general cores)
KERNELS = [
    ("ampere_sgemm_128x64_tn", "GEMM", "fp32", True),
    ("cutlass_80_tensorop_s1688gemm_256x128_16x4_nn_align4", "GEMM", "tf32", False),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)",
     "GEMM", "fp32", True),
    ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn", "GEMM", "tf32", False),
    ("Cijk_Ailk_Bljk_S_MX_B_xf32", "GEMM", "tf32", False),
    ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "GEMM", "bf16", False),
    ("void precomputed_convolve_sgemm<__nv_bfloat16, 1024, 5, 5, 4, 3, 3, 1, false>(int, int, __nv_bfloat16 const*)",
     "convolution", "bf16", False),
    ("void precomputed_convolve_sgemm<float, 1024, 5, 5, 4, 3, 3, 1, false>(int, int, float const*)",
     "convolution", "fp32", True),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, float const*)",
     "convolution", "fp32", True),
    ("void cudnn::detail::dgrad_engine<__half, 512, 6, 5, 3, 3, 3, false>(int, __half const*)",
     "convolution", "fp16", False),
    ("volta_scudnn_128x64_relu_interior_nn_v1", "convolution", "fp32", True),
    ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(Params<float, float>)",
     "convolution", "fp32", False),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, float>(float*)", "GEMM", "fp32", False),
    ("void gemmk1_kernel<float, 256, 5>(float)", "GEMM", "fp32", False),
    ("void fbgemm_gpu::permute_indices_weights_kernel<true, int, float>(int, float*)", "index", "fp32", False),
    ("void ck::kernel_gemm<ck::Gridwise<ck::RowMajor, unsigned short, unsigned short, float>>(int)",
     "GEMM", "bf16", False),
    ("void gemm_i8<signed char, float>(float*)", "GEMM", "", False),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
     "elementwise", "fp32", False),
    ("void at::native::vectorized_layer_norm_kernel<float, float>(int)", "norm", "fp32", False),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float)", "reduction", "fp32", False),
    ("void moe_align_block_size_kernel<int>(int*)", "MoE routing", "", False),
    ("void moe::dev::routing::routingRenormalize::routingIndicesKernel<int>(int)", "MoE routing", "", False),
    ("void moe::dev::finalize::finalizeKernelVecLoad<int>(int)", "MoE routing", "", False),
    ("void vllm::moe::topkGatingSoftmax<4, 64>(int)", "MoE routing", "", False),
    ("void moe_fused_gate_kernel<int>(int)", "MoE routing", "", False),
    ("count_and_sort_expert_tokens_kernel", "MoE routing", "", False),
    ("void ck_tile::MoeSortingKernel<int>(int)", "MoE routing", "", False),
    ("_fwd_kernel_ep_scatter_1", "MoE routing", "", False),
    ("_combined_routing_compute", "MoE routing", "", False),
    ("fused_moe_kernel", "GEMM", "", False),
    ("void at::native::sbtopk::gatherTopK<int>(int)", "index", "", False),
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::bfloat16_t>>(Flash_fwd_params)",
     "attention", "bf16", False),
    ("void multi_tensor_apply_kernel<AdamFunctor<float>>(int)", "optimizer", "fp32", False),
    ("ncclDevKernel_AllReduce_Sum_f16_RING_LL", "collective", "fp16", False),
    ("Memcpy HtoD (Pinned -> Device)", "copy", "", False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "family", "numbers", "single"), KERNELS)
def test_what_the_name_of_a_kernel_says(name: str, family: str, numbers: str, single: bool) -> None:  # noqa: FBT001
    assert (kernel_family(name), number_format(name), is_single_precision(name)) == (family, numbers, single)
    assert is_tf32_kernel(name) == (numbers == "tf32")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the library that reads mangled names needs Python 3.11")
@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        (
            "_Z23implicit_convolve_sgemmIffLi1024EEvPKT_",
            "void implicit_convolve_sgemm<float, float, 1024>(float const*)",
        ),
        ("_ZN5cudnn25bn_fw_tr_1C11_kernel_NCHWIfEEvi", "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>(int)"),
        ("_Z4gemmI13__nv_bfloat16EvPT_", "void gemm<__nv_bfloat16>(__nv_bfloat16*)"),
    ],
)
def test_a_mangled_name_means_what_the_readable_name_means(mangled: str, readable: str) -> None:
    for read in (kernel_family, kernel_kind, kernel_library, number_format, is_single_precision):
        assert read(mangled) == read(readable)


def test_the_kind_of_each_family_is_known_and_each_format_has_a_size() -> None:
    assert kernel_kind("mine") == KernelKind.OTHER
    assert {number_format(name) for name, *_ in KERNELS} - {""} <= set(SIZES)
