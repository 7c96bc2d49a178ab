"""Jobs that are recorded with the real PyTorch: run by a Python that has it, and perhaps little else.

python torch_job.py ranks OUT RANKS      a DistributedDataParallel job with everything recorded
python torch_job.py variants OUT         one process, with each setting off in turn, and errors of use
python torch_job.py ends OUT             one process, with each way in which a recording ends too soon
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

if importlib.util.find_spec("lazy_loader") is None:  # the recorder alone
    package = types.ModuleType("htagraph")
    package.__path__ = [str(Path(__file__).parents[3] / "htagraph")]
    sys.modules["htagraph"] = package
sys.path.insert(0, str(Path(__file__).parents[3]))

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

from htagraph.core.errors import HtagraphError
from htagraph.trace.recording import profile, trace_handler

ALL = {"with_stack": True, "profile_memory": True}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 32)
        self.second = nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


def train(model: nn.Module, steps: int, prof: Any = None) -> None:
    for _ in range(steps):
        model(torch.randn(4, 32)).sum().backward()
        if prof is not None:
            prof.step()


def run_rank(rank: int, out: str, ranks: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{out}.store", rank=rank, world_size=ranks)
    model = nn.parallel.DistributedDataParallel(Model())
    with profile(steps="2-4", out=out, execution_trace=rank == 0, **ALL) as prof:
        train(model, 6, prof)
    dist.destroy_process_group()


def variants(out: Path) -> None:
    torch.set_num_threads(1)
    model = Model()
    for name, options in {
        "all": ALL,
        "no_shapes": ALL | {"record_shapes": False},
        "no_stack": ALL | {"with_stack": False},
        "only_with_modules": {"with_modules": True},
        "no_memory": ALL | {"profile_memory": False},
        "plain": {},
    }.items():
        with profile(steps=2, warmup=1, out=out / name, **options) as prof:
            train(model, 4, prof)
    with torch.profiler.profile(record_shapes=True, on_trace_ready=trace_handler(out / "no_steps")):
        train(model, 2)
    for name, made in {"never": 0, "early": 2, "half": 4, "enough": 6}.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with profile(steps=3, out=out / name) as prof:
                train(model, made, prof)
        said = [str(each.message) for each in caught if "prof.step" in str(each.message)]
        (out / name / "warnings.txt").write_text("\n".join(said))


def end(name: str, model: nn.Module, out: Path) -> None:
    """Record while a block ends in a way that it should not."""
    around = torch.profiler.profile() if name == "profiler around" else nullcontext()
    with around, profile(steps=2, warmup=1, out=out) as prof:
        if name == "left the group":
            dist.init_process_group("fake", rank=5, world_size=8, store=FakeStore())
        for step in range(4):
            train(model, 1)
            if name.startswith("raises") and step == (0 if name == "raises early" else 3):
                raise ZeroDivisionError
            if name == "profiler inside" and step == 2:
                with torch.profiler.profile():
                    train(model, 1)
            if name == "forked" and step == 2 and not os.fork():
                sys.exit()
            if name == "left the group" and step == 3:
                dist.destroy_process_group()
            prof.step()


def ends(out: Path) -> None:
    torch.set_num_threads(1)
    model, process = Model(), os.getpid()
    for name in ("raises", "raises early", "profiler inside", "profiler around", "forked", "left the group"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            said: list[str] = []
            try:
                end(name, model, out / name)
            except (ZeroDivisionError, HtagraphError, RuntimeError) as error:  # PyTorch 2.11: two profilers
                said = [*([str(error)] if str(error) else []), *getattr(error, "__notes__", [])]
            except SystemExit:
                if os.getpid() != process:
                    os._exit(0)  # PyTorch's own threads keep a forked process from ending
                raise
        said += [str(each.message) for each in caught if "profiler" in str(each.message)]
        (out / name).mkdir(parents=True, exist_ok=True)
        (out / name / "said.txt").write_text("\n".join(said))


if __name__ == "__main__":
    what, target = sys.argv[1], sys.argv[2]
    if what == "ranks":
        mp.spawn(run_rank, args=(target, int(sys.argv[3])), nprocs=int(sys.argv[3]))
    else:
        {"variants": variants, "ends": ends}[what](Path(target))
