"""Pairs by a third grid of mechanisms, of kinds that neither grid before it has: who waits for whom through what.

| pair | who waits | for whom | through what | bound in A | cores |
|---|---|---|---|---|---|
| eventloop2_model_half | two threads | a loop in a thread | `run_coroutine_threadsafe`, batching window | yes | free |
| eventloop2_prepare_quarter | a loop in a thread | main thread | the same window | yes; another thread in B | free |
| ownqueues3_heavy_half | three threads | threads | a deque of each, the longest is stolen from | yes | free |
| waiters3_encode_half | main thread | three threads | `Condition.notify` of one of three waiters | yes | free |
| waiters3_split_quarter | three threads | main thread | the same; the threads bind in B | yes; they in B | free |
| inorder2_fetch_half | main thread | a pool of two | futures taken in the order of their submission | partly | free |
| backpressure3_write_quarter | main thread | the second of two threads | two full queues | yes; the first in B | free |
| backpressure3_train_third | main thread | the first of two threads | the same; none was full | no | free |
| asyncstages_train_third | asyncio's loop | executors of two stages | `asyncio.Queue` of 1 | no | free |
| blockedloop_train_half | executors of two stages | asyncio's loop | a loop that trains itself | yes | free |
| loghandler_emit_half | main thread | a thread | the lock of a `logging.Handler` | yes | free |
| retry3_call_half | main thread | a pool | `result(timeout)`, a pause, another call | yes | free |
| retry3_stalled_half | nobody | a pool | the same: the stalled call is given up anyway, no gain | no | free |
| latehedge_primary_half | main thread | a pool | `wait(timeout)`, then the first of two | partly | free |
| tickets4_score_half | main thread, threads | threads | a fair lock: tickets, `Condition` | yes | free |
| lastdone4_leaf_half | main thread | four threads | a tree: the last to come goes up, `Event` | yes | free |
| lastdone4_long_third | main thread | four threads | the same; another is last in B | yes; another in B | free |
| gil3_parse_half | main thread | a pool of three | the interpreter's lock, futures | yes | the interpreter is not |
| telemetry_upload_4x | nobody | a thread | an unbounded queue: no loss | no | free |
| bucket_train_third | main thread | the clock | a bucket of tokens, in each second step | partly; in each in B | free |
| imap2_merge_third | main thread | processes, not recorded | `Pool.imap`, in order | partly | free |
| gatedtool_train_quarter | main thread | a program, not recorded | `Popen.wait`, two steps later | no | free |
| processlock_train_half | main thread | a process, not recorded | `multiprocessing.Lock`, in turn | yes | free |
| accumulate3_two_changes | ranks | transfers | async `all_reduce` in the last micro-batch only | yes | free |
| ringattention3_network_4x | ranks | ranks | blocks sent round beside attention, `isend`, `irecv` | no | free |
| ringattention3_attend_third | ranks | ranks | the same | no | free |
| jobserver3_compile_half | ranks | ranks | two tokens in a named pipe, then `all_reduce` | yes | free |
| lookahead2_train_third | rank 1 | rank 0 | rows asked for two steps ahead, `irecv` | no | free |
| lookahead2_lookup_half | rank 1 | rank 0 | the same; rank 1 binds in B | yes; rank 1 in B | free |
| taskfarm3_large_half | ranks | a rank | tasks for whoever asks first, `recv` of any | yes | free |
| fullpipe2_train_third | rank 0 | rank 1 | a named pipe that is full | yes; the other way in B | free |
| computed_lookahead2_train_third | rank 1 | rank 0 | rows asked for two steps ahead, `irecv` | no | free |
| crowdedaccumulate3_backward_half | ranks | ranks | `all_reduce` in the last micro-batch | yes | 3 ranks for 2 |
"""

from __future__ import annotations

from benchmarks.recorded.host_pairs import NETWORK, network
from benchmarks.recorded.pair import PYTHON, Pair, scale
from benchmarks.recorded.second_grid_pairs import ALIGN, CROWD, MM, THREADS, THREE

TWO = {"ranks": 2, "mbit": 400, **ALIGN}
LEAVES = ["leaf", "leaf", "long", "leaf"]
"""Operators of the leaves where one of them is changed alone."""

