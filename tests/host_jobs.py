"""Traces of jobs that communicate on the host (gloo), by hand: what c10d's operators and gloo's threads record."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import htagraph as hg
from htagraph import DependencyGraph
from tests.strategies import BASE_NS, Json, Number, annotation, op

_FOLDER = tempfile.TemporaryDirectory()
LEAD = 0.05
"""µs from the start of an operator of c10d to the record of what it sends or receives."""


def tensor_args(count: int, *scalars: object, shapes: bool = True) -> Json:
    """Return the arguments of an operator of c10d on one list of one tensor, a group and scalars."""
    if not shapes:
        return {}
    return {
        "Concrete Inputs": ["", "", *map(str, scalars)],
        "Input type": ["TensorList", "", *["Scalar"] * len(scalars)],
        "Input Dims": [[[count]], [], *[[] for _ in scalars]],
    }


def transfer(
    word: str,
    peer: int,
    start: Number,
    end: Number,
    *,
    count: int = 16,
    tag: int = 0,
    shapes: bool = True,
    asked: Number = 0.1,
) -> list[Json]:
    """Return the operator and the record of a send or receive that lasts from `start` to `end`, µs."""
    name = "c10d::send" if word == "send" else "c10d::recv_"
    recorded = annotation(f"gloo:{word}", start, end - start)
    recorded["args"] = {"Input Dims": [[count]], "Input type": ["float"]} if shapes else {}
    call = op(name, start - asked, asked + LEAD, **tensor_args(count, peer, tag, shapes=shapes))
    return [call, recorded]


def host_job(
    job: Mapping[int, Sequence[Json]], groups: Sequence[Sequence[int]] = (), backend: str = "gloo", cores: int = 0
) -> DependencyGraph:
    """Return the graph of a job whose ranks are in some process groups; of one group of all ranks if none are given.

    The files say how many cores the ranks may use, unless that is 0.
    """
    folder = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    everybody = list(groups) or [sorted(job)]
    paths = {}
    for rank, events in job.items():
        own = [(i, ranks) for i, ranks in enumerate(everybody) if rank in ranks]
        config = [
            {"pg_name": str(i), "pg_desc": "default_pg", "backend_config": f"cpu:{backend}", "pg_size": len(ranks),
             "ranks": list(ranks)}
            for i, ranks in own
        ]  # fmt: skip
        size = max(map(len, everybody))
        info = {"backend": backend, "rank": rank, "world_size": size, "pg_count": len(config), "pg_config": config}
        header = {"schemaVersion": 1, "distributedInfo": info, "host_name": "one", "baseTimeNanoseconds": BASE_NS}
        header |= {"htagraph_profile": {"cores": list(range(cores))}} if cores else {}
        paths[rank] = folder / f"rank-{rank}.json"
        paths[rank].write_text(json.dumps({**header, "traceEvents": list(events)}), encoding="utf-8")
    return hg.load(paths)
