"""Pairs over who waits for whom (rank, thread, other process, asyncio task) and through what, overlapped or not."""

from __future__ import annotations

from benchmarks.recorded.host_pairs import HOST, NETWORK, network
from benchmarks.recorded.pair import FIX, LOADER, LOADER_HALF, LOADS, PYTHON, Pair, remove, scale

TWO = {"ranks": 2, "mbit": 300}
FOUR = {"ranks": 4, "mbit": 600}
FAST = {"ranks": 2, "mbit": 4000}
THREADS = {"all_threads": True}
MM = "aten::mm"

GRID_PAIRS = {
    # ranks for ranks, by sends and collectives
    "gossip4_slow_peer_fixed": Pair(
        "grid.gossip", {**FOUR, "elements": 8_000, "compute_ms": 16, "slow": {"2": 1.7}}, {"slow": {}},
        "rank 2 is no slower any more; each step averages with another peer, by isend and irecv", FIX, "timed::*",
        {"straggler": 2}),
    "anysource4_update_third": Pair(
        "grid.any_source", {**FOUR, "elements": 4_000, "compute_ms": 20, "update_ms": 15}, {"update_ms": 5},
        "a server of parameters takes a third per gradient, from whoever is first; then workers bind",
        scale(1 / 3, op="timed::update"), "timed::update"),
    "distill2_teacher_third": Pair(
        "grid.distilled", {**TWO, "elements": 8_000, "teacher_ms": 36, "student_ms": 20}, {"teacher_ms": 12},
        "the teacher on rank 0 takes a third; then the student on rank 1, which waited in recv, binds",
        scale(1 / 3, op="timed::teacher"), "timed::teacher"),
    "uneven4_expert_half": Pair(
        "grid.uneven", {**FOUR, "tokens": [2000, 6000, 2000, 2000], "attn_ms": 10, "expert_ms": [9, 28, 9, 9]},
        {"expert_ms": [9, 14, 9, 9]}, "rank 1's expert, which gets most tokens, takes half; uneven all-to-all",
        scale(0.5, op="timed::expert", rank=1), "timed::expert", {"straggler": 1}),
    "checkpoint3_save_half": Pair(
        "grid.saved", {"ranks": 3, "mbit": 600, "elements": 8_000, "compute_ms": 18, "every": 4, "save_ms": 25,
                       "disk": {"2": 3.0}}, {"save_ms": 12.5},
        "checkpoints, each fourth step before a barrier, take half; the disk of rank 2 is slow",
        scale(0.5, op="timed::save"), "timed::save|checkpoint", {"straggler": 2}),
    "exits4_layer_half": Pair(
        "grid.exits", {**FOUR, "elements": 4_000, "layer_ms": 8}, {"layer_ms": 4},
        "layers take half; each rank needs two to five of them, as its batch wants", scale(0.5, op="timed::layer"),
        "timed::layer"),
    "owners4_update_half": Pair(
        "grid.owners", {**FOUR, "elements": 8_000, "backward_ms": 6, "update_ms": [8, 8, 30, 8]},
        {"update_ms": [8, 8, 15, 8]}, "the owner of the largest shard updates in half the time, then broadcasts it",
        scale(0.5, op="timed::update", rank=2), "timed::update", {"straggler": 2}),
    "sequence3_network_4x": Pair(
        "grid.sequence", {"ranks": 3, "mbit": 600, "elements": 12_000, "norm_ms": 7, "block_ms": 9, "mask_ms": 7},
        {"mbit": 150}, "network a quarter as fast; all_gather and reduce_scatter were beside other operators",
        network(4), NETWORK, HOST),
    # ranks for ranks, by other things than collectives
    "filelock2_cached_half": Pair(
        "grid.locked", {**TWO, "elements": 4_000, "compute_ms": 12, "cached_ms": 20}, {"cached_ms": 10},
        "work under a file lock, where two ranks take turns, takes half", scale(0.5, op="timed::cached"),
        "timed::cached"),
    "unixsocket2_lookup_half": Pair(
        "grid.looked_up", {**TWO, "lookup_ms": 24, "dense_ms": 16}, {"lookup_ms": 12},
        "rank 0 answers in half the time what rank 1 asks by a Unix socket", scale(0.5, op="timed::lookup"),
        "timed::lookup"),
    # threads for threads
    "semaphore_fetch_half": Pair(
        "grid.slots", {**THREADS, "fetch_ms": 30, "train_ms": 20}, {"fetch_ms": 15},
        "a thread fetches in half the time; with one slot, counted by semaphores, it and training take turns",
        scale(0.5, op="timed::fetch"), "timed::fetch"),
    "semaphore2_train_third_stack": Pair(
        "grid.slots", {**THREADS, "slots": 2, "fetch_ms": 24, "train_ms": 36, "with_stack": True}, {"train_ms": 12},
        "training takes a third; then the thread that fetches into the second slot binds; stacks recorded",
        scale(1 / 3, op="timed::train"), "timed::train|<built-in function sleep>", HOST),
    "ema_4x_stack": Pair(
        "grid.averaged", {**THREADS, "train_ms": 30, "ema_ms": 15, "with_stack": True}, {"ema_ms": 60},
        "a thread that averages weights, hidden before, takes four times as long: updates wait; stacks recorded",
        scale(4, op="timed::ema"), "timed::ema|<built-in function sleep>", HOST),
    "turns2_discriminate_half": Pair(
        "grid.turns", {**THREADS, "generate_ms": 18, "discriminate_ms": 32}, {"discriminate_ms": 16},
        "the second of two models that take turns, in a thread of its own, takes half",
        scale(0.5, op="timed::discriminate"), "timed::discriminate"),
    # asyncio tasks for threads, and threads for them
    "asyncio2_model_half": Pair(
        "grid.tasks", {**THREADS, "prepare_ms": 18, "model_ms": 20}, {"model_ms": 10},
        "the model takes half; then the two clients, asyncio tasks, bind as they prepare",
        scale(0.5, op="timed::model"), "timed::model"),
    "asyncio2_prepare_half_stack": Pair(
        "grid.tasks", {**THREADS, "prepare_ms": 12, "model_ms": 22, "with_stack": True}, {"prepare_ms": 6},
        "clients prepare in half the time, beside each other's answers: no gain; stacks recorded",
        scale(0.5, op="timed::prepare"), "timed::prepare|<built-in function sleep>"),
    # a process for processes that are not recorded
    "shared_train_half": Pair(
        "grid.polled", {"make_ms": 36, "train_ms": 20}, {"train_ms": 10},
        "training takes half, but another process, whose shared memory is polled, makes batches: no gain",
        scale(0.5, op="timed::train"), f"timed::train|{PYTHON}"),
    "roundrobin_loaders_half": Pair(
        "grid.round_robin", {"loader_ms": [30, 120], "train_ms": 14}, {"loader_ms": [15, 60]},
        "both of two loaders, asked in turn, take half; one of them bound", LOADER_HALF, LOADER, LOADS),
    # the same with matrices
    "computed_owners2_update_half": Pair(
        "grid.owners", {**TWO, "elements": 20_000, "backward_ms": 16, "update_ms": [16, 64], "computes": True},
        {"update_ms": [16, 32]}, "the owner of the larger shard updates in half the time; matrices are multiplied",
        scale(0.5, op="timed::update", rank=1), f"timed::update|{MM}", {"straggler": 1}),
    "computed_turns2_generate_half": Pair(
        "grid.turns", {**THREADS, "generate_ms": 64, "discriminate_ms": 32, "computes": True}, {"generate_ms": 32},
        "the first of two models that take turns multiplies half as often", scale(0.5, op="timed::generate"),
        f"timed::generate|{MM}"),
    "computed_asyncio2_model_half": Pair(
        "grid.tasks", {**THREADS, "prepare_ms": 4, "model_ms": 40, "computes": True}, {"model_ms": 20},
        "the model multiplies half as often; two clients are asyncio tasks", scale(0.5, op="timed::model"),
        f"timed::model|{MM}"),
    "computed_uneven2_expert_half": Pair(
        "grid.uneven", {**FAST, "tokens": [4000, 12000], "attn_ms": 16, "expert_ms": [12, 64], "computes": True},
        {"expert_ms": [12, 32]}, "rank 1's expert, which gets most tokens, multiplies half as often",
        scale(0.5, op="timed::expert", rank=1), f"timed::expert|{MM}", {"straggler": 1}),
    "computed_filelock2_compute_half": Pair(
        "grid.locked", {**FAST, "elements": 4_000, "compute_ms": 24, "cached_ms": 40, "computes": True},
        {"compute_ms": 12, "apart_ms": 1.5},
        "work before a file lock, where two ranks take turns, multiplies half as often",
        scale(0.5, op="timed::compute"), f"timed::compute|{MM}"),
    # real models
    "retrieve2_search_half_stack": Pair(
        "grid_real.retrieving", {**FAST, "rows": 80_000, "micro": 3, "with_stack": True}, {"rows": 40_000},
        "rank 0 searches half as many rows, which takes 0.44 times as long (measured: caches), for what rank "
        "1 asks by a Unix socket; stacks recorded", scale(0.44, op="search"), "search|aten::*"),
    "topk2_residual_removed": Pair(
        "grid_real.compressed", {"ranks": 2, "mbit": 200, "residual": True}, {"residual": False},
        "gradients that were not sent are no longer sorted; the all_gather beside that binds then",
        remove(op="residual"), "residual|aten::*"),
    "bags2_tables_half": Pair(
        "grid_real.bags", {**FAST, "tables": [4, 24]}, {"tables": [4, 12]},
        "rank 1 looks up half as many embedding bags before an all-to-all", scale(0.5, op="lookup", rank=1),
        "lookup|aten::*", {"straggler": 1}),
    "ema_thread_removed": Pair(
        "grid_real.averaging", {**THREADS, "ema": True}, {"ema": False},
        "a thread no longer averages weights and takes norms beside training: little gain", remove(op="ema"),
        "ema|aten::*"),
    "decode_thread_half": Pair(
        "grid_real.decoding", {**THREADS, "passes": 24}, {"passes": 12},
        "a thread unpacks and resizes images half as often; the main thread waits for its futures",
        scale(0.5, op="decode"), "decode|aten::*"),
    "evaluate_thread_half": Pair(
        "grid_real.evaluating", {**THREADS, "samples": 800_000}, {"samples": 400_000},
        "a thread sorts half as many scores in each fourth step; the next evaluation waited for it",
        scale(0.5, op="evaluate"), "evaluate|aten::*"),
    "ringattention2_network_8x": Pair(
        "grid_real.ring_attention", {**FAST, "seq": 512}, {"mbit": 500},
        "network an eighth as fast; keys and values went round beside attention", network(8), NETWORK),
    "teach2_teacher_half": Pair(
        "grid_real.teaching", {**FAST, "layers": 6, "teacher_layers": 6}, {"teacher_layers": 3},
        "the teacher on rank 0 has half its layers, but the student on rank 1 binds: no gain",
        scale(0.5, op="teacher"), "teacher|aten::*"),
    "clip2_removed": Pair(
        "grid_real.clipped", {**FAST, "clip": True}, {"clip": False},
        "gradients are no longer clipped by a norm that is all-reduced and read by item()", remove(op="clip"),
        "clip|aten::*|c10d::*|gloo:*"),
    "powersgd2_network_4x": Pair(
        "grid_real.powersgd", {"ranks": 2, "mbit": 400, "rank_of": 32}, {"mbit": 100},
        "network a quarter as fast; gradients are compressed by PowerSGD, a chain of futures", network(4), NETWORK),
    "sharedimages_train_half": Pair(
        "grid_real.shared_images", {"passes": 300, "repeats": 8}, {"repeats": 4},
        "training takes half, but another process, behind semaphores and shared memory, unpacks images: no gain",
        scale(0.5, op="train"), f"train|aten::*|{PYTHON}"),
}  # fmt: skip
