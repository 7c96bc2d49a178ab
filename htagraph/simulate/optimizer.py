"""AdamW, as PyTorch launches it.

The factors on host and kernel time are chosen, to give the proportions of real traces; doubling one doubles that op.
"""

from htagraph.simulate import catalogue
from htagraph.simulate.rank import Rank


def optimizer(rank: Rank) -> None:
    """Run AdamW over the stage's parameters."""
    job, build = rank.job, rank.build
    build.section("optimizer")
    count = len(job.stage_layers(rank.place.stage))
    rank.python()
    if job.clip_grad:
        with build.named("aten::_foreach_norm", rank.host_ns):
            rank.kernel(catalogue.MULTI_TENSOR, 0.2 * job.kernel_us)
    build.optimizing = True
    frame = build.frame("torch/optim/adamw.py(210): step")
    with build.annotation("Optimizer.step#AdamW.step", 8e3), frame, rank.graph("optimizer"):
        {"foreach": foreach, "loop": loop, "fused": fused}[job.optimizer](rank, count)
    build.optimizing = False


def foreach(rank: Rank, layers: int) -> None:
    """Update several tensors per kernel."""
    for name in catalogue.FOREACH:
        rank.python()
        with rank.build.named(name, rank.host_ns * 2):
            for _ in range((layers + 3) // 4):
                rank.kernel(catalogue.MULTI_TENSOR, 0.25 * rank.job.kernel_us)


def loop(rank: Rank, layers: int) -> None:
    """Update one tensor after the other: many small kernels, which the host cannot launch fast enough."""
    for _ in range(layers * sum(op.parameters for op in catalogue.LAYER)):
        for name, kernel in catalogue.LOOP:
            rank.python(0.3)
            with rank.build.named(name, rank.host_ns * 0.7):
                rank.kernel(kernel, 2.4)


def fused(rank: Rank, layers: int) -> None:
    """Update everything with few kernels."""
    with rank.build.named("aten::_fused_adamw_", rank.host_ns * 3):
        for _ in range((layers + 3) // 4):
            rank.kernel(catalogue.FUSED_ADAM, 0.8 * rank.job.kernel_us)
