from __future__ import annotations

import numpy as np

from htagraph.simulate import REGIMES, Category, simulate


def test_only_what_runs_beside_a_collective_takes_longer() -> None:
    job = REGIMES["balanced"]().model_copy(update={"jitter": 0.0})
    alone, shared = (simulate(job.model_copy(update={"contention": share})) for share in (0.0, 0.5))
    for before, after in zip(alone.ranks, shared.ranks, strict=True):
        kernels = after.select(Category.KERNEL)
        talks = np.array(["nccl" in name for name in after.name[kernels]])
        compute, comm = kernels[~talks], kernels[talks]
        ratio = (after.end_ns - after.start_ns)[compute] / (before.end_ns - before.start_ns)[compute]
        beside = np.array([
            np.clip(np.minimum(end, after.end_ns[comm]) - np.maximum(start, after.start_ns[comm]), 0, None).sum()
            for start, end in zip(after.start_ns[compute], after.end_ns[compute], strict=True)
        ])  # fmt: skip
        share = beside / (after.end_ns - after.start_ns)[compute]
        assert ratio.min() > 0.99
        assert ratio.max() < 1.51
        settled = (share < 0.01) | (share > 0.99)  # what overlaps in part may change from round to round
        assert np.abs(ratio - 1 - 0.5 * share)[settled].max() < 0.02
        assert (share > 0.99).any()
    assert shared.mean_step_ns > alone.mean_step_ns
