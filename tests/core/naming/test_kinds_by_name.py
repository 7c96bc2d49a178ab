from __future__ import annotations

import pytest

from htagraph.core.naming.kinds_by_name import DEFAULT_NAMING, activity_kind


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("kernel", "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("kernel", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "communication"),
        ("kernel", "rcclGenericKernel<1, false>", "communication"),
        ("kernel", "void vllm::cross_device_reduce_1stage<c10::Half, 2>", "communication"),
        ("kernel", "mscclpp::allreduce6", "communication"),
        ("kernel", "void deep_ep::intranode::dispatch<4>", "communication"),
        ("kernel", "ampere_sgemm_128x64_nn", "computation"),
        ("kernel", "batch_norm_collect_statistics_SyncBN", "computation"),
        ("kernel", "my_dma_like_gemm", "computation"),
        ("kernel", "__amd_rocclr_copyBuffer", "memory"),
        ("kernel", "Memset (Device)", "memory"),
        ("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", "memory"),
        ("gpu_memset", "hipMemset", "memory"),
        ("gpu_memcpy", "CopyDeviceToDevice", "memory"),
        ("mtia_ccp_events", "event_wait", "device_other"),
        ("cuda_runtime", "cudaLaunchKernel", "launch"),
        ("cuda_runtime", "cudaLaunchKernelExC", "launch"),
        ("cuda_driver", "cuLaunchKernelEx", "launch"),
        ("cuda_runtime", "cudaGraphLaunch", "launch"),
        ("cuda_runtime", "cudaMemcpyAsync", "launch"),
        ("cuda_runtime", "cudaMemsetAsync", "launch"),
        ("cuda_runtime", "hipModuleLaunchKernel", "launch"),
        ("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", "launch"),
        ("cuda_runtime", "cudaDeviceSynchronize", "sync"),
        ("cuda_runtime", "hipStreamSynchronize", "sync"),
        ("cuda_runtime", "cudaEventRecord", "record"),
        ("cuda_runtime", "cudaEventRecordWithFlags", "record"),
        ("cuda_runtime", "cudaStreamWaitEvent", "wait"),
        ("cuda_runtime", "cudaMalloc", "runtime"),
        ("cuda_runtime", "cudaEventQuery", "runtime"),
        ("cpu_op", "aten::mm", "op"),
        ("cpu_op", "nccl:all_reduce", "op"),
        ("cpu_op", "gloo:all_reduce", "host_communication"),
        ("user_annotation", "gloo:all_reduce", "host_communication"),
        ("user_annotation", "ProfilerStep#12", "step"),
        ("cpu_op", "ProfilerStep#12", "step"),
        ("cpu_op", "ProfilerStep", "op"),
        ("user_annotation", "## forward ##", "annotation"),
        ("python_function", "nn.Module: Linear_0", "python"),
    ],
)
def test_a_name_and_its_category_decide_the_kind(category: str, name: str, kind: str) -> None:
    assert activity_kind(category, name).label == kind


def test_own_patterns_add_to_the_default_ones() -> None:
    naming = DEFAULT_NAMING.extend(communication=r"acme_ring_\w+")
    assert activity_kind("kernel", "acme_ring_push", naming).label == "communication"
    assert activity_kind("kernel", "ncclDevKernel_Broadcast", naming).label == "communication"
    assert activity_kind("kernel", "acme_ring_push").label == "computation"


def test_rules_show_only_what_differs_from_the_default_ones() -> None:
    assert repr(DEFAULT_NAMING) == "Naming()"
    assert repr(DEFAULT_NAMING.extend(sync="join")) == "Naming(sync='synchronize|join')"


def test_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(AttributeError, match="comunication"):
        DEFAULT_NAMING.extend(comunication="x")
