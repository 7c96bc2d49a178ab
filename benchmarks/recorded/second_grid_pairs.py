"""Pairs by a second grid of mechanisms, of kinds that no other pair has: who waits for whom through what.

| pair | who waits | for whom | through what | bound in A | cores |
|---|---|---|---|---|---|
| doublebuffer_fill_half | main thread | a thread | two buffers, `Condition` | yes | free |
| doublebuffer_train_third | main thread | a thread | two buffers, `Condition` | no | free |
| window3_call_half | asyncio's loop | `to_thread` | `asyncio.Semaphore` of 3, `gather` | yes | free |
| window3_two_changes | asyncio's loop | `to_thread` | the same; two changes | no | free |
| priority_urgent_half | main thread | a thread | `PriorityQueue`, `Event` | yes | free |
| priority_background_third | main thread | a thread | the same: a task under way is not interrupted | partly | free |
| readwrite2_score_half | main thread | two threads | a read-write lock | yes | free |
| readwrite2_train_quarter | main thread | two threads | a read-write lock | no | free |
| batcher3_model_half | main thread | three threads | a batch by number or `Queue.get(timeout)` | yes | free |
| batcher3_prepare_half | main thread | three threads | the same; all are awaited | yes | free |
| jointimeout_write_third | main thread | a thread per step | `Thread.join(timeout)` in a loop | yes | free |
| deadline_fetch_half | main thread | a thread | `Event.wait(timeout)` that mostly runs out | partly | free |
| speculate_draft_third | main thread | a thread | a future; each third is drafted again | partly | free |
| speculate_verify_half | main thread | a thread | a future; each third is drafted again | yes | free |
| offload2_store_half | main thread | a thread | `BoundedSemaphore` of 2, then futures | yes | free |
| offload2_backward_quarter | main thread | a thread | the same; loads one layer ahead | no | free |
| beam4_score_half | main thread | a pool of two | `Executor.map` per token | yes | free |
| beam4_two_changes | main thread | a pool of two | the same; two changes | yes | free |
| stealing3_large_third | main thread | two threads | one deque, from which all take, `Semaphore` | yes | free |
| replay_act_half | main thread | a thread | a limiter of two inserts per sample | yes; the other way in B | free |
| replay_learn_third | main thread | a thread | the same; it was held back before | no | free |
| paced_train_half | main thread | the clock | `time.sleep`: no gain | no: this binds | free |
| torchfutures3_part_half | main thread | a pool's threads | `torch.futures.collect_all`, `then` | yes | free |
| torchfutures3_train_quarter | main thread | a pool's threads | `torch.futures.collect_all`, `then` | no | free |
| minedbatches_train_third | main thread | a thread | a batch sampler of a `DataLoader` | no | free |
| iterable2_collate_half | main thread | loader workers | `IterableDataset`, `collate_fn` | yes | free |
| iterable2_train_quarter | main thread | loader workers | `IterableDataset`, `collate_fn` | no | free |
| forkedwriter_train_third | main thread | a process per checkpoint | `Process.join` each second step | no | free |
| hierarchical4_network_4x | ranks | ranks | `reduce`, `all_reduce`, `broadcast`: two levels | yes | free |
| hierarchical4_two_changes | ranks | ranks | the same; two changes | yes | free |
| sidecompress2_compress_half | ranks, main threads | a thread of each | futures behind its `all_reduce` | yes | free |
| sidecompress2_backward_quarter | ranks, main threads | a thread of each | the same | no | free |
| outersteps2_train_quarter | ranks | transfers | `all_reduce` awaited two steps later | no | free |
| actors3_learn_third | ranks | rank 0 | `recv` in turn, `broadcast` each second step | yes; then actors | free |
| actors3_slow_actor_half | ranks | an actor | the same | yes | free |
| shardedeval3_score_half | ranks | the rank of the largest shard | `all_gather_object` each third step | yes | free |
| swapped3_network_4x | ranks | transfers | three `all_to_all` under way, one awaited | partly | free |
| cappedexperts3_shared_removed | ranks | transfers | `all_to_all` beside a shared expert | no | free |
| bothways2_last_half | ranks | ranks | two pipelines in opposite directions, tags | yes | free |
| drifting4_network_16x | ranks | a random peer | `isend` and `irecv`, awaited one step later | no | free |
| drifting4_slow_rank_fixed | ranks | a random peer | the same | yes | free |
| staleness3_slow_rank_half | ranks | the slowest rank | keys of a `TCPStore`, one step late | yes | free |
| memoryring2_produce_half | rank 1 | rank 0 | a ring in shared memory, polled | yes | free |
| memoryring2_consume_quarter | rank 0 | rank 1 | the same ring, which was full | yes; the other way in B | free |
| mailbox3_answer_half | ranks | rank 0, for others too | `multiprocessing.connection.wait` | yes | free |
| rpcbatch3_slow_trainer_half | ranks | a trainer | `rpc.functions.async_execution`, one future for all | yes | free |
| rpcbatch3_update_third | ranks | threads of rank 0 | the same | yes | free |
| computed_doublebuffer_fill_half | main thread | a thread | two buffers, `Condition` | yes | free |
| computed_speculate_two_changes | main thread | a thread | a future; two changes | partly | free |
| computed_sidecompress2_compress_third | ranks | a thread of each | the same | partly | 4 threads for 2 |
| crowdedbeam4_score_half | main thread | a pool of four | `Executor.map` per token | yes | 4 threads for 2 |
| crowdedstaleness3_train_half | ranks | the slowest rank | keys of a `TCPStore` | yes | 3 ranks for 2 |
"""

