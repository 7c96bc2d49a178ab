"""Named jobs: one per regime that an analysis must distinguish, the demo, and jobs of any size.

Their numbers are chosen so that the regime is unmistakable, not to match a machine.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from htagraph.simulate.changes import SlowRank
from htagraph.simulate.job import Job, places
from htagraph.simulate.program import step

REGIMES: Final[dict[str, Callable[[], Job]]] = {
    # large kernels, a fast host and network: the device is always busy
    "gpu_bound": partial(Job, ranks=4, kernel_us=300.0, host_us_per_op=4.0, python_us=2.0, network_gb_s=300.0),
    # small kernels, a slow host, an optimizer that loops over tensors: the device waits for launches
    "host_bound": partial(
        Job, ranks=4, kernel_us=6.0, host_us_per_op=12.0, python_us=15.0, layer_mb=1.0, optimizer="loop"
    ),
    # a slow network: most of the gradients' all-reduce is exposed
    "communication_bound": partial(Job, ranks=4, kernel_us=60.0, network_gb_s=12.0, layer_mb=40.0),
    # one rank's compute kernels take 1.4 times as long: all others wait in collectives
    "straggler": partial(Job, ranks=4, slow_ranks=(SlowRank(rank=2, factor=1.4),)),
    # no single resource dominates
    "balanced": partial(Job, ranks=4, kernel_us=70.0, network_gb_s=50.0),
    # four stages, 1F1B, with bubbles
    "pipeline": partial(Job, ranks=4, parallelism="pipeline", layers=8, microbatches=6),
    # every layer is shared by four ranks: many small all-reduces on the critical path
    "tensor": partial(Job, ranks=4, parallelism="tensor", kernel_us=60.0),
}


def demo_job() -> Job:
    """Return the job of the demo traces: a straggler, exposed communication and a host-bound phase (data loading)."""
    return Job(
        ranks=4,
        steps=3,
        layers=2,
        kernel_us=150.0,
        network_gb_s=30.0,
        buckets=2,
        optimizer="loop",
        loader_us=1200.0,
        slow_ranks=(SlowRank(rank=2, factor=1.3),),
        clock_offsets_us=(0.0, 140.0, -60.0, 35.0),
        seed=7,
    )


def scale_job(events: int, *, ranks: int = 1) -> Job:
    """Return a job whose traces hold about `events` complete (X) events in all.

    About 10^3 to 10^8 events.

    Example:
        >>> scale_job(1_000_000).steps, scale_job(100_000, ranks=4).ranks
        (447, 4)
    """
    small = events // ranks < 20_000  # chosen: below, steps of 12 layers would be too few and too coarse
    job = Job(ranks=ranks, layers=2 if small else 12, steps=1)
    _, where = places(job)
    template = step(job, where[0])
    syncs = sum(bool(event.kind) and event.category.is_call for event in template.events)
    per_step = len(template.events) + syncs + len(template.annotated)
    return job.model_copy(update={"steps": max(1, round(events / ranks / per_step))})
