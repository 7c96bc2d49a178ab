from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core import naming
from htagraph.core.naming import (
    COUNTER_RANGE,
    DEFAULT_NAMING,
    DEVICE_ANNOTATION,
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    RUNTIME_CATEGORIES,
    activity_kind,
    collective_op,
    copy_kind,
    exact_glob,
    inference_phase,
    is_backward,
    is_compiled_region,
    is_data_loader,
    is_graph_launch,
    is_kernel_launch,
    is_memory_call,
    is_module_frame,
    matches,
    names_like,
    names_that,
    operator_of_frame,
    transfer_direction,
)
from htagraph.trace import nsys
from htagraph.trace.kineto.events import MODELS

names = st.lists(st.text(alphabet="abAB_", max_size=4), min_size=1, max_size=5)
patterns = st.sampled_from(["a", "^b", "A_", "b$", "ab|ba", ""])


@given(patterns, st.text(alphabet="abAB_", max_size=4))
def test_a_pattern_matches_anywhere_whatever_the_case(pattern: str, name: str) -> None:
    assert matches(pattern, name) == (re.search(pattern.lower(), name.lower()) is not None)
    assert matches(pattern, name) == matches(pattern, name.swapcase())


@given(names, patterns, st.data())
def test_codes_are_chosen_by_their_names(known: list[str], pattern: str, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, len(known) - 1), max_size=8))
    mask = names_like(pattern, known, np.array(codes, np.int32))
    assert mask.tolist() == [matches(pattern, known[code]) for code in codes]


@given(names)
def test_names_are_chosen_by_a_predicate(known: list[str]) -> None:
    assert names_that(str.isupper, known).tolist() == [name.isupper() for name in known]


def test_no_names_give_an_empty_mask() -> None:
    assert names_that(str.isupper, ()).tolist() == []


@given(st.text(max_size=8), st.text(max_size=8))
def test_an_exact_glob_is_one_line_that_fits_its_name_and_no_printable_other(name: str, other: str) -> None:
    pattern = exact_glob(name)
    assert pattern.isprintable()
    assert fnmatch.fnmatchcase(name, pattern)
    if name.isprintable() and name != other:
        assert not fnmatch.fnmatchcase(other, pattern)


def test_every_category_is_one_of_the_schema() -> None:
    assert {COUNTER_RANGE, DEVICE_ANNOTATION} | DEVICE_CATEGORIES | HOST_CATEGORIES <= {*MODELS, *nsys.CATEGORIES}


def test_no_category_is_on_host_and_device() -> None:
    assert not DEVICE_CATEGORIES & HOST_CATEGORIES
    assert not {COUNTER_RANGE, DEVICE_ANNOTATION} & (DEVICE_CATEGORIES | HOST_CATEGORIES)


def test_calls_run_on_the_host() -> None:
    assert RUNTIME_CATEGORIES < HOST_CATEGORIES


