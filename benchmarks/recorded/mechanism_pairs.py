"""Pairs by a grid of mechanisms: who waits, for whom, through what, whether that bound in A, whether cores were free.

| pair | who waits | for whom | through what | bound in A | cores |
|---|---|---|---|---|---|
| ascompleted_fetch_half | main thread | a pool's threads | `as_completed` | yes | free |
| ascompleted_both_changes | main thread | a pool's threads | `as_completed`; two changes | yes | free |
| hedged_primary_third | main thread | the first of two futures | `wait(FIRST_COMPLETED)` | the other one | free |
| joined2_left_third | main thread | two threads per step | `Thread.join` of both | one; the other binds in B | free |
| drain_upload_half | main thread | a thread | `Queue.put` on a full queue | yes | free |
| drain_train_quarter | main thread | a thread | `Queue.put` on a full queue | no | free |
| drain_both_changes | main thread | a thread | `Queue.put` on a full queue; two changes | no | free |
| relay3_second_half | main thread | a chain of two threads | `Event` | yes | free |
| relay3_own_quarter | main thread | a chain of two threads | `Event` | no | free |
| callbacks_train_quarter | main thread | two pools | callbacks of futures | no | free |
| callbacks_embed_half | main thread | two pools | callbacks of futures | yes | free |
| contended_index_half | main thread | a thread | `Lock`, taken in turn | yes | free |
| dispatch2_score_half | main thread | two threads | two unbounded `SimpleQueue` | yes | free |
| replicas4_slowest_third | threads | threads | `Barrier` with an action | one; another binds in B | free |
| replicas4_all_half | threads | threads | `Barrier` with an action | yes | free |
| hogwild2_update_half | main thread, threads | threads | `Lock` and a bounded queue | yes | free |
| store3_index_third | ranks | rank 0 | `TCPStore` | yes; the other way in B | free |
| filestore2_train_half | rank 0 | rank 1 | `FileStore`, which is polled | yes | free |
| storebarrier4_slow_rank_half | ranks | the last rank | a counter of a `TCPStore` | yes | free |
| tree4_leaf_half | ranks | ranks | a tree of `send` and `recv` | yes | free |
| tree4_network_8x | ranks | ranks | a tree of `send` and `recv` | yes | free |
| monitored3_compute_half | ranks | the last rank | `monitored_barrier` | yes | free |
| objects3_report_quarter | ranks | rank 0 | objects gathered and broadcast | yes; the other way in B | free |
| objects3_both_changes | ranks | rank 0 | objects gathered and broadcast; two changes | yes | free |
| splitbackward3_weights_half | ranks | ranks | 1F1B by `isend`, backward split in two | partly | free |
| looped2_network_8x | ranks | ranks | interleaved pipeline by `isend` | no | free |
| shardedupdates2_backward_quarter | ranks | transfers | `reduce_scatter`, `all_gather` over steps | no | free |
| shardedupdates2_both_changes | ranks | transfers | the same; two changes | partly | free |
| rotating3_expert_third | ranks | another rank in each step | uneven `all_to_all` | yes | free |
| twolanes2_train_quarter | main thread | a thread and its group | a future behind a collective | no | free |
| twolanes2_measure_half | main thread | a thread and its group | a future behind a collective | yes | free |
| snapshots3_train_third | ranks | a thread of rank 0 | a future, then `barrier`, each third step | no | free |
| rpc3_lookup_half | ranks | threads of rank 0 | `rpc_async` | yes | free |
| procpool_train_third | main thread | processes, not recorded | a pool of them: no gain | no: these bind | free |
| processbarrier_train_third | main thread | a process, not recorded | `multiprocessing.Barrier` | no | free |
| lockstep_act_third | main thread | a process, not recorded | `multiprocessing.Event`, in turn | yes | free |
| ticks_train_third | main thread | a process, not recorded | a pipe at a fixed rate: no gain | no: this binds | free |
| files_train_half | main thread | a process, not recorded | files, polled: no gain | no: this binds | free |
| unrecorded3_stage_half | ranks | a rank, not recorded | `send` and `recv`: no gain | no: this binds | free |
| gil2_tokenize_half | main thread | a thread | the interpreter's lock, a bounded queue | yes | the interpreter is not |
| gil_collate_third | main thread | a thread | the interpreter's lock, a bounded queue | yes | the interpreter is not |
| gil_train_tokenize_removed | main thread | a thread | the interpreter's lock | yes | the interpreter is not |
| packing_thread_half | autograd's hooks | a thread | futures in saved tensors | partly | free |
| updatehooks_update_third | main thread | a thread | gradients' hooks, `wait(ALL_COMPLETED)` | yes | free |
| pickle2_collect_removed | ranks | rank 0 | `gather_object` each second step | yes | free |
| savethread_half | main thread | a thread | a future each third step | yes | free |
| evaluatesteps_half | nobody | nobody | evaluation each third step | - | free |
| parts_two_changes | nobody | nobody | micro-batches, inspection; two changes | - | free |
| embedding2_normalize_half | rank 1 | rank 0 | `send` and `recv` of requests and rows | yes | free |
| computed_shardedupdates2_two_changes | ranks | transfers | the same; two changes | partly | free |
| computed_drain_train_quarter | main thread | a thread | `Queue.put` on a full queue | no | free |
| crowdedmerge4_fetch_half | main thread | a pool's threads | `as_completed` | yes | 4 threads for 2 |
| crowdedreplicas4_forward_half | threads | threads | `Barrier` with an action | yes | 4 threads for 2 |
| crowdedhogwild3_forward_half | main thread, threads | threads | `Lock` and a bounded queue | yes | 3 threads for 2 |
| crowdedranks4_compute_half | ranks | ranks | `all_reduce` | yes | 4 ranks for 2 |
| crowdedranks3_straggler | ranks | a rank | `all_reduce` | yes | 3 ranks for 2 |
| crowdedloader3_train_third | main thread | loader workers | `DataLoader` | no | 4 processes for 2 |
| crowdedloader3_loader_half | main thread | loader workers | `DataLoader` | yes | 4 processes for 2 |
| evaluatethread2_evaluate_removed | ranks | a thread of rank 0 | cores alone | yes | 3 threads for 2 |
| crowdedahead2_augment_half | main threads | threads | futures, one step ahead | yes | 4 threads for 2 |
| neighbours2_model_half | main thread | processes, not recorded | cores alone | yes | 3 processes for 2 |
| crowdedsplit3_weights_half | ranks | ranks | 1F1B by `isend`, backward split in two | partly | 3 ranks for 2 |
"""

