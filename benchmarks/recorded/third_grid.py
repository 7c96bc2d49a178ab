"""Pairs by a third grid of mechanisms, of kinds that neither grid before it has: who waits for whom through what.

| pair | who waits | for whom | through what | bound in A | cores |
|---|---|---|---|---|---|
| eventloop2_model_half | main thread, a thread | an asyncio loop in a thread | `run_coroutine_threadsafe`, a batching window | yes | free |
| eventloop2_prepare_quarter | an asyncio loop | main thread; a client in B | the same window, never run out | yes; a client in B | free |
| ownqueues3_heavy_half | main thread, threads | threads | a deque per thread, steals from the longest, `Barrier` | yes | free |
| waiters3_encode_half | main thread | three threads | `Condition.notify` of one of three waiters | yes | free |
| waiters3_split_quarter | three threads | main thread | the same; the threads bind in B | yes; they in B | free |
| inorder2_fetch_half | main thread | a pool of two | futures taken in the order of their submission | partly | free |
| backpressure3_write_quarter | main thread | the second of two threads in a row | two full queues | yes; the first in B | free |
| backpressure3_train_third | main thread | the first of two threads in a row | the same; none was full | no | free |
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
| taskfarm3_large_half | ranks 1 and 2 | rank 0, and it for them | tasks to whoever asks first, `recv` of any | yes | free |
| fullpipe2_train_third | rank 0 | rank 1 | a named pipe that is full | yes; the other way in B | free |
| computed_lookahead2_train_third | rank 1 | rank 0 | rows asked for two steps ahead, `irecv` | no | free |
| crowdedlastdone4_leaf_half | main thread | four threads | a tree: the last to come goes up | yes | 4 threads for 2 |
| crowdedwaiters3_encode_half | main thread | three threads | `Condition.notify` of one of three waiters | yes | 3 threads for 2 |
| crowdedaccumulate3_backward_half | ranks | ranks | `all_reduce` in the last micro-batch | yes | 3 ranks for 2 |
"""

from __future__ import annotations