from __future__ import annotations

from benchmarks.recorded.host_pairs import NETWORK, network
from benchmarks.recorded.pair import FIX, LOADER, LOADS, PYTHON, Pair, remove, scale

THREADS = {"all_threads": True}
CROWD = {"computes": True, "fair": True}
"""More threads or ranks are ready than there are cores, which they share."""
ALIGN = {"align": True}
"""Ranks meet once where the recording begins: most of them would else spend it on waiting for the last profiler."""
TWO = {"ranks": 2, "mbit": 300, **ALIGN}
THREE = {"ranks": 3, "mbit": 400, **ALIGN}
FOUR = {"ranks": 4, "mbit": 600, **ALIGN}
MM = "aten::mm"

SECOND_GRID_PAIRS = {
    # threads and tasks for threads
    "doublebuffer_fill_half": Pair(
        "second_grid_threads.buffered", {**THREADS, "fill_ms": 38, "train_ms": 23}, {"fill_ms": 19},
        "a thread fills one of two buffers in half the time; then training binds", scale(0.5, op="timed::fill"),
        "timed::fill"),
    "doublebuffer_train_third": Pair(
        "second_grid_threads.buffered", {**THREADS, "fill_ms": 25, "train_ms": 42}, {"train_ms": 14},
        "training takes a third; then the thread that fills two buffers, never waited for before, binds",
        scale(1 / 3, op="timed::train"), "timed::train"),
    "window3_call_half": Pair(
        "second_grid_threads.windowed", {**THREADS, "window": 3, "call_ms": [9, 14, 21, 12, 17, 8, 19],
                                         "train_ms": 15, "combine_ms": 6},
        {"call_ms": [4.5, 7, 10.5, 6, 8.5, 4, 9.5]}, "seven calls, at most three in flight, take half",
        scale(0.5, op="timed::call"), "timed::call"),
    "window3_two_changes": Pair(
        "second_grid_threads.windowed", {**THREADS, "window": 3, "call_ms": [11, 16, 9, 13, 18], "train_ms": 48,
                                         "combine_ms": 10}, {"train_ms": 12, "combine_ms": 20},
        "training takes a quarter and combining twice as long; then calls, at most three in flight, bind",
        [*scale(0.25, op="timed::train"), *scale(2, op="timed::combine")], "timed::train|timed::combine"),
    "priority_urgent_half": Pair(
        "second_grid_threads.prioritized", {**THREADS, "urgent_ms": 34, "background_ms": 5, "others": 1,
                                            "train_ms": 12}, {"urgent_ms": 17},
        "urgent tasks of a priority queue, for which training waits, take half", scale(0.5, op="timed::urgent"),
        "timed::urgent"),
    "priority_background_third": Pair(
        "second_grid_threads.prioritized", {**THREADS, "urgent_ms": 14, "background_ms": 33, "others": 3,
                                            "train_ms": 10}, {"background_ms": 11},
        "background tasks take a third; an urgent task waits only for the one that is under way",
        scale(1 / 3, op="timed::background"), "timed::background"),
    "readwrite2_score_half": Pair(
        "second_grid_threads.read_and_written", {**THREADS, "score_ms": [44, 31], "reply_ms": 5, "train_ms": 11,
                                                 "update_ms": 7}, {"score_ms": [22, 15.5]},
        "two threads read in half the time under a read-write lock, which the writer awaits",
        scale(0.5, op="timed::score"), "timed::score"),
    "readwrite2_train_quarter": Pair(
        "second_grid_threads.read_and_written", {**THREADS, "score_ms": [26, 18], "reply_ms": 60, "train_ms": 40,
                                                 "update_ms": 8}, {"train_ms": 10},
        "training takes a quarter; then the writer sometimes waits for two readers", scale(0.25, op="timed::train"),
        "timed::train"),
    "batcher3_model_half": Pair(
        "second_grid_threads.batched", {**THREADS, "prepare_ms": [9, 14, 70], "timeout_ms": 18, "model_ms": 28},
        {"model_ms": 14}, "the model takes half; batches close after a timeout, as one of three clients is slow",
        scale(0.5, op="timed::model"), "timed::model"),
    "batcher3_prepare_half": Pair(
        "second_grid_threads.batched", {**THREADS, "prepare_ms": [22, 30, 40], "timeout_ms": 60, "model_ms": 16,
                                        "each_ms": 2}, {"prepare_ms": [11, 15, 20]},
        "three clients prepare in half the time; a batch is of all three, before its timeout",
        scale(0.5, op="timed::prepare"), "timed::prepare"),
    "jointimeout_write_third": Pair(
        "second_grid_threads.watched", {**THREADS, "train_ms": 13, "write_ms": 63, "timeout_ms": 9, "report_ms": 3},
        {"write_ms": 21}, "a thread per step, joined again and again with a timeout, writes in a third of the time",
        scale(1 / 3, op="timed::write"), "timed::write"),
    "deadline_fetch_half": Pair(
        "second_grid_threads.overdue", {**THREADS, "fetch_ms": 58, "train_ms": 16, "deadline_ms": 19, "apply_ms": 6},
        {"fetch_ms": 29}, "a thread fetches in half the time; training waited at most 19 ms, mostly in vain",
        scale(0.5, op="timed::fetch"), "timed::fetch"),
    "speculate_draft_third": Pair(
        "second_grid_threads.speculated", {**THREADS, "draft_ms": 9, "verify_ms": 22}, {"draft_ms": 3},
        "drafts take a third; then the thread that verifies binds, but for steps that draft again",
        scale(1 / 3, op="timed::draft"), "timed::draft"),
    "speculate_verify_half": Pair(
        "second_grid_threads.speculated", {**THREADS, "draft_ms": 4, "verify_ms": 50}, {"verify_ms": 25},
        "a thread verifies in half the time what was drafted", scale(0.5, op="timed::verify"), "timed::verify"),
    "offload2_store_half": Pair(
        "second_grid_threads.offloaded", {**THREADS, "limit": 2, "forward_ms": 5, "backward_ms": 7, "store_ms": 15,
                                          "load_ms": 4}, {"store_ms": 7.5},
        "a thread stores activations in half the time; at most two are in flight", scale(0.5, op="timed::store"),
        "timed::store"),
    "offload2_backward_quarter": Pair(
        "second_grid_threads.offloaded", {**THREADS, "limit": 2, "forward_ms": 7, "backward_ms": 16, "store_ms": 4,
                                          "load_ms": 10}, {"backward_ms": 4},
        "backward takes a quarter; then the thread that loads activations one layer ahead, hidden before, binds",
        scale(0.25, op="timed::backward"), "timed::backward"),
    "beam4_score_half": Pair(
        "second_grid_outside.beams", {**THREADS, "threads": 2, "beams": 4, "score_ms": [6, 11, 8, 14], "choose_ms": 3},
        {"score_ms": [3, 5.5, 4, 7]}, "scores of four beams take half in a pool of two, mapped for each token",
        scale(0.5, op="timed::score"), "timed::score"),
    "beam4_two_changes": Pair(
        "second_grid_outside.beams", {**THREADS, "threads": 2, "beams": 4, "score_ms": [10, 7, 13, 9], "choose_ms": 8},
        {"score_ms": [10 / 3, 7 / 3, 13 / 3, 3], "choose_ms": 4},
        "scores of four beams take a third in a pool of two, and choosing takes half",
        [*scale(1 / 3, op="timed::score"), *scale(0.5, op="timed::choose")], "timed::score|timed::choose"),
    "stealing3_large_third": Pair(
        "second_grid_outside.stolen", {**THREADS, "large": 2, "large_ms": 42, "small": 7, "small_ms": 6},
        {"large_ms": 14}, "large tasks take a third; main thread and two helpers then share tasks in another way",
        scale(1 / 3, op="timed::large"), "timed::large"),
    "replay_act_half": Pair(
        "second_grid_outside.replayed", {**THREADS, "per_sample": 2, "act_ms": 22, "learn_ms": 28}, {"act_ms": 11},
        "acting takes half, of which a limiter wants two per sample; then learning binds",
        scale(0.5, op="timed::act"), "timed::act"),
    "replay_learn_third": Pair(
        "second_grid_outside.replayed", {**THREADS, "per_sample": 2, "act_ms": 13, "learn_ms": 51}, {"learn_ms": 17},
        "learning takes a third; then acting, which a limiter held back before, binds",
        scale(1 / 3, op="timed::learn"), "timed::learn"),
    "paced_train_half": Pair(
        "second_grid_outside.paced", {"every_ms": 45, "request_ms": 6, "train_ms": 30}, {"train_ms": 15},
        "training takes half, but a step begins each 45 ms, for which the process sleeps: no gain",
        scale(0.5, op="timed::train"), f"timed::train|{PYTHON}"),
    "torchfutures3_part_half": Pair(
        "second_grid_outside.collected", {**THREADS, "part_ms": [24, 40, 33], "merge_ms": 6, "train_ms": 14},
        {"part_ms": [12, 20, 16.5]}, "three threads set futures in half the time; the last of them merges",
        scale(0.5, op="timed::part"), "timed::part"),
    "torchfutures3_train_quarter": Pair(
        "second_grid_outside.collected", {**THREADS, "part_ms": [15, 22, 19], "merge_ms": 5, "train_ms": 44},
        {"train_ms": 11}, "training takes a quarter; then three threads that set futures bind",
        scale(0.25, op="timed::train"), "timed::train"),
    # a process for loaders, threads behind loaders, and processes that are not recorded
    "minedbatches_train_third": Pair(
        "second_grid_outside.mined", {**THREADS, "mine_ms": 30, "read_ms": 8, "train_ms": 36}, {"train_ms": 12},
        "training takes a third; then the thread that mines rows for a batch sampler binds",
        scale(1 / 3, op="timed::train"), f"timed::train|{LOADER}"),
    "iterable2_collate_half": Pair(
        "second_grid_outside.streamed", {"workers": 2, "read_ms": 40, "collate_ms": 60, "train_ms": 16},
        {"collate_ms": 30}, "two workers put batches of a stream together in half the time, 70 % of all of theirs",
        [("inject", {"rank": 0, "kind": "loader", "factor": 0.7})], LOADER, LOADS),
    "iterable2_train_quarter": Pair(
        "second_grid_outside.streamed", {"workers": 2, "read_ms": 28, "collate_ms": 20, "train_ms": 48},
        {"train_ms": 12}, "training takes a quarter; then two workers, which read a stream and collate, bind",
        scale(0.25, op="timed::train"), f"timed::train|{LOADER}"),
    "forkedwriter_train_third": Pair(
        "second_grid_outside.forked", {"every": 2, "train_ms": 48, "write_ms": 70}, {"train_ms": 16},
        "training takes a third; then processes that write, forked each second step and joined, bind",
        scale(1 / 3, op="timed::train"), f"timed::train|{PYTHON}"),
    # ranks for ranks, by collectives and transfers
    "hierarchical4_network_4x": Pair(
        "second_grid.hierarchical", {**FOUR, "elements": 30_000, "compute_ms": 18}, {"mbit": 150},
        "network a quarter as fast; gradients are reduced in pairs, between their firsts, and broadcast",
        network(4), NETWORK),
    "hierarchical4_two_changes": Pair(
        "second_grid.hierarchical", {**FOUR, "elements": 24_000, "compute_ms": 28, "spread": 0.6},
        {"compute_ms": 14, "mbit": 300}, "computing takes half and the network is half as fast; two levels",
        [*scale(0.5, op="timed::compute"), *network(2)], f"timed::compute|{NETWORK}"),
    "sidecompress2_compress_half": Pair(
        "second_grid.compressed_beside", {**TWO, **THREADS, "elements": 6_000, "backward_ms": 6, "compress_ms": 14},
        {"compress_ms": 7}, "a thread of each rank compresses each bucket, then all-reduces it, in half the time",
        scale(0.5, op="timed::compress"), "timed::compress"),
    "sidecompress2_backward_quarter": Pair(
        "second_grid.compressed_beside", {**TWO, **THREADS, "elements": 6_000, "backward_ms": 20, "compress_ms": 9},
        {"backward_ms": 5}, "backward takes a quarter; then threads that compress and all-reduce buckets bind",
        scale(0.25, op="timed::backward"), "timed::backward"),
    "outersteps2_train_quarter": Pair(
        "second_grid.outer_steps", {"ranks": 2, "mbit": 100, **ALIGN, "elements": 100_000, "every": 2, "train_ms": 60},
        {"train_ms": 15}, "training takes a quarter; then the all_reduce of two steps before, hidden until now, binds",
        scale(0.25, op="timed::train"), "timed::train"),
    "actors3_learn_third": Pair(
        "second_grid.actors", {**THREE, "elements": 8_000, "every": 2, "act_ms": 26, "learn_ms": 45},
        {"learn_ms": 15}, "learning on rank 0 takes a third; then two actors bind", scale(1 / 3, op="timed::learn"),
        "timed::learn", {"straggler": 0}),
    "actors3_slow_actor_half": Pair(
        "second_grid.actors", {**THREE, "elements": 8_000, "every": 2, "act_ms": 20, "learn_ms": 12,
                               "slow": {"2": 2.4}}, {"slow": {"2": 1.2}},
        "the slower of two actors takes half; rank 0 receives from both in turn",
        scale(0.5, op="timed::act", rank=2), "timed::act", {"straggler": 2}),
    "shardedeval3_score_half": Pair(
        "second_grid.evaluated_apart", {**THREE, "every": 3, "batches": [3, 7, 4], "train_ms": 22, "score_ms": 12},
        {"score_ms": 6}, "each third step's evaluation of uneven shards takes half", scale(0.5, op="timed::score"),
        "timed::score", {"straggler": 1}),
    "swapped3_network_4x": Pair(
        "second_grid.swapped", {**THREE, "elements": 4_000, "project_ms": 5, "attention_ms": 12, "dense_ms": 7},
        {"mbit": 100}, "network a quarter as fast; query, key and value are swapped beside projections",
        network(4), NETWORK),
    "cappedexperts3_shared_removed": Pair(
        "second_grid.capped_experts", {**THREE, "capacity": 16_000, "gate_ms": 3, "shared_ms": 24, "expert_ms": 11,
                                       "norm_ms": 4}, {"shared_ms": 0},
        "the shared expert is gone; then the all_to_all beside which it ran binds", remove(op="timed::shared"),
        "timed::shared"),
    "bothways2_last_half": Pair(
        "second_grid.both_ways", {**TWO, "elements": 3_000, "first_ms": [6, 6], "last_ms": [14, 14]},
        {"last_ms": [7, 7]}, "last stages of two pipelines in opposite directions take half",
        scale(0.5, op="timed::last"), "timed::last"),
    "drifting4_network_16x": Pair(
        "second_grid.drifting", {**FOUR, "elements": 24_000, "train_ms": 26}, {"mbit": 37.5},
        "network a sixteenth as fast; what a random peer sent is awaited one step later",
        network(16), NETWORK),
    "drifting4_slow_rank_fixed": Pair(
        "second_grid.drifting", {**FOUR, "elements": 6_000, "train_ms": 22, "slow": {"1": 1.9}}, {"slow": {}},
        "rank 1 is no slower any more; each sends to a random peer and awaits one step later", FIX, "timed::*",
        {"straggler": 1}),
    # ranks for ranks, by other things
    "staleness3_slow_rank_half": Pair(
        "second_grid_peers.bounded_staleness", {**THREE, "bound": 1, "train_ms": 20, "slow": {"2": 2.6}},
        {"slow": {"2": 1.3}}, "the slowest of three ranks, which others lead by at most one step, takes half",
        scale(0.5, op="timed::train", rank=2), "timed::train", {"straggler": 2}),
    "memoryring2_produce_half": Pair(
        "second_grid_peers.memory_ring", {"ranks": 2, **ALIGN, "slots": 3, "produce_ms": 44, "consume_ms": 26},
        {"produce_ms": 22}, "rank 0 fills slots of a ring in shared memory in half the time; then rank 1 binds",
        scale(0.5, op="timed::produce"), "timed::produce"),
    "memoryring2_consume_quarter": Pair(
        "second_grid_peers.memory_ring", {"ranks": 2, **ALIGN, "slots": 2, "produce_ms": 21, "consume_ms": 48},
        {"consume_ms": 12}, "rank 1 empties slots of a ring in shared memory in a quarter; then rank 0 binds",
        scale(0.25, op="timed::consume"), "timed::consume"),
    "mailbox3_answer_half": Pair(
        "second_grid_peers.mailbox", {"ranks": 3, **ALIGN, "work_ms": 13, "answer_ms": 22}, {"answer_ms": 11},
        "rank 0 answers whoever of two ranks has written to it in half the time",
        scale(0.5, op="timed::answer"), "timed::answer"),
    "rpcbatch3_slow_trainer_half": Pair(
        "second_grid_peers.called_in_batches", {**THREE, **THREADS, "train_ms": 18, "update_ms": 9,
                                                "slow": {"1": 2.4}}, {"slow": {"1": 1.2}},
        "the slower trainer takes half; rank 0 answers both by one future", scale(0.5, op="timed::train", rank=1),
        "timed::train", {"straggler": 1}),
    "rpcbatch3_update_third": Pair(
        "second_grid_peers.called_in_batches", {**THREE, **THREADS, "train_ms": 14, "update_ms": 36, "spread": 0.5},
        {"update_ms": 12}, "the update for which two trainers wait, by one future, takes a third",
        scale(1 / 3, op="timed::update"), "timed::update"),
    # work that computes
    "computed_doublebuffer_fill_half": Pair(
        "second_grid_threads.buffered", {**THREADS, "fill_ms": 70, "train_ms": 45, "computes": True},
        {"fill_ms": 35}, "a thread that fills two buffers multiplies half as often; then training binds",
        scale(0.5, op="timed::fill"), f"timed::fill|{MM}"),
    "computed_speculate_two_changes": Pair(
        "second_grid_threads.speculated", {**THREADS, "draft_ms": 10, "verify_ms": 70, "computes": True},
        {"draft_ms": 5, "verify_ms": 35}, "drafting and verifying multiply half as often",
        [*scale(0.5, op="timed::draft"), *scale(0.5, op="timed::verify")], f"timed::draft|timed::verify|{MM}"),
    "computed_sidecompress2_compress_third": Pair(
        "second_grid.compressed_beside", {"ranks": 2, "mbit": 1000, **ALIGN, **THREADS, **CROWD, "elements": 6_000,
                                          "backward_ms": 20, "compress_ms": 30}, {"compress_ms": 10},
        "threads that compress buckets, on cores that two ranks share, multiply a third as often",
        scale(1 / 3, op="timed::compress"), f"timed::compress|{MM}"),
    "crowdedbeam4_score_half": Pair(
        "second_grid_outside.beams", {**THREADS, **CROWD, "threads": 4, "beams": 4, "score_ms": [20, 26, 34, 28],
                                      "choose_ms": 8}, {"score_ms": [10, 13, 17, 14]},
        "scores of four beams on two cores take half, mapped for each token", scale(0.5, op="timed::score"),
        f"timed::score|{MM}"),
    "crowdedstaleness3_train_half": Pair(
        "second_grid_peers.bounded_staleness", {"ranks": 3, **ALIGN, **CROWD, "bound": 1, "train_ms": 60, "push_ms": 9},
        {"train_ms": 30}, "three ranks on two cores, of which none leads by more than one step, train in half",
        scale(0.5, op="timed::train"), f"timed::train|{MM}"),
}  # fmt: skip
"""The pairs of the second grid by name."""
