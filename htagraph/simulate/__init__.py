"""A simulator of training jobs: Kineto traces whose dependencies and times are known.

It is an oracle for the rest of this package, so it shares no code with it: a job (`Job`) is compiled into each
rank's host program, executed in exact integer nanoseconds (`simulate`), and written as Kineto would write it,
together with the dependencies that really held (`Simulated.truth`).

    >>> from htagraph.simulate import Job, ScaleKernels, simulate
    >>> job = Job(ranks=2, steps=2, layers=2)
    >>> slower = job.model_copy(update={"changes": (ScaleKernels(name="*gemm*", factor=2.0),)})
    >>> simulate(slower).mean_step_ns > simulate(job).mean_step_ns
    True
"""

from htagraph.simulate.codes import Category
from htagraph.simulate.engine import CoreWait
from htagraph.simulate.job import (
    REGIMES,
    Change,
    Era,
    Job,
    RemoveKernels,
    RemoveSync,
    ScaleHost,
    ScaleKernels,
    ScaleLaunches,
    ScaleLoader,
    ScaleNetwork,
    ScaleOptimizer,
    SetNetwork,
    SlowRank,
    demo_job,
)
from htagraph.simulate.simulated import RankEvents, Simulated, scale_job, simulate, write_stream
from htagraph.simulate.truth import MOMENTS, Collective, Dependency, FileClock, Member, Step, Truth, read_truth

__all__ = [
    "MOMENTS", "REGIMES", "Category", "Change", "Collective", "CoreWait", "Dependency", "Era", "FileClock", "Job",
    "Member", "RankEvents", "RemoveKernels", "RemoveSync", "ScaleHost", "ScaleKernels", "ScaleLaunches", "ScaleLoader",
    "ScaleNetwork", "ScaleOptimizer", "SetNetwork", "Simulated", "SlowRank", "Step", "Truth", "demo_job", "read_truth",
    "scale_job", "simulate", "write_stream",
]  # fmt: skip
