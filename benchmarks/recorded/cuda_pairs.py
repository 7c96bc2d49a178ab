"""Pairs of jobs that compute on a CUDA device."""

from __future__ import annotations

from benchmarks.recorded.pair import FIX, LOADER, LOADER_HALF, LOADS, PYTHON, Pair, remove, scale

CUDA = {"device": "cuda"}
SYNC = "cuda*Synchronize|cudaMemcpyAsync"

CUDA_PAIRS = {
    "cuda_item_removed": Pair(
        "cuda.syncs", {**CUDA, "spin_ms": 20, "host_ms": 15, "item": True}, {"item": False},
        ".item() is gone: host work runs beside kernels", remove(op="aten::item"), f"aten::item|{SYNC}"),
    "cuda_kernel_half": Pair(
        "cuda.syncs", {**CUDA, "spin_ms": 20, "host_ms": 15}, {"spin_ms": 10},
        "kernels take half; then the host bounds", scale(0.5, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_pageable_half": Pair(
        "cuda.copies", {**CUDA, "spin_ms": 8, "megabytes": 200, "pinned": False}, {"megabytes": 100},
        "a pageable copy of half the size: it blocks the host", scale(0.5, name="*HtoD*"), "*HtoD*|*[Mm]emcpy*"),
    "cuda_pinned_half": Pair(
        "cuda.copies", {**CUDA, "spin_ms": 8, "megabytes": 400, "pinned": True}, {"megabytes": 200},
        "a pinned copy of half the size", scale(0.5, name="*HtoD*"), "*HtoD*|*[Mm]emcpy*"),
    "cuda_pageable_kernel_half": Pair(
        "cuda.copies", {**CUDA, "spin_ms": 16, "megabytes": 40, "pinned": False, "host_ms": 10}, {"spin_ms": 8},
        "kernels take half around a pageable copy that waits for them", scale(0.5, name="*spin_kernel*"),
        "*spin_kernel*"),
    "cuda_free_removed": Pair(
        "cuda.allocations", {**CUDA, "spin_ms": 20, "host_ms": 15, "megabytes": 300, "empty": True}, {"empty": False},
        "memory is no longer given back in each step: no cudaFree, no cudaMalloc",
        [*remove(name="cudaFree"), *remove(name="cudaMalloc")],
        "cudaFree*|cudaMalloc*"),
    "cuda_free_kernel_half": Pair(
        "cuda.allocations", {**CUDA, "spin_ms": 30, "host_ms": 5, "megabytes": 300, "empty": True}, {"spin_ms": 15},
        "kernels take half; cudaFree waits for them", scale(0.5, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_graph_kernel_half": Pair(
        "cuda.small_kernels", {**CUDA, "count": 300, "spin_ms": 4, "side_ms": 8, "graph": True},
        {"spin_ms": 2, "side_ms": 4}, "long kernels take half in a CUDA graph that forks and joins",
        scale(0.5, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_graph_made": Pair(
        "cuda.small_kernels", {**CUDA, "count": 1000, "side_ms": 1, "spin_ms": 1}, {"graph": True},
        "1,000 small kernels become one CUDA graph", [("cuda_graph", {})], "cuda*Launch*|aten::*"),
    "cuda_streams_beside_half": Pair(
        "cuda.two_streams", {**CUDA, "first_ms": 5, "passes": 40, "beside_ms": 40, "last_ms": 5}, {"beside_ms": 20},
        "the main stream's kernel beside the side stream takes half", None, "*spin_kernel*",
        {"why": "three kernels of the main stream have one name"}),
    "cuda_streams_side_half": Pair(
        "cuda.two_streams", {**CUDA, "first_ms": 5, "passes": 160, "beside_ms": 5, "last_ms": 5}, {"passes": 80},
        "the side stream passes half as often over memory; the main stream waits for it",
        scale(0.5, name="*elementwise*"), "*elementwise*|aten::mul_"),
    "cuda_item_each_layer": Pair(
        "cuda_training.training", {**CUDA, "tokenize_ms": 6, "item_per_layer": True}, {"item_per_layer": False},
        "no more norm and .item() after each layer", remove(op="watch"), f"watch|aten::*|{SYNC}"),
    "cuda_metrics_removed": Pair(
        "cuda_training.training", {**CUDA, "metrics": 12}, {"metrics": 0},
        "metrics (matrix products, then .item()) are not computed any more", remove(op="metrics"),
        "metrics|aten::*|*gemm*|*cutlass*|cuda*"),
    "cuda_tail_removed": Pair(
        "cuda_training.training", {**CUDA, "layers": 3, "tail": 3, "length": 512}, {"tail": 0},
        "the last three of six layers are gone, backward too; the device bounds",
        [*remove(op="tail"), *remove(backward_of="tail")],
        "tail|aten::*|*gemm*|*cutlass*|nvjet*|*kernel*"),
    "cuda_small_tail_removed": Pair(
        "cuda_training.training", {**CUDA, "layers": 3, "tail": 3, "width": 64, "length": 32}, {"tail": 0},
        "the last three of six layers are gone, backward too; the host bounds",
        [*remove(op="tail"), *remove(backward_of="tail")],
        "tail|aten::*|cudaLaunchKernel*|*Backward*"),
    "cuda_tokenize_removed": Pair(
        "cuda_training.training", {**CUDA, "tokenize_ms": 12, "with_stack": True, "layers": 2}, {"tokenize_ms": 0},
        "Python between copy and forward is gone; stacks recorded", remove(op="*: tokenize"),
        "*tokenize*|*pause*|*sleep*|*perf_counter*|*Python*"),
    "cuda_loader_half": Pair(
        "cuda_training.training", {**CUDA, "loader_ms": 90, "workers": 2, "pinned": True, "layers": 2},
        {"loader_ms": 45}, "the loader (2 workers, pinned memory) takes half", LOADER_HALF, LOADER, LOADS),
    "cuda_loader_kernel_half": Pair(
        "cuda_training.training", {**CUDA, "loader_ms": 60, "workers": 2, "pinned": True, "layers": 2, "spin_ms": 40},
        {"spin_ms": 10}, "a long kernel takes a quarter; then the loader (2 workers) bounds",
        scale(0.25, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_graphed_python_removed": Pair(
        "cuda_training.graphed", {**CUDA, "layers": 4, "tokenize_ms": 14}, {"tokenize_ms": 0},
        "Python beside a CUDA graph is gone; then the graph bounds", None, PYTHON,
        {"why": "without Python stacks it has no name of its own"}),
    "cuda_graphed_kernel_4x": Pair(
        "cuda_training.graphed", {**CUDA, "layers": 4, "tokenize_ms": 8, "spin_ms": 2}, {"spin_ms": 16},
        "a kernel of a CUDA graph, hidden behind Python, takes eight times as long; then it bounds",
        scale(8, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_queue_full": Pair(
        "cuda_training.run_ahead", {**CUDA, "spin_ms": 30, "count": 3000, "host_ms": 2}, {"spin_ms": 15},
        "a long kernel takes half; 3,000 launches behind it fill the queue", scale(0.5, name="*spin_kernel*"),
        "*spin_kernel*"),
    "cuda_event_synchronize": Pair(
        "cuda_training.event_waits", {**CUDA, "side_ms": 20, "spin_ms": 6, "host_ms": 10}, {"side_ms": 5},
        "a side stream's kernel takes a quarter; the host waits for its event", None, "*spin_kernel*",
        {"why": "both streams' kernels have one name"}),
    "cuda_event_poll_python": Pair(
        "cuda_training.event_waits", {**CUDA, "side_ms": 20, "spin_ms": 20, "host_ms": 10, "poll": True},
        {"side_ms": 10, "spin_ms": 10}, "kernels take half; the host asks for an event in a loop",
        scale(0.5, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_pinning_kernel_half": Pair(
        "cuda_training.pinning", {**CUDA, "spin_ms": 30, "host_ms": 6, "megabytes": 20}, {"spin_ms": 15},
        "kernels take half; host memory is pinned and given back in each step", scale(0.5, name="*spin_kernel*"),
        "*spin_kernel*"),
    "cuda_prefetch_more": Pair(
        "cuda_training.prefetching", {**CUDA, "spin_ms": 8, "pieces": 10}, {"pieces": 40},
        "four times as much is copied by a side stream, hidden before", scale(4, name="*HtoD*"),
        "*HtoD*|*[Mm]emcpy*|cudaMemcpyAsync|aten::*"),
    "cuda_decoding_choose_half": Pair(
        "cuda_training.decoding", {**CUDA, "width": 256, "layers": 2, "tokens": 4, "choose_ms": 4}, {"choose_ms": 0},
        "no Python after each token's copy to the host", None, "choose|*Python*",
        {"why": "the annotation around it holds the copy too"}),
    "cuda_decoding_kernel_half": Pair(
        "cuda_training.decoding",
        {**CUDA, "width": 256, "layers": 2, "tokens": 4, "choose_ms": 1, "spin_ms": 6}, {"spin_ms": 3},
        "a kernel of each token takes half; pageable copies in both directions wait",
        scale(0.5, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_growing_kernel_half": Pair(
        "cuda_training.growing", {**CUDA, "spin_ms": 24, "blocks": 6, "host_ms": 4}, {"spin_ms": 12},
        "kernels take half; cudaMalloc of new sizes beside them", scale(0.5, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_metrics_large_removed": Pair(
        "cuda_training.training", {**CUDA, "metrics": 12, "spin_ms": 40, "length": 64, "layers": 1, "width": 2048},
        {"metrics": 0}, "metrics (matrix products, then .item()) are not computed any more; the device bounds",
        remove(op="metrics"), "metrics|aten::*|*gemm*|*cutlass*|cuda*"),
    "cuda2_shared_stall": Pair(
        "cuda_training.two_ranks",
        {**CUDA, "ranks": 2, "share": True, "spin_ms": 5, "stall_ms": {"1": 25}}, {"stall_ms": {}},
        "rank 1 does not sleep any more; two ranks share a device", FIX, f"{PYTHON}|nccl*|gloo*", {"straggler": 1}),
    "cuda2_shared_stall_free": Pair(
        "cuda_training.two_ranks",
        {**CUDA, "ranks": 2, "share": True, "spin_ms": 5, "empty": True, "stall_ms": {"0": 25}}, {"stall_ms": {}},
        "rank 0 does not sleep any more; rank 1 waits for it in cudaFree", FIX, f"{PYTHON}|nccl*|gloo*|cudaFree",
        {"straggler": 0}),
    "cuda2_shared_ddp_stall": Pair(
        "cuda_training.training",
        {**CUDA, "ranks": 2, "share": True, "layers": 2, "length": 128, "stall_ms": {"1": 25}}, {"stall_ms": {}},
        "rank 1 does not sleep any more; DistributedDataParallel, two ranks share a device", FIX,
        f"{PYTHON}|nccl*|gloo*", {"straggler": 1}),
    "cuda_ddp_kernel_half": Pair(
        "cuda.data_parallel", {**CUDA, "ranks": 2, "spin_ms": 20}, {"spin_ms": 10},
        "long kernels take half; NCCL on 2 devices", scale(0.5, name="*spin_kernel*"), "*spin_kernel*"),
    "cuda_ddp_straggler": Pair(
        "cuda.data_parallel", {**CUDA, "ranks": 2, "spin_ms": 20, "slow": {"1": 1.5}}, {"slow": {}},
        "rank 1's kernels are no slower any more; NCCL on 2 devices", FIX, "*spin_kernel*", {"straggler": 1}),
}  # fmt: skip