from __future__ import annotations

from benchmarks.recorded.host_pairs import NETWORK, network
from benchmarks.recorded.pair import FIX, LOADER, LOADER_HALF, LOADS, PYTHON, Pair, remove, scale

THREADS = {"all_threads": True}
CROWD = {"computes": True, "fair": True}
"""More threads or ranks are ready than there are cores, which they share."""
TWO = {"ranks": 2, "mbit": 300}
THREE = {"ranks": 3, "mbit": 400}
FOUR = {"ranks": 4, "mbit": 600}
MM = "aten::mm"

MECHANISM_PAIRS = {
    # threads for threads
    "ascompleted_fetch_half": Pair(
        "mechanisms_threads.merged", {**THREADS, "fetch_ms": [12, 20, 30, 46], "merge_ms": 4, "train_ms": 12},
        {"fetch_ms": [6, 10, 15, 23]}, "fetches take half; each is merged as soon as it is done",
        scale(0.5, op="timed::fetch"), "timed::fetch"),
    "ascompleted_both_changes": Pair(
        "mechanisms_threads.merged", {**THREADS, "fetch_ms": [30, 34, 38, 42], "merge_ms": 8, "train_ms": 14},
        {"fetch_ms": [15, 17, 19, 21], "train_ms": 28}, "fetches take half and training twice as long",
        [*scale(0.5, op="timed::fetch"), *scale(2, op="timed::train")], "timed::fetch|timed::train"),
    "hedged_primary_third": Pair(
        "mechanisms_threads.hedged", {**THREADS, "primary_ms": 45, "backup_ms": 30, "rank_ms": 10},
        {"primary_ms": 15}, "the primary backend takes a third: it answers first then, in place of the backup",
        scale(1 / 3, op="timed::primary"), "timed::primary"),
    "joined2_left_third": Pair(
        "mechanisms_threads.joined", {**THREADS, "left_ms": 42, "right_ms": 26}, {"left_ms": 14},
        "the longer of two threads, started and joined in each step, takes a third; then the other binds",
        scale(1 / 3, op="timed::left"), "timed::left"),
    "drain_upload_half": Pair(
        "mechanisms_threads.drained", {**THREADS, "train_ms": 24, "upload_ms": 40}, {"upload_ms": 20},
        "a thread that empties a bounded queue takes half; training waited as the queue was full",
        scale(0.5, op="timed::upload"), "timed::upload"),
    "drain_train_quarter": Pair(
        "mechanisms_threads.drained", {**THREADS, "train_ms": 44, "upload_ms": 26, "depth": 1}, {"train_ms": 11},
        "training takes a quarter; then it waits as the bounded queue, never full before, is full",
        scale(0.25, op="timed::train"), "timed::train"),
    "drain_both_changes": Pair(
        "mechanisms_threads.drained", {**THREADS, "train_ms": 40, "upload_ms": 20, "depth": 1},
        {"train_ms": 20, "upload_ms": 30}, "training takes half and uploads 1.5 times as long: these bind then",
        [*scale(0.5, op="timed::train"), *scale(1.5, op="timed::upload")], "timed::train|timed::upload"),
    "relay3_second_half": Pair(
        "mechanisms_threads.relayed", {**THREADS, "first_ms": 14, "second_ms": 36, "own_ms": 30}, {"second_ms": 18},
        "the second of two threads that relay by events takes half", scale(0.5, op="timed::second"), "timed::second"),
    "relay3_own_quarter": Pair(
        "mechanisms_threads.relayed", {**THREADS, "first_ms": 16, "second_ms": 14, "own_ms": 52}, {"own_ms": 13},
        "the main thread's operator takes a quarter; then two threads that relay by events bind",
        scale(0.25, op="timed::own"), "timed::own"),
    "callbacks_train_quarter": Pair(
        "mechanisms_threads.called_back", {**THREADS, "decode_ms": 14, "embed_ms": 16, "train_ms": 48},
        {"train_ms": 12}, "training takes a quarter; then a chain of futures' callbacks over two pools binds",
        scale(0.25, op="timed::train"), "timed::train"),
    "callbacks_embed_half": Pair(
        "mechanisms_threads.called_back", {**THREADS, "decode_ms": 12, "embed_ms": 44, "train_ms": 16},
        {"embed_ms": 22}, "the second task of a chain of futures' callbacks takes half",
        scale(0.5, op="timed::embed"), "timed::embed"),
    "contended_index_half": Pair(
        "mechanisms_threads.contended", {**THREADS, "read_ms": 5, "index_ms": 30, "train_ms": 24, "log_ms": 5},
        {"index_ms": 15}, "what another thread does under a lock takes half", scale(0.5, op="timed::index"),
        "timed::index"),
    "dispatch2_score_half": Pair(
        "mechanisms_threads.dispatched", {**THREADS, "score_ms": 20, "train_ms": 16}, {"score_ms": 10},
        "five tasks on two threads, asked for and answered by unbounded queues, take half",
        scale(0.5, op="timed::score"), "timed::score"),
    "replicas4_slowest_third": Pair(
        "mechanisms_threads.replicas", {**THREADS, "forward_ms": [16, 18, 48, 22]}, {"forward_ms": [16, 18, 16, 22]},
        "the slowest of four threads at a barrier takes a third; then another is last and runs its action",
        None, "timed::forward", {"why": "no what-if chooses one thread's operators of a name that all threads have"}),
    "replicas4_all_half": Pair(
        "mechanisms_threads.replicas", {**THREADS, "forward_ms": [24, 30, 52, 36]}, {"forward_ms": [12, 15, 26, 18]},
        "four threads at a barrier take half; the last of them runs its action", scale(0.5, op="timed::forward"),
        "timed::forward"),
    "hogwild2_update_half": Pair(
        "mechanisms_threads.hogwild", {**THREADS, "forward_ms": 16, "update_ms": 26}, {"update_ms": 13},
        "updates under a lock that two training threads share take half", scale(0.5, op="timed::update"),
        "timed::update"),
    # ranks for ranks
    "store3_index_third": Pair(
        "mechanisms.told", {**THREE, "index_ms": 42, "train_ms": 22}, {"index_ms": 14},
        "what rank 0 tells the others by a TCPStore takes a third; then it waits for them",
        scale(1 / 3, op="timed::index"), "timed::index"),
    "filestore2_train_half": Pair(
        "mechanisms.told", {**TWO, "kind": "file", "index_ms": 16, "train_ms": 60}, {"train_ms": 30},
        "training takes half, for which rank 0 waits by a FileStore", scale(0.5, op="timed::train"), "timed::train"),
    "storebarrier4_slow_rank_half": Pair(
        "mechanisms.counted", {**FOUR, "compute_ms": 20, "slow": {"2": 2.4}}, {"slow": {"2": 1.2}},
        "the last rank at a barrier made of a store's counter takes half",
        scale(0.5, op="timed::compute", rank=2), "timed::compute", {"straggler": 2}),
    "tree4_leaf_half": Pair(
        "mechanisms.tree", {**FOUR, "elements": 4_000, "compute_ms": 18, "slow": {"3": 2.6}}, {"slow": {"3": 1.3}},
        "a leaf of a tree of sends and receives takes half", scale(0.5, op="timed::compute", rank=3),
        "timed::compute", {"straggler": 3}),
    "tree4_network_8x": Pair(
        "mechanisms.tree", {**FOUR, "elements": 12_000, "compute_ms": 20}, {"mbit": 75},
        "network an eighth as fast; a tree of sends and receives", network(8), NETWORK),
    "monitored3_compute_half": Pair(
        "mechanisms.watched", {**THREE, "compute_ms": 24, "spread": 1.0}, {"compute_ms": 12},
        "operators take half before a monitored barrier; ranks vary", scale(0.5, op="timed::compute"),
        "timed::compute"),
    "objects3_report_quarter": Pair(
        "mechanisms.reported", {**THREE, "compute_ms": 14, "report_ms": 48, "evaluate_ms": 26}, {"report_ms": 12},
        "rank 0 reports in a quarter of the time; then the others, which evaluate, bind; objects are gathered",
        scale(0.25, op="timed::report"), "timed::report", {"straggler": 0}),
    "objects3_both_changes": Pair(
        "mechanisms.reported", {**THREE, "compute_ms": 24, "report_ms": 40, "evaluate_ms": 16},
        {"compute_ms": 12, "report_ms": 20}, "computing and reporting take half; objects are gathered and broadcast",
        [*scale(0.5, op="timed::compute"), *scale(0.5, op="timed::report")], "timed::compute|timed::report"),
    "splitbackward3_weights_half": Pair(
        "mechanisms.split_backward", {**THREE, "stage_ms": [5, 5, 5], "weights_ms": [5, 10, 5]},
        {"weights_ms": [2.5, 5, 2.5]}, "gradients of weights take half; those of inputs went to the rank before first",
        scale(0.5, op="timed::stage_weights"), "timed::stage_weights"),
    "looped2_network_8x": Pair(
        "mechanisms.looped", {"ranks": 2, "mbit": 800, "elements": 20_000, "chunk_ms": [7, 7]}, {"mbit": 100},
        "network an eighth as fast; each micro-batch goes twice through both ranks", network(8), NETWORK),
    "shardedupdates2_backward_quarter": Pair(
        "mechanisms.sharded_updates", {"ranks": 2, "mbit": 160, "elements": 40_000, "forward_ms": 6, "backward_ms": 20,
                                       "update_ms": 4}, {"backward_ms": 5},
        "backward takes a quarter; then the reduce-scatters beside it bind", scale(0.25, op="timed::backward"),
        "timed::backward"),
    "shardedupdates2_both_changes": Pair(
        "mechanisms.sharded_updates", {"ranks": 2, "mbit": 400, "elements": 12_000, "forward_ms": 7, "backward_ms": 9,
                                       "update_ms": 6}, {"mbit": 100, "update_ms": 3},
        "network a quarter as fast, and updates of shards take half",
        [*network(4), *scale(0.5, op="timed::update")], f"{NETWORK}|timed::update"),
    "rotating3_expert_third": Pair(
        "mechanisms.rotating", {**THREE, "many": 6_000, "few": 1_500, "attention_ms": 6, "expert_ms": 30},
        {"expert_ms": 10}, "experts take a third; in each step another rank has most of the tokens",
        scale(1 / 3, op="timed::expert"), "timed::expert"),
    "twolanes2_train_quarter": Pair(
        "mechanisms.two_lanes", {**TWO, **THREADS, "elements": 20_000, "train_ms": 52, "measure_ms": 30},
        {"train_ms": 13}, "training takes a quarter; then a thread that measures and all-reduces binds",
        scale(0.25, op="timed::train"), "timed::train"),
    "twolanes2_measure_half": Pair(
        "mechanisms.two_lanes", {**TWO, **THREADS, "elements": 20_000, "train_ms": 16, "measure_ms": 52},
        {"measure_ms": 26}, "a thread that measures and all-reduces in a group of its own takes half",
        scale(0.5, op="timed::measure"), "timed::measure"),
    "snapshots3_train_third": Pair(
        "mechanisms.snapshots", {**THREE, **THREADS, "train_ms": 36, "write_ms": 70, "every": 3}, {"train_ms": 12},
        "training takes a third; then all ranks wait for the thread of rank 0 that writes, hidden before",
        scale(1 / 3, op="timed::train"), "timed::train"),
    "rpc3_lookup_half": Pair(
        "mechanisms.remote", {**THREE, **THREADS, "lookup_ms": 22, "train_ms": 14}, {"lookup_ms": 11},
        "rank 0 answers remote calls in half the time, in two threads for two trainers with two calls each",
        scale(0.5, op="timed::lookup"), "timed::lookup"),
    # a process for a process that is not recorded
    "procpool_train_third": Pair(
        "mechanisms_outside.pooled", {"make_ms": 80, "train_ms": 24}, {"train_ms": 8},
        "training takes a third, but a pool of two processes makes batches: no gain", scale(1 / 3, op="timed::train"),
        f"timed::train|next_batch|{PYTHON}"),
    "processbarrier_train_third": Pair(
        "mechanisms_outside.barred", {"simulate_ms": 28, "train_ms": 48}, {"train_ms": 16},
        "training takes a third; then another process, met at a barrier and never waited for before, binds",
        scale(1 / 3, op="timed::train"), "timed::train|meet"),
    "lockstep_act_third": Pair(
        "mechanisms_outside.lockstep", {"world_ms": 20, "act_ms": 36}, {"act_ms": 12},
        "acting takes a third; the environment, another process told by an event, runs after it",
        scale(1 / 3, op="timed::act"), "timed::act"),
    "ticks_train_third": Pair(
        "mechanisms_outside.ticked", {"every_ms": 40, "train_ms": 27}, {"train_ms": 9},
        "training takes a third, but another process has a sample each 40 ms: no gain",
        scale(1 / 3, op="timed::train"), f"timed::train|sample|{PYTHON}"),
    "files_train_half": Pair(
        "mechanisms_outside.filed", {"make_ms": 38, "train_ms": 24}, {"train_ms": 12},
        "training takes half, but another process, for whose files this one looks, binds: no gain",
        scale(0.5, op="timed::train"), f"timed::train|find|{PYTHON}"),
    "unrecorded3_stage_half": Pair(
        "mechanisms.staged", {**THREE, "stage_ms": [38, 24, 12], "unrecorded": [0]}, {"stage_ms": [38, 12, 12]},
        "stage 1 of 3 takes half, but stage 0, which is not recorded, binds: no gain",
        scale(0.5, op="timed::stage", rank=1), "timed::stage|c10d::*|gloo:*"),
    # the interpreter's lock is held
    "gil2_tokenize_half": Pair(
        "mechanisms_threads.interpreted", {**THREADS, "tokenize_ms": 30, "collate_ms": 14, "train_ms": 12},
        {"tokenize_ms": 15}, "a thread's Python loop takes half beside another one of the main thread",
        scale(0.5, op="tokenize"), "tokenize|collate|timed::train"),
    "gil_collate_third": Pair(
        "mechanisms_threads.interpreted", {**THREADS, "tokenize_ms": 14, "collate_ms": 30, "train_ms": 24,
                                           "computes": True}, {"collate_ms": 10},
        "the main thread's Python loop takes a third beside another one; matrices are multiplied",
        scale(1 / 3, op="collate"), "collate|tokenize|timed::train"),
    "gil_train_tokenize_removed": Pair(
        "mechanisms_real.tokenized", {**THREADS, "tokenize_ms": 30, "batch": 768}, {"tokenize_ms": 0},
        "a thread no longer runs a Python loop, for which operators of training waited", remove(op="tokenize"),
        "tokenize|aten::*"),
    # work that computes, on free cores
    "packing_thread_half": Pair(
        "mechanisms_real.packed_activations", {**THREADS, "passes": 16, "batch": 1536}, {"passes": 8},
        "a thread packs activations, for which backward waits, in half the time", scale(0.5, op="pack"),
        "pack|aten::*"),
    "updatehooks_update_third": Pair(
        "mechanisms_real.updated_in_hooks", {**THREADS, "passes": 40, "batch": 1024}, {"passes": 13},
        "a thread updates each parameter that a hook hands over in a third of the time", scale(1 / 3, op="update"),
        "update|aten::*"),
    "pickle2_collect_removed": Pair(
        "mechanisms_real.pickled", {"ranks": 2, "mbit": 4000, "numbers": 200_000, "batch": 768}, {"numbers": 0},
        "predictions are no longer gathered as pickled objects in each second step", remove(op="collect"),
        "collect|aten::*|c10d::*|gloo:*"),
    "savethread_half": Pair(
        "mechanisms_real.saved_by_thread", {**THREADS, "passes": 4, "batch": 512}, {"passes": 2},
        "a thread packs each third step's weights half as often; the next save waited for it",
        scale(0.5, op="save"), "save|aten::*"),
    "evaluatesteps_half": Pair(
        "mechanisms_real.evaluated", {"batches": 6}, {"batches": 3}, "each third step evaluates half as many batches",
        scale(0.5, op="evaluate"), "evaluate|aten::*"),
    "parts_two_changes": Pair(
        "mechanisms_real.accumulated", {"micro": 4, "inspect": True}, {"micro": 3, "inspect": False},
        "one micro-batch fewer, and gradients are no longer inspected",
        [*remove(op="part_3"), *remove(backward_of="part_3"), *remove(op="inspect")], "part_*|inspect|aten::*"),
    "embedding2_normalize_half": Pair(
        "mechanisms_real.shared_embedding", {"ranks": 2, "mbit": 4000, "passes": 60, "repeats": 4}, {"passes": 30},
        "rank 0 normalizes in half the time the rows that rank 1 asks for by send and recv",
        scale(0.5, op="normalize"), "normalize|aten::*"),
    "computed_shardedupdates2_two_changes": Pair(
        "mechanisms.sharded_updates", {"ranks": 2, "mbit": 1000, "elements": 60_000, "forward_ms": 14,
                                       "backward_ms": 24, "update_ms": 12, "computes": True},
        {"backward_ms": 12, "update_ms": 6}, "backward and updates of shards take half; matrices are multiplied",
        [*scale(0.5, op="timed::backward"), *scale(0.5, op="timed::update")], f"timed::*|{MM}"),
    "computed_drain_train_quarter": Pair(
        "mechanisms_threads.drained", {**THREADS, "train_ms": 160, "upload_ms": 80, "depth": 1, "computes": True},
        {"train_ms": 40}, "training multiplies a quarter as often; then it waits as a queue is full",
        scale(0.25, op="timed::train"), f"timed::train|{MM}"),
    # work that computes, on too few cores
    "crowdedmerge4_fetch_half": Pair(
        "mechanisms_threads.merged", {**THREADS, **CROWD, "fetch_ms": [60, 60, 60, 60], "merge_ms": 8, "train_ms": 30},
        {"fetch_ms": [30, 30, 30, 30]}, "four threads on two cores fetch in half the time; merged as they are done",
        scale(0.5, op="timed::fetch"), f"timed::fetch|{MM}"),
    "crowdedreplicas4_forward_half": Pair(
        "mechanisms_threads.replicas", {**THREADS, **CROWD, "forward_ms": [80, 80, 80, 80]},
        {"forward_ms": [40, 40, 40, 40]}, "four threads on two cores, which meet at a barrier, take half",
        scale(0.5, op="timed::forward"), f"timed::forward|{MM}"),
    "crowdedhogwild3_forward_half": Pair(
        "mechanisms_threads.hogwild", {**THREADS, **CROWD, "threads": 3, "forward_ms": 90, "update_ms": 20},
        {"forward_ms": 45}, "three threads on two cores train in half the time and update under a lock",
        scale(0.5, op="timed::forward"), f"timed::forward|{MM}"),
    "crowdedranks4_compute_half": Pair(
        "mechanisms_real.crowded_ranks", {"ranks": 4, "fair": True, "compute_ms": 50, "update_ms": 10},
        {"compute_ms": 25}, "four ranks on two cores compute half as much", scale(0.5, op="timed::compute"),
        f"timed::compute|{MM}"),
    "crowdedranks3_straggler": Pair(
        "mechanisms_real.crowded_ranks", {"ranks": 3, "fair": True, "compute_ms": 60, "update_ms": 15,
                                          "slow": {"1": 2.5}}, {"slow": {}},
        "rank 1 of three on two cores computes no more than the others", FIX, f"timed::compute|{MM}",
        {"straggler": 1}),
    "crowdedloader3_train_third": Pair(
        "mechanisms_real.crowded_loader", {"fair": True, "workers": 3, "passes": 80, "repeats": 18}, {"repeats": 6},
        "training takes a third beside three loader workers on two cores", scale(1 / 3, op="train"),
        f"train|aten::*|{LOADER}"),
    "crowdedloader3_loader_half": Pair(
        "mechanisms_real.crowded_loader", {"fair": True, "workers": 3, "passes": 200, "repeats": 6}, {"passes": 100},
        "three loader workers on two cores, which bind, take half", LOADER_HALF, LOADER, LOADS),
    "evaluatethread2_evaluate_removed": Pair(
        "mechanisms_real.evaluated_beside", {"ranks": 2, "mbit": 4000, "fair": True, **THREADS, "batch": 768,
                                            "evaluate": True},
        {"evaluate": False}, "a thread of rank 0 no longer takes a core from two ranks", remove(op="evaluate"),
        "evaluate|aten::*", {"straggler": 0}),
    "crowdedahead2_augment_half": Pair(
        "mechanisms_real.augmented_ahead", {"ranks": 2, "mbit": 4000, "fair": True, **THREADS, "augment_ms": 60,
                                            "repeats": 2}, {"augment_ms": 30},
        "a thread of each of two ranks, which share two cores, augments in half the time",
        scale(0.5, op="timed::augment"), f"timed::augment|{MM}"),
    "neighbours2_model_half": Pair(
        "mechanisms_outside.neighboured", {"fair": True, "neighbours": 2, "embed_ms": 20, "model_ms": 60},
        {"model_ms": 30}, "the model takes half beside two busy processes on two cores that are not recorded",
        scale(0.5, op="timed::model"), f"timed::model|{MM}"),
    "crowdedsplit3_weights_half": Pair(
        "mechanisms.split_backward", {"ranks": 3, "mbit": 2000, **CROWD, "stage_ms": [8, 8, 8],
                                      "weights_ms": [16, 16, 16]}, {"weights_ms": [8, 8, 8]},
        "gradients of weights take half in a pipeline of three ranks on two cores",
        scale(0.5, op="timed::stage_weights"), f"timed::stage_weights|{MM}"),
}  # fmt: skip
"""The pairs of mechanisms by name."""
