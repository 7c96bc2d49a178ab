"""Reach of a remedy: the part of the replaced time that stays when a person follows the advice, with its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

from htagraph.findings.change import Gain

__all__ = ["MODELLED", "NODE_US", "REACH", "Reach", "within"]


class Reach(NamedTuple):
    """The part of the replaced time that stays, as a share: at least, likely, and at most."""

    least: float
    """Less than 0 where work beside the replaced time becomes shorter, too."""
    likely: float
    """The share in the prediction of the change."""
    most: float
    source: str
    """The measurement, or the law, behind the shares."""


MODELLED: Final = Reach(0.0, 0.0, 0.0, "the prediction computes what stays")
"""The change says by itself which time stays: of a link, of a row of kernels, of a loader that keeps up."""
Measured: TypeAlias = Literal[
    "optimizer",
    "single precision",
    "below the roof",
    "calls",
    "loops",
    "attention",
    "convolutions",
    "random numbers",
    "wide gradients",
    "late reductions",
]
"""The remedies whose predictions take a share of a time away that nobody knows exactly."""
REACH: Final[dict[Measured, Reach]] = {
    "optimizer": Reach(
        0.1,
        0.25,
        0.45,
        "measured: host time with fused=True beside foreach and beside a loop, of Adam and SGD with 50 and 150 "
        "parameters (PyTorch 2.13); kernels take as long as together, which is the most that one kernel takes",
    ),
    "single precision": Reach(
        0.125,
        0.5,
        0.67,
        "data sheets: 16 bits or TF32 are at most 8 times as fast by rate, and half of the bytes bound the others; "
        "chosen: products of small sizes become 1.5 times as fast",
    ),
    "below the roof": Reach(0.5, 0.5, 1.0, "half of a peak is what tuned kernels reach; other kernels may be as slow"),
    "calls": Reach(0.0, 0.0, 0.5, "bytes are less than half of the time of these calls, which is how they are found"),
    "attention": Reach(
        -0.5,
        0.0,
        0.35,
        "measured: scaled_dot_product_attention in place of these operators, in training of a small GPT on a CPU, four "
        "runs each: 4.5 to 6.6 ms less per step where these took 4.4 ms, as products write and read no scores either; "
        "chosen: products that become a fifth slower inside the fused kernel",
    ),
    "late reductions": Reach(
        0.0,
        0.0,
        0.3,
        "measured: buckets of DistributedDataParallel beside one reduction behind the backward pass, of two jobs on "
        "hosts: 98 % and 77 % of the predicted time was saved, as a bucket waits until its last gradient is ready",
    ),
    "wide gradients": Reach(
        0.5,
        0.5,
        0.65,
        "half of the bytes. Measured: 99 % of the predicted time was saved on one job on hosts with large buckets; "
        "chosen: latencies, and the conversions on each rank, take up to a third of that",
    ),
    "convolutions": Reach(0.33, 0.67, 1.0, "chosen: the kernel that the library took may be its fastest one"),
    "random numbers": Reach(0.0, 0.0, 0.1, "chosen: devices write random numbers as fast as any other ones"),
    "loops": Reach(0.0, 0.0, 0.1, "chosen: a few operators in place of a thousand"),
}
"""The shares that stay, by remedy."""
NODE_US: Final = 1.3
"""Host time per kernel of a CUDA graph that is launched, µs. Measured: median over recordings of an RTX 3060, an A100,
an H100 and an MI300X (0.75 to 1.9); V100 took 3. Doubled, graphs of kernels as short as their launch gain less."""


def within(gain: Gain, reach: Reach) -> Gain:
    """Return a gain with the interval of the time that may stay.

    The time of a job is convex in the time of its parts: a smaller share of a change gains at least that share, and a
    larger one at most that multiple.

    Args:
        gain: the gain where the likely share stays.
        reach: the shares.

    Example:
        >>> gain = Gain(300.0, 300.0, 300.0, steps=0, makespan_us=1000.0)
        >>> wide = within(gain, Reach(0.0, 0.25, 0.5, "a guess"))
        >>> wide.low_us, wide.high_us
        (200.0, 400.0)
    """
    taken = 1 - reach.likely
    low_us = gain.low_us * (1 - reach.most) / taken
    high_us = min(gain.high_us * (1 - reach.least) / taken, gain.makespan_us)
    return replace(gain, low_us=min(low_us, gain.value_us), high_us=max(high_us, gain.value_us))