def test_every_runtime_and_driver_category_of_the_schema_is_a_call() -> None:
    assert {name for name in MODELS if name.endswith(("_runtime", "_driver"))} == RUNTIME_CATEGORIES


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("kernel", "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("kernel", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "communication"),
        ("kernel", "rcclGenericKernel<1, false>", "communication"),
        ("kernel", "void vllm::cross_device_reduce_1stage<c10::Half, 2>", "communication"),
        ("kernel", "mscclpp::allreduce6", "communication"),
        ("kernel", "void deep_ep::intranode::dispatch<4>", "communication"),
        ("kernel", "void dpsk::ep::internode::notify_dispatch<false, 2>(int const*, int*)", "communication"),
        ("kernel", "_ZN7deep_ep9internode8dispatchILb0ELi2EEEvP4int4", "communication"),
        ("kernel", f"_ZN7deep_ep9internode8dispatchI{'Li1E' * 2000}EEvv", "communication"),
        ("kernel", "void deep_ep::layout::get_dispatch_layout<256, 32, 1>(long const*)", "computation"),
        ("kernel", "_ZN7deep_ep6layout19get_dispatch_layoutILi256EEEvPKl", "computation"),
        ("kernel", "void internode_ll::combine<true, 4>(void*)", "communication"),
        ("kernel", "EpDispatchIntraNodeKernel_bf16", "communication"),
        ("kernel", "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<int>(int)", "communication"),
        ("kernel", "nvshmemi_transfer_rma_p2p_kernel(int)", "communication"),
        ("kernel", "void mscclpp::executionKernel<int>(int)", "communication"),
        ("kernel", "void aiter::reduce_scatter_cross_device_store<__half, 8>(int)", "communication"),
        ("kernel", "void (anonymous namespace)::multimem_one_shot_kernel<float, 16>(float*)", "communication"),
        ("kernel", "void c10d::symmetric_memory::barrier_kernel(unsigned int**)", "communication"),
        ("kernel", "void userbuffers_fp16_sum_inplace_gpu_rr_rs<8>(int)", "communication"),
        ("kernel", "void softmax_shmem_kernel<float>(float*)", "computation"),
        ("kernel", "void my_dispatch_kernel<int>(int*)", "computation"),
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


@pytest.mark.parametrize("name", ["aten::gather", "aten::scatter", "aten::broadcast_tensors", "sum_reduce"])
def test_operators_without_a_librarys_prefix_communicate_nothing(name: str) -> None:
    assert collective_op(name)
    assert not collective_op(name, host=True)


@pytest.mark.parametrize("prefix", ["nccl:", "rccl:", "gloo:", "c10d::"])
def test_operators_behind_a_librarys_prefix_communicate(prefix: str) -> None:
    assert collective_op(f"{prefix}all_reduce", host=True) == "all_reduce"


def test_users_may_add_the_prefix_of_their_library() -> None:
    naming = DEFAULT_NAMING.extend(host_communication="^acme:")
    assert collective_op("acme:all_reduce", naming, host=True) == "all_reduce"
    assert not collective_op("acme:all_reduce", host=True)


ANSWERS: dict[Callable[[str], Any], dict[str, Any]] = {
    collective_op: {
        "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)": "all_reduce",
        "ncclKernel_ReduceScatter_RING_LL_Sum_bf16": "reduce_scatter",
        "ncclDevKernel_AllGather_RING_LL": "all_gather",
        "ncclDevKernel_Broadcast_RING_LL": "broadcast",
        "ncclDevKernel_SendRecv": "send_recv",
        "ncclKernel_Reduce_RING_LL_Sum_float": "reduce",
        "void deep_ep::intranode::dispatch<4>": "all_to_all",
        "_ZN7deep_ep9internode8dispatchILb0ELi2EEEvP4int4": "all_to_all",
        "rcclGenericKernel<1, false>": "",
        "_reduce_scatter_base": "reduce_scatter",
        "all_to_allv": "all_to_all",
        "wait": "",
    },
    transfer_direction: {
        "nccl:send 0->1": 1, "nccl:recv 0<-1": -1, "c10d::send": 1, "c10d::recv_": -1, "isend": 1, "irecv": -1,
        "ncclDevKernel_SendRecv": 0, "nccl:all_reduce": 0, "sender": 0,
    },
    inference_phase: {
        "execute_context_1(512)_generation_0(0)": ("prefill", 512),
        "execute_context_0(0)_generation_31(31)": ("decode", 31),
        "execute_context_1(512)_generation_31(31)": ("mixed", 543),
        "step[DECODE bs=8 toks=8]": ("step[DECODE bs=* toks=*]", 8),
        "forward": ("forward", -1),
    },
    operator_of_frame: {
        "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)": "mm",
        "at::_ops::add__Tensor::redispatch(c10::DispatchKeySet)": "add__Tensor",
        "at::native::mm(at::Tensor const&)": "",
        "forward": "",
    },
    copy_kind: {
        "Memcpy HtoD (Pinned -> Device)": "Memcpy HtoD",
        "Memcpy HtoD (Pageable -> Device)": "Memcpy HtoD",
        "Memcpy PtoP (Device -> Device)": "Memcpy PtoP",
        "Memset (Device)": "Memset",
        "CopyDeviceToDevice": "other",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "name", "answer"), [(read, *each) for read, answers in ANSWERS.items() for each in answers.items()]
)
def test_what_a_name_says(read: Callable[[str], Any], name: str, answer: object) -> None:
    assert read(name) == answer


OF_ONE_KIND: dict[str, Callable[[str], bool] | None] = {
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": is_data_loader,
    "autograd::engine::evaluate_function: MmBackward0": is_backward,
    "nn.Module: Linear_0": is_module_frame,
    "Torch-Compiled Region: 0/0": is_compiled_region,
    "## Call CompiledFxGraph fab ##": is_compiled_region,
    **dict.fromkeys(
        ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "cuLaunchKernel",
         "hipExtModuleLaunchKernel"), is_kernel_launch,
    ),
    **dict.fromkeys(("cudaGraphLaunch", "hipGraphLaunch"), is_graph_launch),
    **dict.fromkeys(("cudaMemcpyAsync", "cuMemsetD32Async", "hipMemcpyWithStream"), is_memory_call),
    **dict.fromkeys(("aten::mm", "MmBackward0", "cudaMalloc", "cudaStreamSynchronize"), None),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ONE_KIND)
