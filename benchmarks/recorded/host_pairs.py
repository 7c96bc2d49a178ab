"""Pairs of jobs on hosts: training with loaders, threads and gloo, of one process and of several."""

from __future__ import annotations

from typing import Any

from benchmarks.recorded.pair import FIX, LOADER, LOADER_HALF, LOADS, PYTHON, Change, Pair, remove, scale

NETWORK = "gloo:*|c10d::*|nccl*"
"""What a difference in the network may be put down to."""

SMALL = {"attn": (6, 9), "mlp": (5, 7), "norm": (2, 3)}
"""Operators of a block: ms forward, ms backward."""


def network(factor: float) -> list[Change]:
    """Return the what-if in which transfers take `factor` times as long."""
    return [("scale_network", {"factor": factor})]


def operators(**changed: tuple[float, float]) -> dict[str, Any]:
    """Return the setting `operators`: the small ones with some changed."""
    return {"operators": {**SMALL, **changed}}


ONE = operators()
HALF = operators(attn=(3, 4.5), mlp=(2.5, 3.5))
ASK_HALF = [*scale(0.5, op="timed::attn*"), *scale(0.5, op="timed::mlp*")]
DDP2 = {"ranks": 2, "width": 200, "layers": 3, "mbit": 160, "bucket_mb": 0.1, **ONE}
DDP4 = {"ranks": 4, "width": 120, "layers": 2, "mbit": 400, "bucket_mb": 0.1, **ONE}
DDP8 = {"ranks": 8, "width": 64, "layers": 2, "mbit": 800, "operators": {"attn": (16, 24)}}
FSDP = {"ranks": 2, "width": 300, "layers": 3, "mbit": 300, "sync": "fsdp", "operators": {"attn": (12, 18)}}
HOST = {"bound": "Bound by host code"}

HOST_PAIRS = {
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
}  # fmt: skip
