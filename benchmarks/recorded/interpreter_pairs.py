"""Pairs of jobs whose threads run Python at once: they take turns in the interpreter, which no event records.

| pair | who waits | for whom | in Python at once in A |
|---|---|---|---|
| interpreter2_prepare_third | main thread | a thread | both |
| interpreter2_collate_third | main thread | a thread | both |
| interpreter3_parse_half | main thread | a pool of three | the pool's threads |
| interpreter2_train_half | main thread | nobody | nobody for long |
"""

from __future__ import annotations

from benchmarks.recorded.pair import Pair, scale

THREADS = {"all_threads": True}

INTERPRETER_PAIRS = {
    "interpreter2_prepare_third": Pair(
        "interpreter_threads.prepared_beside", {**THREADS, "prepare_ms": 30, "collate_ms": 24, "train_ms": 20},
        {"prepare_ms": 10}, "a thread prepares in a third of the time beside the main thread's Python",
        scale(1 / 3, op="prepare"), "prepare"),
    "interpreter2_collate_third": Pair(
        "interpreter_threads.prepared_beside", {**THREADS, "prepare_ms": 45, "collate_ms": 24, "train_ms": 10},
        {"collate_ms": 8}, "the main thread collates in a third of the time beside a thread's Python, which binds",
        scale(1 / 3, op="collate"), "collate"),
    "interpreter3_parse_half": Pair(
        "interpreter_threads.parsed_by_pool", {**THREADS, "parse_ms": [16, 22, 28], "train_ms": 20},
        {"parse_ms": [16, 22, 14]}, "the longest of three parts that are parsed in Python at once takes half",
        scale(0.5, op="parse 2"), "parse 2"),
    "interpreter2_train_half": Pair(
        "interpreter_threads.prepared_beside", {**THREADS, "prepare_ms": 20, "collate_ms": 2, "train_ms": 40},
        {"train_ms": 20}, "training takes half while a thread prepares in Python, and the main thread hardly does",
        scale(0.5, op="timed::train"), "timed::train"),
}  # fmt: skip
"""The pairs of threads in one interpreter by name."""
