"""Pairs of jobs over who waits for whom, and through what: ranks, threads, other processes; overlapped or not."""

from __future__ import annotations

from benchmarks.recorded.host_pairs import HOST, NETWORK, network, operators
from benchmarks.recorded.pair import FIX, PYTHON, Pair, remove, scale

TWO = {"ranks": 2, "mbit": 300}
FOUR = {"ranks": 4, "mbit": 600}
SMALL = operators()
LAYERS = {"width": 160, "layers": 2, **SMALL}
ALIGNED = {**FOUR, "align": True}
THREADS = {"all_threads": True}
QUICK = {"layers": 1, "operators": {"attn": (5, 5)}}
LONG = {"layers": 1, "operators": {"attn": (10, 10)}}

WAITING_PAIRS = {
    # ranks for ranks: all_reduce from hooks, then broadcast
    "hooks2_sleep_fixed": Pair(
        "by_hand.hooks", {**TWO, **LAYERS, "sleep_ms": {"1": 10}}, {"sleep_ms": {}},
        "rank 1 of 2 no longer calls time.sleep(0.01) in each step; no stacks", FIX, PYTHON, {"straggler": 1}),
    "hooks2_sleep_removed_stack": Pair(
        "by_hand.hooks", {**TWO, **LAYERS, "sleep_ms": {"0": 25}, "with_stack": True}, {"sleep_ms": {}},
        "rank 0 of 2 no longer calls time.sleep(0.025) in each step; stacks recorded",
        remove(op="*sleep*", rank=0), PYTHON, {"straggler": 0}),
    "hooks2_backward_quarter": Pair(
        "by_hand.hooks", {"ranks": 2, "mbit": 100, "width": 160, "layers": 3, **operators(attn=(6, 16))},
        operators(attn=(6, 4)), "attn's backward takes a quarter beside all-reduces from hooks; then these bound",
        scale(0.25, op="timed::attn_backward"), "timed::attn_backward", HOST),
    "hooks4_evaluate_removed": Pair(
        "by_hand.hooks", {**FOUR, **LAYERS, "evaluate_every": 4, "evaluate_ms": 80}, {"evaluate_ms": 0},
        "rank 0 no longer evaluates in each fourth step; the others waited for its broadcast", remove(op="evaluate"),
        "evaluate|timed::score|*Python*", {"straggler": 0}),
    "localsgd4_op_half": Pair(
        "by_hand.local_sgd", {**FOUR, **LAYERS, "every": 4, "spread": 0.6}, operators(attn=(3, 4.5)),
        "attn takes half; ranks vary and meet in each fourth step only", scale(0.5, op="timed::attn*"), "timed::attn*"),
    "localsgd2_network_4x": Pair(
        "by_hand.local_sgd", {**TWO, "width": 300, "layers": 2, **SMALL, "every": 2}, {"mbit": 75},
        "network a quarter as fast; parameters averaged in each second step", network(4), NETWORK),
    "root4_prepare_half": Pair(
        "by_hand.root_feeds", {**ALIGNED, "elements": 8_000, "prepare_ms": 30, "compute_ms": 12}, {"prepare_ms": 15},
        "rank 0 prepares in half the time what it broadcasts; it bounds before and after",
        scale(0.5, op="timed::prepare"), "timed::prepare"),
    "root4_compute_third": Pair(
        "by_hand.root_feeds", {**ALIGNED, "elements": 8_000, "prepare_ms": 15, "compute_ms": 30}, {"compute_ms": 10},
        "ranks that use what rank 0 broadcasts take a third; then rank 0, which ran ahead, bounds",
        scale(1 / 3, op="timed::compute"), "timed::compute"),
    "stale2_forward_quarter": Pair(
        "by_hand.stale", {"ranks": 2, "mbit": 100, "elements": 20_000, "forward_ms": 40}, {"forward_ms": 10},
        "forward takes a quarter; then the reduce_scatter of the step before, hidden until now, bounds",
        scale(0.25, op="timed::forward"), "timed::forward"),
    "subgroups4_straggler": Pair(
        "by_hand.subgroups", {**FOUR, "elements": 4_000, "op_ms": 14, "slow": {"3": 1.6}}, {"slow": {}},
        "rank 3 of 4 is no slower any more; groups of two never meet", FIX, "timed::*", {"straggler": 3}),
    "subgroups4_op_half": Pair(
        "by_hand.subgroups", {**FOUR, "elements": 4_000, "op_ms": 14, "spread": 0.6}, {"op_ms": 7},
        "all operators take half; ranks vary; groups of two never meet", scale(0.5, op="timed::*"), "timed::*"),
    "chain2_stage_half": Pair(
        "by_hand.chain", {"ranks": 2, "mbit": 400, "stage_ms": [7, 16]}, {"stage_ms": [7, 8]},
        "stage 1 of 2 takes half; 2 micro-batches by isend and recv", scale(0.5, op="timed::stage*", rank=1),
        "timed::stage*"),
    "chain4_network_8x": Pair(
        "by_hand.chain", {"ranks": 4, "mbit": 800, "stage_ms": [6, 6, 6, 6], "elements": 16_000}, {"mbit": 100},
        "network an eighth as fast; 4 stages, 2 micro-batches by isend and recv", network(8), NETWORK),
    "barrier4_removed": Pair(
        "by_hand.barriers", {**FOUR, "op_ms": 16, "spread": 1.0}, {"barrier": False},
        "no barrier any more between ranks whose times vary", remove(op="c10d::barrier"), "*barrier*|gloo:*"),
    "barrier2_late_rank_half": Pair(
        "by_hand.barriers", {**TWO, "op_ms": 12, "slow": {"0": 2.5}, "with_stack": True}, {"slow": {"0": 1.25}},
        "the late rank's operator before a barrier takes half; stacks recorded",
        scale(0.5, op="timed::compute", rank=0), "timed::compute|<built-in function sleep>", {"straggler": 0}),
    "shards2_network_4x": Pair(
        "by_hand.shards", {"ranks": 2, "mbit": 400, "elements": 30_000, "forward_ms": 10, "backward_ms": 8},
        {"mbit": 100}, "network a quarter as fast; reduce_scatter overlapped, all_gather not", network(4), NETWORK),
    "halo4_slow_rank_half": Pair(
        "by_hand.halo", {**ALIGNED, "elements": 4_000, "border_ms": 10, "slow": {"3": 3}}, {"slow": {"3": 1.5}},
        "rank 3, the last of a line whose neighbours exchange edges, takes half",
        scale(0.5, op="timed::border", rank=3), "timed::border", {"straggler": 3}),
    "halo4_network_8x": Pair(
        "by_hand.halo", {**ALIGNED, "elements": 16_000, "inner_ms": 16, "border_ms": 8}, {"mbit": 75},
        "network an eighth as fast: edges that were hidden behind the inner part bind", network(8), NETWORK, HOST),
    "gathered2_train_third_stack": Pair(
        "by_hand.gathered", {"ranks": 2, "mbit": 100, "elements": 40_000, "train_ms": 45, "with_stack": True},
        {"train_ms": 15}, "the operator beside an all_gather takes a third; then this bounds; stacks recorded",
        scale(1 / 3, op="timed::train"), "timed::train|<built-in function sleep>", HOST),
    "handles2_blocking": Pair(
        "by_hand.handles", {**TWO, "elements": 60_000, "op_ms": 12}, {"blocking": True},
        "each all-reduce is waited for at once", [("no_overlap", {})], "gloo:*|c10d::*"),
    "served2_unseen_compute_half": Pair(
        "by_hand.served", {**TWO, "elements": 8_000, "compute_ms": 20, "update_ms": 15, "unrecorded": [1]},
        {"compute_ms": 10}, "the operator takes half between answers of a server that is not recorded",
        scale(0.5, op="timed::compute"), "timed::compute"),
    # a process for a process that is not recorded
    "socket_think_half": Pair(
        "hand_overs.requests", {"think_ms": 30, "serve_ms": 12}, {"think_ms": 15},
        "the client takes half to think before it asks again", scale(0.5, op="receive"), f"receive|{PYTHON}"),
    "socket_serve_half": Pair(
        "hand_overs.requests", {"think_ms": 20, "serve_ms": 24}, {"serve_ms": 12},
        "an answer takes half; the client waits for it and then thinks", scale(0.5, op="timed::serve"), "timed::serve"),
    "socket_paced_serve_half_stack": Pair(
        "hand_overs.requests", {"every_ms": 30, "serve_ms": 20, "with_stack": True}, {"serve_ms": 10},
        "an answer takes half, but requests come each 30 ms whatever the server does: no gain; stacks recorded",
        scale(0.5, op="timed::serve"), f"timed::serve|receive|{PYTHON}"),
    "pipe_train_half_stack": Pair(
        "hand_overs.piped", {"make_ms": 35, **LONG, "with_stack": True}, QUICK,
        "training takes half, but another process, asked through a pipe, makes batches: no gain; stacks recorded",
        scale(0.5, op="timed::attn*"), f"timed::attn*|fetch|{PYTHON}"),
    "queue_hidden_train_quarter": Pair(
        "hand_overs.queued", {"make_ms": 15, "train_ms": 32}, {"train_ms": 8},
        "training takes a quarter; then another process, which was ahead by a queue, bounds",
        scale(0.25, op="timed::train"), "timed::train"),
    # a thread for a thread
    "thread_unseen_train_half": Pair(
        "hand_overs.fed", {"make_ms": 35, **LONG}, QUICK,
        "training takes half, but a thread that calls no operator makes batches: no gain",
        scale(0.5, op="timed::attn*"), f"timed::attn*|{PYTHON}"),
    "writer_half": Pair(
        "hand_overs.writer", {**THREADS, "train_ms": 15, "write_ms": 50, "every": 2}, {"write_ms": 25},
        "a thread writes a checkpoint in half the time; the next one waited for it", scale(0.5, op="timed::write"),
        "timed::write|timed::train"),
    "writer_train_third": Pair(
        "hand_overs.writer", {**THREADS, "train_ms": 30, "write_ms": 40, "every": 2}, {"train_ms": 10},
        "training takes a third; then the thread that writes checkpoints, hidden before, bounds",
        scale(1 / 3, op="timed::train"), "timed::train", HOST),
    "ahead_train_quarter_stack": Pair(
        "hand_overs.ahead", {**THREADS, "decode_ms": 25, "train_ms": 40, "with_stack": True}, {"train_ms": 10},
        "training takes a quarter; then the thread that decodes one step ahead, hidden before, bounds; stacks recorded",
        scale(0.25, op="timed::train"), "timed::train|<built-in function sleep>", HOST),
    "stages3_middle_half": Pair(
        "hand_overs.stages", {**THREADS, "read_ms": 18, "augment_ms": 36, "train_ms": 12}, {"augment_ms": 18},
        "the second of two threads in a row takes half", scale(0.5, op="timed::augment"), "timed::augment"),
    "meeting2_late_thread_half": Pair(
        "hand_overs.meeting", {**THREADS, "left_ms": 14, "right_ms": 36}, {"right_ms": 18},
        "the later of two threads that meet at a barrier takes half", scale(0.5, op="timed::right"), "timed::right"),
    # operators that compute
    "computed_handles2_op_half": Pair(
        "by_hand.handles", {**TWO, "elements": 60_000, "op_ms": 10, "computes": True}, {"op_ms": 5},
        "backward takes half beside all-reduces; matrices are multiplied", scale(0.5, op="timed::backward"),
        "timed::backward|aten::mm"),
    "computed_hooks2_recompute_removed": Pair(
        "by_hand.hooks",
        {"ranks": 2, "mbit": 4000, "width": 512, "batch": 1024, "layers": 3, "operators": {"act": (1, 1)},
         "recompute": True},
        {"recompute": False}, "activation checkpointing is gone; linear layers, all-reduces from hooks",
        remove(op="recompute"), "recompute|aten::*|*[Cc]heckpoint*"),
    "computed_chain2_stage_half": Pair(
        "by_hand.chain", {"ranks": 2, "mbit": 400, "stage_ms": [6, 16], "computes": True}, {"stage_ms": [6, 8]},
        "stage 1 of 2 takes half; matrices are multiplied", scale(0.5, op="timed::stage*", rank=1),
        "timed::stage*|aten::mm"),
    "computed_stale2_forward_half": Pair(
        "by_hand.stale", {"ranks": 2, "mbit": 100, "elements": 30_000, "forward_ms": 40, "computes": True},
        {"forward_ms": 20}, "forward takes half beside a reduce_scatter; matrices are multiplied",
        scale(0.5, op="timed::forward"), "timed::forward|aten::mm"),
    "computed_queue_train_half": Pair(
        "hand_overs.queued", {"make_ms": 30, "train_ms": 20, "computes": True}, {"train_ms": 10},
        "matrices are multiplied half as often, but another process fills the queue: no gain",
        scale(0.5, op="timed::train"), "timed::train|aten::mm|*Python*"),
    "computed_meeting2_late_thread_half": Pair(
        "hand_overs.meeting", {**THREADS, "left_ms": 10, "right_ms": 30, "computes": True}, {"right_ms": 15},
        "the later of two threads that meet at a barrier multiplies half as often", scale(0.5, op="timed::right"),
        "timed::right|aten::mm"),
}  # fmt: skip
