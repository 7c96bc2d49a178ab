"""The pairs that `record_pairs.py` records: settings of A, what B changes, and how to ask htagraph for that change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Change = tuple[str, dict[str, Any]]
"""A method of `htagraph.what_if` and its arguments."""

NETWORK = "gloo:*|c10d::*|nccl*"
"""What a difference in the network may be put down to."""

LOADER = "enumerate(DataLoader)*|*[Ll]oader*"
"""What a difference in the data loader may be put down to."""

PYTHON = "*refresh_cache*|*pause*|*sleep*|*Python*|*perf_counter*|ProfilerStep*"
"""What a difference in Python that is in no operator may be put down to."""

SMALL = {"attn": (6, 9), "mlp": (5, 7), "norm": (2, 3)}
"""Operators of a block: ms forward, ms backward."""

FIX: list[Change] = [("fix_straggler", {"rank": "auto"})]


@dataclass(frozen=True)
class Pair:
    """Two jobs that differ in one thing, and what is true of them."""

    job: str
    """The function of `benchmarks.recorded` that runs it: "module.function"."""
    a: dict[str, Any]
    """Settings of A."""
    b: dict[str, Any]
    """What B's settings have on top of A's, or in their place."""
    change: str
    """What B changes, in words."""
    ask: list[Change] | None
    """The what-if on A that says so; None where no what-if can."""
    blame: str
    """Globs, separated by |, one of which must match what a diff names first."""
    more: dict[str, Any] = field(default_factory=dict)
    """`straggler`: the rank to name in A; `bound`: how the verdict begins; `why`: why it cannot be asked for."""

    def truth(self, name: str) -> dict[str, Any]:
        """Return what truth.json says of this pair."""
        return {
            "pair": name,
            "job": self.job,
            "A": self.a,
            "B": {**self.a, **self.b},
            "change": self.change,
            "ask": [list(each) for each in self.ask] if self.ask else None,
            "blame": self.blame,
            "straggler": None,
            "bound": None,
            **self.more,
        }


def scale(factor: float, **criteria: Any) -> list[Change]:  # noqa: ANN401 - those of graph.select
    """Return the what-if in which selected activities take `factor` times as long."""
    return [("scale", {"factor": factor, **criteria})]


def network(factor: float) -> list[Change]:
    """Return the what-if in which transfers take `factor` times as long."""
    return [("scale_network", {"factor": factor})]


def remove(**criteria: Any) -> list[Change]:  # noqa: ANN401 - those of graph.select
    """Return the what-if in which selected activities are left out."""
    return [("remove", criteria)]


def operators(**changed: tuple[float, float]) -> dict[str, Any]:
    """Return the setting `operators`: the small ones with some changed."""
    return {"operators": {**SMALL, **changed}}


ONE = operators()
HALF = operators(attn=(3, 4.5), mlp=(2.5, 3.5))
ASK_HALF = [*scale(0.5, op="timed::attn*"), *scale(0.5, op="timed::mlp*")]
LOADER_HALF: list[Change] = [("inject", {"rank": 0, "kind": "loader", "factor": 0.5})]
DDP2 = {"ranks": 2, "width": 200, "layers": 3, "mbit": 160, "bucket_mb": 0.1, **ONE}
DDP4 = {"ranks": 4, "width": 120, "layers": 2, "mbit": 400, "bucket_mb": 0.1, **ONE}
DDP8 = {"ranks": 8, "width": 64, "layers": 2, "mbit": 800, "operators": {"attn": (16, 24)}}
FSDP = {"ranks": 2, "width": 300, "layers": 3, "mbit": 300, "sync": "fsdp", "operators": {"attn": (12, 18)}}
HOST = {"bound": "Bound by host code"}
CUDA = {"device": "cuda"}
SYNC = "cuda*Synchronize|cudaMemcpyAsync"
LOADS = {"bound": "Bound by the data loader"}

PAIRS = {
    # one process
    "backward_op_removed": Pair(
        "training.training", {"layers": 3, **ONE}, operators(attn=(6, 0)), "attn's backward is gone",
        remove(op="timed::attn_backward"), "timed::attn_backward", HOST),
    "recompute_removed": Pair(
        "training.training", {"layers": 3, "recompute": True, **ONE}, {"recompute": False},
        "activation checkpointing is gone: forward is not computed again", remove(op="recompute"),
        "recompute|timed::*|*[Cc]heckpoint*", HOST),
    "optimizer_half": Pair(
        "training.training", {"optimizer_ms": 30, **ONE}, {"optimizer_ms": 15}, "the optimizer's operator takes half",
        scale(0.5, op="Optimizer.step*"), "Optimizer.step*|timed::update", HOST),
    "annotation_removed": Pair(
        "training.training", {"augment_ms": 24, **ONE}, {"augment_ms": 0},
        "an annotation is gone with all that was in it: an operator and untraced Python", remove(op="augment"),
        "augment|timed::crop|*Python*", HOST),
    "save_each_4": Pair(
        "training.training", {"save_ms": 60, "save_every": 4, **ONE}, {"save_ms": 0},
        "checkpoints, saved each 4 steps, are not saved any more", remove(op="save_checkpoint"), "save_checkpoint",
        HOST),
    "stall_stack": Pair(
        "training.training", {"stall_ms": {"0": 45}, "stall_every": 3, "with_stack": True, **ONE}, {"stall_ms": {}},
        "Python that sleeps in each third step is gone; stacks recorded", remove(op="*: refresh_cache"), PYTHON, HOST),
    # data loaders
    "loader2_op_half": Pair(
        "training.training", {"loader_ms": 80, "workers": 2, **ONE}, HALF,
        "operators take half; then the loader (2 workers, hidden before) bounds", ASK_HALF, f"timed::*|{LOADER}", HOST),
    "loader2_bound_op_half": Pair(
        "training.training", {"loader_ms": 180, "workers": 2, **ONE}, HALF,
        "operators take half, but the loader (2 workers) bounds before and after: no gain", ASK_HALF,
        f"timed::*|{LOADER}", LOADS),
    "loader2_half": Pair(
        "training.training", {"loader_ms": 180, "workers": 2, **ONE}, {"loader_ms": 90},
        "the loader (2 workers) takes half; then it hides", LOADER_HALF, LOADER, LOADS),
    "loader2_double": Pair(
        "training.training", {"loader_ms": 80, "workers": 2, **ONE}, {"loader_ms": 160},
        "the loader (2 workers, hidden) takes twice as long; then it bounds",
        [("inject", {"rank": 0, "kind": "loader", "factor": 2})], LOADER, HOST),
    # threads
    "producers2_half": Pair(
        "host_threads.producers", {"produce_ms": 80, "consume_ms": 25, "all_threads": True}, {"produce_ms": 40},
        "two producing threads are twice as fast; then the consumer bounds", scale(0.5, name="timed::produce"),
        "timed::produce"),
    "producers2_consumer_half": Pair(
        "host_threads.producers", {"produce_ms": 60, "consume_ms": 40, "all_threads": True}, {"consume_ms": 20},
        "the consumer takes half; then the two producers bound", scale(0.5, name="timed::consume"), "timed::consume",
        HOST),
    "pool_half": Pair(
        "host_threads.pool", {"decode_ms": 30, "train_ms": 20, "all_threads": True}, {"decode_ms": 15},
        "four futures on two threads take half; the main thread waits for them", scale(0.5, name="timed::decode"),
        "timed::decode", HOST),
    "pool_train_half": Pair(
        "host_threads.pool", {"decode_ms": 30, "train_ms": 20, "all_threads": True}, {"train_ms": 10},
        "the main thread's operator takes half beside futures that take longer: no gain",
        scale(0.5, name="timed::train"), "timed::train"),
    # data parallel
    "ddp8_op_half": Pair(
        "training.training", DDP8, {"operators": {"attn": (8, 24)}}, "attn's forward takes half, 8 ranks",
        scale(0.5, name="timed::attn"), "timed::attn", HOST),
    "ddp8_straggler": Pair(
        "training.training", {**DDP8, "slow": {"5": 1.3}}, {"slow": {}}, "rank 5 of 8 is no slower any more", FIX,
        "timed::*", {"straggler": 5, **HOST}),
    "ddp4_straggler_some_steps": Pair(
        "training.training", {**DDP4, "slow": {"1": 1.8}, "slow_every": 3}, {"slow": {}},
        "rank 1 is no slower any more; it was in each third step", FIX, "timed::*", {"straggler": 1}),
    "ddp4_stall": Pair(
        "training.training", {**DDP4, "stall_ms": {"2": 25}}, {"stall_ms": {}},
        "rank 2 no longer sleeps in Python outside any operator; no stacks", FIX, PYTHON, {"straggler": 2}),
    "ddp4_stall_some_steps_stack": Pair(
        "training.training",
        {**DDP4, "layers": 1, "stall_ms": {"3": 60}, "stall_every": 3, "with_stack": True}, {"stall_ms": {}},
        "rank 3 no longer sleeps in Python in each third step; stacks recorded", remove(op="*: refresh_cache"), PYTHON,
        {"straggler": 3}),
    "ddp4_accumulate_op_half": Pair(
        "training.training", {**DDP4, "layers": 1, "accumulate": 4}, operators(attn=(6, 4.5)),
        "attn's backward takes half; 4 micro-batches, the first 3 without all-reduce",
        scale(0.5, name="timed::attn_backward"), "timed::attn_backward", HOST),
    "ddp2_accumulate_network_4x": Pair(
        "training.training", {**DDP2, "layers": 2, "accumulate": 2, "mbit": 240}, {"mbit": 60},
        "network a quarter as fast; 2 micro-batches, the first without all-reduce", network(4), NETWORK, HOST),
    "ddp2_unused_op_half": Pair(
        "training.training", {**DDP2, "unused": True}, operators(mlp=(2.5, 7)),
        "mlp's forward takes half; DDP looks for unused parameters", scale(0.5, name="timed::mlp"), "timed::mlp"),
    "ddp2_stack_op_half": Pair(
        "training.training", {**DDP2, "layers": 2, "with_stack": True}, operators(attn=(3, 4.5)),
        "attn takes half, backward too; Python stacks recorded", scale(0.5, op="timed::attn*"),
        "timed::attn*|<built-in function sleep>", HOST),
    "ddp2_loader_straggler": Pair(
        "training.training", {**DDP2, "loader_ms": 40, "workers": 1, "slow_loader": {"1": 5}}, {"slow_loader": {}},
        "the loader of rank 1 (1 worker) is no slower any more; then it hides", FIX, LOADER,
        {"straggler": 1, **LOADS}),
    "ddp2_network_4x": Pair(
        "training.training", {**DDP2, "mbit": 320}, {"mbit": 80}, "network a quarter as fast; overlapped buckets",
        network(4), NETWORK, HOST),
    "zero2_network_half": Pair(
        "training.training", {**DDP2, "mbit": 80, "zero": True, "bucket_mb": 25}, {"mbit": 160},
        "network twice as fast; optimizer states sharded (ZeRO)", network(0.5), NETWORK),
    "hand4_log_removed": Pair(
        "training.training", {**DDP4, "sync": "hand", "log_ms": 20}, {"log_ms": 0},
        "rank 0 no longer logs (20 ms) after a reduce to it", remove(op="log"), "log|timed::write_log",
        {"straggler": 0}),
    "ddp4_late_recording": Pair(
        "training.training", {**DDP4, "late": {"2": 2}}, operators(attn=(3, 4.5)),
        "attn takes half; rank 2's recording begins two steps late", scale(0.5, op="timed::attn*"), "timed::attn*",
        HOST),
    "ddp4_early_end": Pair(
        "training.training", {**DDP4, "early": {"1": 3}}, operators(attn=(3, 4.5)),
        "attn takes half; rank 1's recording ends three steps early", scale(0.5, op="timed::attn*"), "timed::attn*",
        HOST),
    "ddp4_rank_missing": Pair(
        "training.training", {**DDP4, "unrecorded": [3], "spread": 0.5}, operators(attn=(3, 4.5)),
        "attn takes half on all ranks; rank 3 is not in the recording; ranks vary", scale(0.5, op="timed::attn*"),
        "timed::attn*"),
    "ddp4_slow_rank_missing": Pair(
        "training.training", {**DDP4, "unrecorded": [3], "stall_ms": {"3": 40}}, operators(attn=(3, 4.5)),
        "attn takes half on all ranks; rank 3, which is not in the recording, sleeps 40 ms a step",
        scale(0.5, op="timed::attn*"), "timed::attn*"),
    # sharded
    "fsdp2_op_half": Pair(
        "training.training", FSDP, {"operators": {"attn": (12, 9)}}, "attn's backward takes half; fully_shard",
        scale(0.5, name="timed::attn_backward"), "timed::attn_backward"),
    "fsdp2_network_4x": Pair(
        "training.training", FSDP, {"mbit": 75}, "network a quarter as fast; fully_shard", network(4), NETWORK),
    "fsdp4_straggler": Pair(
        "training.training", {**FSDP, "ranks": 4, "width": 160, "mbit": 600, "slow": {"2": 1.4}}, {"slow": {}},
        "rank 2 of 4 is no slower any more; fully_shard", FIX, "timed::*", {"straggler": 2}),
    "prefetch2_network_4x": Pair(
        "communication.sharded", {"ranks": 2, "elements": 60_000, "layer_ms": 18, "mbit": 300}, {"mbit": 75},
        "network a quarter as fast: gathers that were hidden bind", network(4), NETWORK, HOST),
    # several transfers, several groups
    "flight2_network_half": Pair(
        "communication.in_flight",
        {"ranks": 2, "elements": 60_000, "produce_ms": 3, "hide_ms": 12, "mbit": 160}, {"mbit": 320},
        "network twice as fast; 3 all-reduces in flight, waited for last to first", network(0.5), NETWORK),
    "flight4_hide_quarter": Pair(
        "communication.in_flight",
        {"ranks": 4, "elements": 15_000, "buckets": 4, "produce_ms": 4, "hide_ms": 60, "mbit": 320}, {"hide_ms": 15},
        "the operator that hides 4 all-reduces takes a quarter; then the network bounds",
        scale(0.25, name="timed::hide"), "timed::hide", HOST),
    "flight4_hide_no_gain": Pair(
        "communication.in_flight",
        {"ranks": 4, "elements": 15_000, "buckets": 4, "produce_ms": 4, "hide_ms": 60, "mbit": 160}, {"hide_ms": 15},
        "the operator beside 4 all-reduces takes a quarter, but the network bounds as soon: no gain",
        scale(0.25, name="timed::hide"), "timed::hide"),
    "grid4_op_half": Pair(
        "communication.grid", {"ranks": 4, "tensor": 2, "attn_ms": 14, "back_ms": 20, "mbit": 400}, {"back_ms": 10},
        "attn's backward takes half; 2 x 2 ranks, tensor and data parallel", scale(0.5, name="timed::attn_backward"),
        "timed::attn_backward"),
    "grid8_straggler": Pair(
        "communication.grid",
        {"ranks": 8, "tensor": 2, "attn_ms": 14, "back_ms": 20, "mbit": 800, "slow": {"6": 1.4}}, {"slow": {}},
        "rank 6 of 8 is no slower any more; tensor and data parallel", FIX, "timed::*", {"straggler": 6}),
    "grid4_network_half": Pair(
        "communication.grid", {"ranks": 4, "tensor": 2, "attn_ms": 8, "back_ms": 10, "mbit": 100}, {"mbit": 200},
        "network twice as fast; tensor and data parallel", network(0.5), NETWORK),
    "collectives4_op_half": Pair(
        "communication.every_collective", {"ranks": 4, "op_ms": 10, "mbit": 800, "spread": 0.5}, {"op_ms": 5},
        "operators between seven kinds of collectives take half; ranks vary", scale(0.5, name="timed::*"), "timed::*"),
    "collectives4_network_half": Pair(
        "communication.every_collective", {"ranks": 4, "op_ms": 4, "mbit": 200}, {"mbit": 400},
        "network twice as fast; seven kinds of collectives", network(0.5), NETWORK),
    "experts4_straggler": Pair(
        "communication.experts",
        {"ranks": 4, "elements": 4_000, "attn_ms": 8, "expert_ms": 14, "mbit": 600, "slow": {"1": 1.6}}, {"slow": {}},
        "rank 1's experts are no slower any more; all-to-all", FIX, "timed::expert", {"straggler": 1}),
    "server4_update_half": Pair(
        "communication.server", {"ranks": 4, "elements": 10_000, "compute_ms": 25, "update_ms": 30, "mbit": 400},
        {"update_ms": 15}, "rank 0's update takes half; it gathers and broadcasts", scale(0.5, name="timed::update"),
        "timed::update"),
    "ring4_straggler": Pair(
        "communication.ring", {"ranks": 4, "elements": 5_000, "attn_ms": 14, "mbit": 400, "slow": {"2": 1.5}},
        {"slow": {}}, "rank 2 is no slower any more; blocks go round by isend and irecv", FIX, "timed::attention",
        {"straggler": 2, **HOST}),
    "ring4_network_4x": Pair(
        "communication.ring", {"ranks": 4, "elements": 15_000, "attn_ms": 14, "mbit": 400}, {"mbit": 100},
        "network a quarter as fast; blocks go round by isend and irecv, hidden before", network(4), NETWORK, HOST),
    # pipelines
    "gpipe4_stage_half": Pair(
        "communication.pipeline", {"ranks": 4, "stage_ms": [6, 14, 6, 6], "mbit": 400}, {"stage_ms": [6, 7, 6, 6]},
        "stage 1 of 4 takes half; GPipe, batched P2P", scale(0.5, name="timed::stage*", rank=1), "timed::stage*"),
    "pipe4_1f1b_stage_half": Pair(
        "communication.pipeline",
        {"ranks": 4, "stage_ms": [6, 6, 14, 6], "mbit": 400, "schedule": "1f1b", "micro": 6},
        {"stage_ms": [6, 6, 7, 6]}, "stage 2 of 4 takes half; 1F1B, batched P2P",
        scale(0.5, name="timed::stage*", rank=2), "timed::stage*"),
    "pipe4_1f1b_network_4x": Pair(
        "communication.pipeline",
        {"ranks": 4, "stage_ms": [8, 8, 8, 8], "mbit": 400, "schedule": "1f1b", "micro": 6, "elements": 20_000},
        {"mbit": 100}, "network a quarter as fast; 1F1B, batched P2P", network(4), NETWORK),
    # CUDA
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
"""Every pair by its name."""
