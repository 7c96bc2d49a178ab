"""What an export says of its recording: processes that are ranks, devices, clock, host, and settings that it lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from htagraph.trace.columns import MAX_RANKS, Device, Facts
from htagraph.trace.kept import YEAR_NS
from htagraph.trace.nsys.database import Database, opened
from htagraph.trace.nsys.rows import SOURCES
from htagraph.trace.remote import TracePath

__all__ = ["SETTINGS", "WITHOUT_PYTORCH", "facts_of", "survey"]

SETTINGS: Mapping[str, str] = {
    "device": "nsys profile -t cuda",
    "steps": "torch.cuda.nvtx.range_push(f'step {i}') and range_pop() around each step, nsys profile -t cuda,nvtx",
    "no_steps": "no NVTX range repeats and covers the job",
    "ranks": "a report of every rank, or one of all processes of a host",
    "shapes": "torch.autograd.profiler.emit_nvtx(record_shapes=True), nsys profile -t cuda,nvtx",
    "modules": "PyTorch's profiler and with_stack=True",
    "memory": "PyTorch's profiler and profile_memory=True",
    "records": "nsys profile --cuda-event-trace=true",
    "regions": "torch.cuda.nvtx.range_push('name') and range_pop()",
    "step": "around each step",
    "host": "nsys profile -t cuda,nvtx",
    "operators": "nsys profile -t cuda,nvtx, and NVTX ranges around the operators",
    "graphs": "nsys profile --cuda-graph-trace=node",
    "lost_device": "",
}
"""What to record with, see `htagraph.trace.readers.Reader`."""
WITHOUT_PYTORCH: Mapping[str, str] = {
    "steps": "nvtxRangePush and nvtxRangePop around each step, nsys profile -t cuda,nvtx",
    "regions": "nvtxRangePush and nvtxRangePop",
    "shapes": "",
    "modules": "",
    "memory": "",
}
"""Settings for programs without PyTorch, in place of PyTorch's; empty for facts of PyTorch alone."""

_RANKS: Final = (
    ("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)  # fmt: skip
"""Variables in which launchers say a process's rank and the size of the job, if nsys was started once per rank."""
_ENVIRONMENT: Final = "DeviceEnvironment"


def survey(path: TracePath, *, and_tail: bool) -> Facts:
    """Return the facts of an export."""
    with opened(path) as database:
        return facts_of(database)


def facts_of(database: Database) -> Facts:
    """Return the facts of an open export."""
    system = _pairs(database, "TARGET_INFO_SYSTEM_ENV")
    processes = _processes(database)
    rank, size = _rank(system) if len(processes) < 2 else (None, 0)
    host = str(system.get("Hostname") or "")
    names = {key: name for key, name in database.pairs("TARGET_INFO_GPU", "id", "name").items() if isinstance(key, int)}
    devices = tuple(Device(number, str(name or "")) for number, name in sorted(names.items()))
    return Facts(
        rank=rank, world_size=size, host=host or (str(database.path) if len(processes) > 1 else ""),
        run=f"world size {size}" if size else "", devices=devices, base_ns=_base(database),
        has_shapes=_has_shapes(database), on_cuda=any(database.count(source.table) for source in SOURCES[:5]),
        processes=processes, names_records=database.count("CUPTI_ACTIVITY_KIND_CUDA_EVENT") > 0,
        lacks=_lacks(database), written=_written(database),
    )  # fmt: skip


def _pairs(database: Database, table: str) -> dict[str, str]:
    return {str(name): str(value) for name, value in database.pairs(table, "name", "value").items()}


def _processes(database: Database) -> tuple[int, ...]:
    """Return the processes that used a device, in the order of their ranks: by device if each has one, else by id."""
    devices: dict[int, set[int]] = {}
    for source in SOURCES:
        for process, device, _ in database.processes(source.table, "globalPid", "deviceId") if source.on_device else ():
            devices.setdefault(process, set()).add(device if isinstance(device, int) else -1)
    single = [min(each) for each in devices.values()]
    apart = all(len(each) == 1 for each in devices.values()) and len({*single}) == len(single)
    return tuple(sorted(devices, key=lambda process: (min(devices[process]) if apart else 0, process)))


def _rank(system: Mapping[str, str]) -> tuple[int | None, int]:
    """Return (rank, size of the job) as the environment of nsys says them; (None, 0) if it does not."""
    environment = dict(re.findall(r"(?:^|;)([A-Z_]+)=(\d{1,7})(?=;|$)", system.get(_ENVIRONMENT, "")))
    for rank, size in _RANKS:
        if rank in environment and size in environment and 1 < int(environment[size]) <= MAX_RANKS:
            return int(environment[rank]), int(environment[size])
    return None, 0


def _base(database: Database) -> int | None:
    """Return the time that times count from, ns since 1970."""
    found = database.numbers("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)).get("utcEpochNs")
    if _first(database) > YEAR_NS:  # written with times that count from 1970 (``--ts-normalize``)
        return 0
    return int(found[0]) if found is not None and len(found) and found[0] > 0 else None


def _first(database: Database) -> int:
    for source in SOURCES:
        if "start" in database.columns.get(source.table, ()):
            found = database.rows(f"SELECT min(start) FROM \"{source.table}\" WHERE typeof(start) = 'integer'")
            if found[0][0] is not None:
                return int(found[0][0])
    return 0


def _has_shapes(database: Database) -> bool:
    """Return whether any range has shapes in its name, which is in its row or, if registered, among all texts."""
    return any(
        column in database.columns.get(table, ())
        and database.rows(f"SELECT 1 FROM {table} WHERE {column} LIKE '%, sizes = [%' LIMIT 1")
        for table, column in (("NVTX_EVENTS", "text"), ("StringIds", "value"))
    )


def _written(database: Database) -> dict[str, Any]:
    tables = ("META_DATA_CAPTURE", "META_DATA_EXPORT", "TARGET_INFO_SYSTEM_ENV")
    written: dict[str, Any] = {table: found for table in tables if (found := _pairs(database, table))}
    written.get("TARGET_INFO_SYSTEM_ENV", {}).pop(_ENVIRONMENT, None)  # it may hold passwords
    return written | {"PROCESSES": database.pairs("PROCESSES", "pid", "name")}


def _lacks(database: Database) -> tuple[tuple[str, str, str], ...]:
    """Return (question, why it has no full answer, what to record with) for what nsys could have recorded."""
    lacks = [
        (question, f"no {what} were recorded", f"nsys profile {setting}")
        for table, question, what, setting in (
            ("CUPTI_ACTIVITY_KIND_RUNTIME", "what the host does", "calls of CUDA", "-t cuda"),
            ("NVTX_EVENTS", "operators, regions", "NVTX ranges", "-t nvtx, emit_nvtx() or range_push() in the code"),
            ("OSRT_API", "waits for the operating system", "calls of the operating system", "-t osrt"),
        )
        if not database.count(table)
    ]
    whole = database.count("CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    if whole:
        why = f"{whole} launches of CUDA graphs were recorded as a whole: their kernels are unknown"
        lacks.append(("kernels of CUDA graphs", why, "nsys profile --cuda-graph-trace=node"))
    return tuple(lacks)