THIRD_GRID_PAIRS = {
    # threads and loops for each other
    "eventloop2_model_half": Pair(
        "third_grid_outside.served_by_loop", {**THREADS, "prepare_ms": 14, "decode_ms": 22, "window_ms": 60,
                                              "model_ms": 30}, {"model_ms": 15},
        "the model takes half; a loop in a thread batches the requests of two other threads",
        scale(0.5, op="timed::model"), "timed::model"),
    "eventloop2_prepare_quarter": Pair(
        "third_grid_outside.served_by_loop", {**THREADS, "prepare_ms": 44, "decode_ms": 20, "window_ms": 60,
                                              "model_ms": 14}, {"prepare_ms": 11},
        "the later of two clients prepares in a quarter; then the other one binds, as both are batched",
        scale(0.25, op="timed::prepare"), "timed::prepare"),
    "ownqueues3_heavy_half": Pair(
        "third_grid_threads.own_queues", {**THREADS, "heavy": 6, "heavy_ms": 10, "light": 2, "light_ms": 6},
        {"heavy_ms": 5}, "heavy tasks, all in one of three deques, take half; two threads then steal fewer of them",
        scale(0.5, op="timed::heavy"), "timed::heavy"),
    "waiters3_encode_half": Pair(
        "third_grid_threads.notified", {**THREADS, "split_ms": 4, "encode_ms": 26}, {"encode_ms": 13},
        "three threads, of which a condition wakes one per task, encode in half the time",
        scale(0.5, op="timed::encode"), "timed::encode"),
    "waiters3_split_quarter": Pair(
        "third_grid_threads.notified", {**THREADS, "split_ms": 14, "encode_ms": 18}, {"split_ms": 3.5},
        "splitting tasks off takes a quarter; then three threads, which waited for tasks, bind",
        scale(0.25, op="timed::split"), "timed::split"),
    "inorder2_fetch_half": Pair(
        "third_grid_threads.in_order", {**THREADS, "threads": 2, "fetch_ms": [20, 9, 26, 12, 15, 18], "merge_ms": 7,
                                        "train_ms": 10}, {"fetch_ms": [10, 4.5, 13, 6, 7.5, 9]},
        "fetches of a pool of two take half; they are merged in the order in which they were asked for",
        scale(0.5, op="timed::fetch"), "timed::fetch"),
    "backpressure3_write_quarter": Pair(
        "third_grid_threads.downstream", {**THREADS, "train_ms": 12, "encode_ms": 20, "write_ms": 40},
        {"write_ms": 10}, "the second of two threads behind training takes a quarter; then the first one binds",
        scale(0.25, op="timed::write"), "timed::write"),
    "backpressure3_train_third": Pair(
        "third_grid_threads.downstream", {**THREADS, "train_ms": 48, "encode_ms": 27, "write_ms": 11},
        {"train_ms": 16}, "training takes a third; then the first of two threads behind it, by queues of one, binds",
        scale(1 / 3, op="timed::train"), "timed::train"),
    "asyncstages_train_third": Pair(
        "third_grid_outside.coroutines", {**THREADS, "fetch_ms": 13, "decode_ms": 25, "train_ms": 42},
        {"train_ms": 14}, "training takes a third; then the middle one of three coroutines with executors binds",
        scale(1 / 3, op="timed::train"), "timed::train"),
    "blockedloop_train_half": Pair(
        "third_grid_outside.coroutines", {**THREADS, "blocks": True, "fetch_ms": 9, "decode_ms": 13, "train_ms": 40},
        {"train_ms": 20}, "training in the loop itself takes half; coroutines hand over only between two steps",
        scale(0.5, op="timed::train"), "timed::train"),
    "loghandler_emit_half": Pair(
        "third_grid_threads.logged", {**THREADS, "measure_ms": 6, "train_ms": 26, "emit_ms": 18}, {"emit_ms": 9},
        "a log handler takes half while it holds its lock, for which the main thread waits, too",
        scale(0.5, op="timed::emit"), "timed::emit"),
    "retry3_call_half": Pair(
        "third_grid_threads.retried", {**THREADS, "call_ms": 18, "stalled_ms": 80, "timeout_ms": 27, "pause_ms": 6,
                                       "train_ms": 10}, {"call_ms": 9},
        "calls take half; each third one is given up after 27 ms and made again", scale(0.5, op="timed::call"),
        "timed::call"),
    "retry3_stalled_half": Pair(
        "third_grid_threads.retried", {**THREADS, "call_ms": 12, "stalled_ms": 88, "timeout_ms": 24, "pause_ms": 5,
                                       "train_ms": 14}, {"stalled_ms": 44},
        "stalled calls take half, but are given up after 24 ms before and after: no gain",
        scale(0.5, op="timed::stalled"), "timed::stalled|timed::call"),
    "latehedge_primary_half": Pair(
        "third_grid_threads.hedged_late", {**THREADS, "primary_ms": [20, 60], "backup_ms": 20, "patience_ms": 24,
                                           "rank_ms": 6}, {"primary_ms": [10, 30]},
        "the first backend takes half; the second, asked after 24 ms, was quicker in each second step and no longer is",
        scale(0.5, op="timed::primary"), "timed::primary|timed::backup"),
    "tickets4_score_half": Pair(
        "third_grid_threads.ticketed", {**THREADS, "prepare_ms": [4, 5, 6], "score_ms": 12, "train_ms": 8,
                                        "update_ms": 6}, {"score_ms": 6},
        "three threads score in half the time under a fair lock, for which the main thread queues up behind them",
        scale(0.5, op="timed::score"), "timed::score"),
    "lastdone4_leaf_half": Pair(
        "third_grid_threads.last_done", {**THREADS, "leaf_ms": [12, 20, 34, 16], "train_ms": 10, "combine_ms": 6},
        {"leaf_ms": [6, 10, 17, 8]}, "leaves of a tree take half; the later of two threads goes up",
        scale(0.5, op="timed::leaf"), "timed::leaf"),
    "lastdone4_long_third": Pair(
        "third_grid_threads.last_done", {**THREADS, "leaves": LEAVES, "leaf_ms": [13, 26, 45, 18], "train_ms": 12,
                                         "combine_ms": 7}, {"leaf_ms": [13, 26, 15, 18]},
        "the longest leaf of a tree takes a third; then another thread is the last at each node",
        scale(1 / 3, op="timed::long"), "timed::long"),
    "gil3_parse_half": Pair(
        "third_grid_threads.parsed", {**THREADS, "parse_ms": 14, "collate_ms": 5, "train_ms": 15}, {"parse_ms": 7},
        "Python loops of three threads, of which one runs at a time, take half", scale(0.5, op="parse"),
        "parse|collate|timed::train"),
    "telemetry_upload_4x": Pair(
        "third_grid_threads.told_only", {**THREADS, "part_ms": 16, "upload_ms": 9}, {"upload_ms": 36},
        "a thread uploads records in four times as long; its queue has no end, so nobody waits: no loss",
        scale(4, op="timed::upload"), "timed::upload"),
    "bucket_train_third": Pair(
        "third_grid_threads.limited", {"every_ms": 45, "request_ms": 3, "train_ms": [18, 66]},
        {"train_ms": [6, 22]}, "training takes a third; then each step waits for a token, before each second one did",
        scale(1 / 3, op="timed::train"), f"timed::train|{PYTHON}"),
    # processes and programs that are not recorded
    "imap2_merge_third": Pair(
        "third_grid_outside.mapped", {"processes": 2, "part_ms": [30, 12, 18, 9, 24, 14], "merge_ms": 7.5,
                                      "train_ms": 10}, {"merge_ms": 2.5},
        "merging takes a third; then parts of two processes, taken in order, are waited for more often",
        scale(1 / 3, op="timed::merge"), f"timed::merge|{PYTHON}"),
    "gatedtool_train_quarter": Pair(
        "third_grid_outside.gated", {"train_ms": 40, "evaluate_ms": 70}, {"train_ms": 10},
        "training takes a quarter; then a program that evaluates each third step binds",
        scale(0.25, op="timed::train"), f"timed::train|{PYTHON}"),
    "processlock_train_half": Pair(
        "third_grid_outside.taking_turns", {"train_ms": 22, "log_ms": 9, "held_ms": 26, "apart_ms": 7},
        {"train_ms": 11}, "training takes half under a lock that another process wants as well, in turn",
        scale(0.5, op="timed::train"), f"timed::train|{PYTHON}"),
    # ranks for ranks
    "accumulate3_two_changes": Pair(
        "third_grid_ranks.accumulated", {**THREE, "elements": 40_000, "forward_ms": 4, "backward_ms": 6},
        {"backward_ms": 3, "mbit": 200},
        "backward takes half and the network is half as fast; only the last of three micro-batches is reduced",
        [*scale(0.5, op="timed::backward"), *network(2)], f"timed::backward|{NETWORK}"),
    "ringattention3_network_4x": Pair(
        "third_grid_ranks.ring_attention", {**THREE, "elements": 24_000, "attend_ms": 14, "dense_ms": 8},
        {"mbit": 100}, "network a quarter as fast; blocks go round beside attention", network(4), NETWORK),
    "ringattention3_attend_third": Pair(
        "third_grid_ranks.ring_attention", {**THREE, "elements": 50_000, "attend_ms": 27, "dense_ms": 8},
        {"attend_ms": 9}, "attention takes a third; then blocks that go round beside it bind",
        scale(1 / 3, op="timed::attend"), "timed::attend"),
    "jobserver3_compile_half": Pair(
        "third_grid_ranks.tokens_in_pipe", {**THREE, "elements": 4_000, "load_ms": [6, 10, 14], "compile_ms": 26},
        {"compile_ms": 13}, "compiling, for which three ranks have two tokens, takes half",
        scale(0.5, op="timed::compile"), "timed::compile"),
    "lookahead2_train_third": Pair(
        "third_grid_ranks.looked_up_ahead", {**TWO, "elements": 8_000, "lookup_ms": 22, "train_ms": 39},
        {"train_ms": 13}, "training on rank 1 takes a third; then rank 0, asked two steps ahead, binds",
        scale(1 / 3, op="timed::train"), "timed::train"),
    "lookahead2_lookup_half": Pair(
        "third_grid_ranks.looked_up_ahead", {**TWO, "elements": 8_000, "lookup_ms": 42, "train_ms": 27},
        {"lookup_ms": 21}, "rank 0, asked two steps ahead, takes half; then training on rank 1 binds",
        scale(0.5, op="timed::lookup"), "timed::lookup"),
    "taskfarm3_large_half": Pair(
        "third_grid_ranks.task_farm", {**THREE, "plan_ms": 5, "large_from_ms": 12, "task_ms": [34, 11, 11, 26, 11]},
        {"task_ms": [17, 11, 11, 13, 11]}, "large tasks take half; two ranks ask for the next and share in another way",
        scale(0.5, op="timed::large"), "timed::large"),
    "fullpipe2_train_third": Pair(
        "third_grid_ranks.full_pipe", {**TWO, "extract_ms": 16, "train_ms": 39}, {"train_ms": 13},
        "training on rank 1 takes a third; then rank 0, which a full pipe held back, binds",
        scale(1 / 3, op="timed::train"), "timed::train"),
    # work that computes
    "computed_lookahead2_train_third": Pair(
        "third_grid_ranks.looked_up_ahead", {**TWO, "computes": True, "elements": 8_000, "lookup_ms": 60,
                                             "train_ms": 108}, {"train_ms": 36},
        "rank 1 multiplies a third as often; then rank 0, asked two steps ahead, binds",
        scale(1 / 3, op="timed::train"), f"timed::train|{MM}"),
    "crowdedaccumulate3_backward_half": Pair(
        "third_grid_ranks.accumulated", {"ranks": 3, "mbit": 1000, **ALIGN, **CROWD, "elements": 6_000,
                                         "forward_ms": 6, "backward_ms": 10}, {"backward_ms": 5},
        "three ranks on two cores multiply half as often in backward; only the last micro-batch is reduced",
        scale(0.5, op="timed::backward"), f"timed::backward|{MM}"),
}  # fmt: skip
"""The pairs of the third grid by name."""