def test_a_region_or_call_is_of_one_kind_at_most(name: str) -> None:
    kinds = {kind for kind in OF_ONE_KIND.values() if kind}
    assert [kind for kind in kinds if kind(name)] == [OF_ONE_KIND[name]] * (OF_ONE_KIND[name] is not None)


YES_AND_NO: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "is_autograd_node": (("AddmmBackward", "MmBackward0"), ("aten::relu_backward",)),
    "is_backward": (("autograd::engine::evaluate_function: MmBackward0",), ("AUTOGRAD::engine::f", "MmBackward0")),
    "is_gradient_ready": (("torch::autograd::AccumulateGrad",), ("AccumulateGrad: hook", "accumulategrad")),
    "is_collective_call": (("c10d::allreduce_",), ("nccl:all_reduce", "C10D::allreduce_", "aten::mm")),
    "is_data_loader": (("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",), ("DataLoader",)),
    "has_loader_workers": (
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",),
    ),
    "is_compiled_region": (("Torch-Compiled Region: 0/0", "CompiledFunctionBackward"), ("compile_fx_inner",)),
    "is_compiling": (
        ("compile_fx_inner (dynamo_timed)", "torch/_dynamo/convert_frame.py(94): g", "cuModuleLoadData"),
        ("Torch-Compiled Region: 0/0", "TorchDynamo Cache Lookup"),
    ),
    "is_wait": (
        ("_c10d_functional::wait_tensor", "<built-in method wait of PyCapsule object at 0x7f01>"),
        ("threading.py(323): wait",),
    ),
    "is_module_frame": (("nn.Module: Linear_0",), ("NN.Module: Linear_0", "my nn.Module: Linear_0")),
    "is_source_frame": (("train.py(42): augment",), ("<built-in function sleep>",)),
    "is_graph_launch": (("cudaGraphLaunch",), ("cudaLaunchKernel",)),
    "is_kernel_launch": (("cudaLaunchKernelExC",), ("CudaLaunchKernel", "my cudaLaunchKernel", "cudaMemcpyAsync")),
    "is_memory_call": (("cudaMemcpyAsync",), ("cudaLaunchKernel",)),
    "is_poll": (("cudaEventQuery", "hipStreamQuery"), ("cudaEventSynchronize",)),
    "is_triton_kernel": (
        ("triton_poi_fused_add_cos_sin_0", "triton_red_fused_sum_1"),
        ("ampere_sgemm_128x64_nn", "my_triton_kernel"),
    ),
}


@pytest.mark.parametrize("predicate", YES_AND_NO)
def test_a_predicate_tells_names_apart(predicate: str) -> None:
    fits, (yes, no) = getattr(naming, predicate), YES_AND_NO[predicate]
    assert [name for name in (*yes, *no) if fits(name)] == list(yes)
    assert (fits.__doc__ or "").startswith("Return True for the name of ")


@pytest.mark.parametrize(
    ("name", "product", "memory"),
    [
        ("addmm_2", True, False), ("bert_encoder_layer_0_attention_self_query", True, False), ("lm_head", True, False),
        ("model.layers.0.fc1", True, False), ("<built-in method matmul of type object at 0x1>", True, False),
        ("matmul_1_bw", True, False), ("q_proj (backward)", True, False), ("add_7", False, True),
        ("<built-in function truediv>", False, True), ("transformer_h_0_ln_1", False, True),
        ("h.0.attn_dropout", False, True), ("conversation", False, False), ("attention", False, False),
    ],
)  # fmt: skip
def test_a_users_name_of_work_says_what_bounds_it(name: str, product: bool, memory: bool) -> None:  # noqa: FBT001
    assert (naming.is_product_label(name), naming.is_memory_label(name)) == (product, memory)
