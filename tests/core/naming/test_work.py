from __future__ import annotations

import pytest

from htagraph.core.naming.work import copy_kind, is_graph_launch, is_kernel_launch, is_memory_call, is_triton_kernel

CALLS = {
    "cudaLaunchKernel": is_kernel_launch,
    "cudaLaunchKernelExC": is_kernel_launch,
    "cudaLaunchCooperativeKernel": is_kernel_launch,
    "cuLaunchKernel": is_kernel_launch,
    "hipExtModuleLaunchKernel": is_kernel_launch,
    "cudaGraphLaunch": is_graph_launch,
    "hipGraphLaunch": is_graph_launch,
    "cudaMemcpyAsync": is_memory_call,
    "cuMemsetD32Async": is_memory_call,
    "hipMemcpyWithStream": is_memory_call,
    "cudaMalloc": None,
    "cudaStreamSynchronize": None,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_enqueues_one_kind_of_work_at_most(name: str) -> None:
    kinds = (is_kernel_launch, is_graph_launch, is_memory_call)
    assert [kind for kind in kinds if kind(name)] == [CALLS[name]] * (CALLS[name] is not None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD"),
        ("Memcpy PtoP (Device -> Device)", "Memcpy PtoP"),
        ("Memset (Device)", "Memset"),
        ("CopyDeviceToDevice", "other"),
    ],
)
def test_copies_are_told_apart_by_direction_only(name: str, kind: str) -> None:
    assert copy_kind(name) == kind


def test_triton_kernels_begin_with_its_name() -> None:
    assert [is_triton_kernel(name) for name in ("triton_red_fused_sum_1", "my_triton_kernel")] == [True, False]
