"""profile: PyTorch's profiler with the settings that the analyses need, for a few steps of a loop."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from htagraph.core.errors import HtagraphError, SelectionError, shown

__all__ = [
    "SETTINGS_KEY",
    "Plan",
    "TraceHandler",
    "plan_of",
    "profile",
    "running",
    "settings_as_json",
    "trace_handler",
    "usable_cores",
    "whole",
]

SETTINGS_KEY = "htagraph_profile"
"""Key in the trace under which a recording says how it was made."""

_RECORDING = threading.Lock()
"""Held while a recording is under way: PyTorch has one profiler per process, and two of ours end it with a fault."""


@contextmanager
def profile(
    steps: int | str = 3,
    out: str | os.PathLike[str] = "traces",
    *,
    warmup: int = 2,
    memory_snapshot: bool = False,
    execution_trace: bool = False,
    captures: bool = False,
    **options: Any,  # noqa: ANN401 - torch.profiler.profile's
) -> Iterator[Any]:
    """Record a few steps with PyTorch's profiler; each rank writes ``rank-N.json.gz`` into one folder.

    The recording has the host and each kind of device that this PyTorch supports, the shapes of operators' inputs, and
    the synchronization of devices where PyTorch can record it (2.1 and later). Call ``prof.step()`` at the end of each
    step. A file appears in the folder when the last of these steps is over and the file is whole; the job goes on. If
    an error or Ctrl-C ends the block sooner, the events recorded until then are written, and the error names the file.
    A process that the job forks writes nothing.

    Settings that slow the job are off unless you ask for them, since a job with a slower host is not the job in
    question: ``with_stack=True`` records calls of Python functions and modules, ``profile_memory=True`` allocations.
    ``with_modules=True`` records nothing without ``with_stack``, except in TorchScript; ``with_flops=True`` records
    shapes, from which `htagraph.roofline` computes operations. docs/recording.md says what each setting costs.

    Args:
        steps: how many steps to record, or which, counted from 0: ``"5-7"``. A number of steps is recorded after one
            step with the profiler off and `warmup` steps.
        out: the folder, made if it is not there. Files of the same rank in it are replaced.
        warmup: steps before the recorded ones with the profiler on, whose events are dropped.
        memory_snapshot: also write ``rank-N.memory.pickle``, the history of CUDA's allocator, see `htagraph.memory`.
        execution_trace: also write ``rank-N.execution_trace.json``, see `htagraph.execution_trace`.
        captures: also record step 0, in which CUDA graphs are warmed up and captured, into ``captures/rank-N.json.gz``
            inside the folder; `htagraph.load` takes that folder as its ``captures``.
        options: any other options of `torch.profiler.profile`, such as ``with_stack=True``; they replace the settings
            made here.

    Yields:
        The `torch.profiler.profile`.

    Raises:
        HtagraphError: PyTorch is not there, or cannot do what is asked for, another profiler is recording, or `out`
            is no folder that can be written to.
        SelectionError: `steps` names no steps, or none is left for `captures`.
        OSError: a file cannot be written.

    Example:
        >>> import htagraph as hg
        >>> with hg.profile(steps=3, out="traces/") as prof:  # doctest: +SKIP
        ...     for batch in loader:
        ...         train(batch)
        ...         prof.step()
    """
    plan = plan_of(steps, warmup)
    torch = _torch()
    chosen = _settings(torch, plan, options)
    with ExitStack() as extras:
        extras.enter_context(_only_recording(torch))
        handler = TraceHandler(folder_of(out), None)
        if captures:
            chosen["schedule"] = _with_captures(torch, plan, chosen["schedule"])
            handler.has_captures = True
            extras.enter_context(warnings.catch_warnings())  # PyTorch says that each recording has its own events
            warnings.filterwarnings("ignore", message=".*Profiler clears events")
        chosen["schedule"] = handler.noting_rank(chosen["schedule"])
        if execution_trace:
            observer = extras.enter_context(execution_trace_into(torch, handler))
            chosen["execution_trace_observer"] = observer
        if memory_snapshot:
            extras.enter_context(memory_snapshot_into(torch, handler))
        profiler = torch.profiler.profile(on_trace_ready=handler, **chosen)
        with running(profiler, handler):
            if hasattr(profiler, "preset_metadata_json"):  # PyTorch 2.2
                profiler.preset_metadata_json(SETTINGS_KEY, settings_as_json(torch, plan, chosen))
            yield profiler
    if handler.is_of_this_process():
        _warn_if_short(plan, getattr(profiler, "step_num", plan.end), handler)


@contextmanager
def _only_recording(torch: Any) -> Iterator[None]:  # noqa: ANN401
    """Keep other recordings of this process out."""
    if not _RECORDING.acquire(blocking=False):
        msg = (
            "htagraph.profile is recording already, in this process or the one that it was forked from: PyTorch has "
            "one profiler per process; end the other block first"
        )
        raise HtagraphError(msg)
    try:
        if hasattr(torch, "autograd") and getattr(torch.autograd, "_profiler_enabled", bool)():
            msg = (
                "another profiler of PyTorch is recording in this process, and there is one at a time: end it first, "
                "or give it hg.trace_handler as on_trace_ready"
            )
            raise HtagraphError(msg)
        yield
    finally:
        _RECORDING.release()


def _torch() -> Any:  # noqa: ANN401
    try:
        import torch.profiler
    except ImportError as error:
        msg = "htagraph.profile records with PyTorch, which is not installed here: pip install torch"
        raise HtagraphError(msg) from error
    return torch


def _settings(torch: Any, plan: Plan, options: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Return the options of `torch.profiler.profile`: ours, unless a caller has others."""
    if taken := {"schedule", "on_trace_ready"} & set(options):
        msg = f"{', '.join(sorted(taken))}: set by htagraph.profile; use torch.profiler.profile with hg.trace_handler"
        raise HtagraphError(msg)
    known = inspect.signature(torch.profiler.profile.__init__).parameters
    if unknown := set(options) - set(known):
        msg = f"torch.profiler.profile of PyTorch {torch.__version__} has no option {', '.join(sorted(unknown))}"
        raise HtagraphError(msg)
    schedule = torch.profiler.schedule(wait=plan.wait, warmup=plan.warmup, active=plan.active, repeat=1)
    chosen = {"schedule": schedule, "record_shapes": True, "experimental_config": _sync_events(torch)}
    return {name: value for name, value in chosen.items() if value is not None} | options


def _with_captures(torch: Any, plan: Plan, schedule: Callable[[int], Any]) -> Callable[[int], Any]:  # noqa: ANN401
    """Return a schedule that records step 0 as well, as a recording of its own."""
    if not plan.wait:
        msg = f"captures=True records step 0, which is warm-up of step {plan.first} already: record later steps"
        raise SelectionError(msg)
    save = torch.profiler.ProfilerAction.RECORD_AND_SAVE
    return lambda step: schedule(step) if step else save


def _sync_events(torch: Any) -> Any:  # noqa: ANN401
    """Return the setting that records when the host waits for a device, and for what; None if this PyTorch has none."""
    try:
        return torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    except (AttributeError, TypeError):  # experimental: it may have another name one day
        return None


def settings_as_json(torch: Any, plan: Plan, chosen: dict[str, Any]) -> str:  # noqa: ANN401
    """Return the settings of a recording, and the cores that its process may use, as they stand in its file."""
    plain = {name: value for name, value in chosen.items() if isinstance(value, bool | int | float | str)}
    settings = {"torch": str(torch.__version__), "steps": [plan.first, plan.end - 1], "warmup": plan.warmup, **plain}
    settings["sync_events"] = "experimental_config" in chosen
    settings["cores"] = usable_cores()
    return json.dumps(settings)


def usable_cores() -> list[int]:
    """Return the cores that this process may use, by the numbers of its host, which all its processes share."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 0))


def _warn_if_short(plan: Plan, made: int, handler: TraceHandler) -> None:
    """Warn if a loop ended before the steps were recorded; `made` is how often it called ``step()``."""
    if made >= plan.end:
        return
    wanted = f"steps {plan.first} to {plan.end - 1} were to be recorded"
    advice = "call prof.step() at the end of each step" if made == 0 else "record sooner, or run longer"
    last = f"what ran after the last prof.step() is in the file as step {made}"
    lost = last if handler.written[handler.has_captures :] else "no file was written"
    warnings.warn(f"{wanted}, but prof.step() was called {made} times: {lost}; {advice}", stacklevel=4)


_WAIT = 1
"""Steps that run before warm-up if only a number of steps is given. Chosen: the first step of a job allocates, tunes
and compiles, and says nothing of the others. Doubled, a recording begins one step later."""
_RANGE = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?")


@dataclass(frozen=True)
class Plan:
    """The steps of one recording, counted from 0 as ``ProfilerStep#0`` is."""

    wait: int
    """Steps with the profiler off."""
    warmup: int
    """Steps with the profiler on whose events are dropped: the first ones it sees are slowed by its own start."""
    active: int
    """Steps that are recorded."""

    @property
    def first(self) -> int:
        """The first recorded step."""
        return self.wait + self.warmup

    @property
    def end(self) -> int:
        """The step after the last recorded one."""
        return self.first + self.active


def plan_of(steps: int | str, warmup: int) -> Plan:
    """Return which steps are recorded.

    Steps are a number of them, or which: ``"5-7"`` or ``"5"``, counted from 0. A range that begins sooner than `warmup`
    steps has as many as there are before it.

    Example:
        >>> plan_of(3, 2)
        Plan(wait=1, warmup=2, active=3)
        >>> plan_of("5-7", 2)
        Plan(wait=3, warmup=2, active=3)
    """
    if not isinstance(warmup, int) or warmup < 0:
        msg = f"warmup={shown(warmup)}: a number of steps, 0 or more"
        raise SelectionError(msg)
    if isinstance(steps, str):
        return _range(steps, warmup)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        msg = f"steps={shown(steps)}: give how many steps to record, such as 3, or which, such as '5-7'"
        raise SelectionError(msg)
    return Plan(_WAIT, warmup, steps)


def _range(steps: str, warmup: int) -> Plan:
    ends = _RANGE.fullmatch(steps.strip())
    first = int(ends[1]) if ends else 0
    last = int(ends[2] or ends[1]) if ends else -1
    if last < first:
        msg = f"steps={shown(steps)}: give a range of steps such as '5-7', or one such as '5'; the first step is 0"
        raise SelectionError(msg)
    warmup = min(warmup, first)
    return Plan(first - warmup, warmup, last - first + 1)


@contextmanager
def running(profiler: Any, handler: TraceHandler) -> Iterator[None]:  # noqa: ANN401
    """Run a profiler while a block runs.

    An error of the block stays the error that is raised, also if the profiler cannot end after it, as after Ctrl-C in
    the middle of its own start; its notes say what was written. A forked process that leaves the block does not end the
    profiler, as the threads that it waits for are in the other process only: it would wait forever.
    """
    profiler.__enter__()
    try:
        yield
    except BaseException as error:
        if handler.is_of_this_process():
            _end_after(error, profiler, handler)
        raise
    if handler.is_of_this_process():
        profiler.__exit__(None, None, None)


def _end_after(error: BaseException, profiler: Any, handler: TraceHandler) -> None:  # noqa: ANN401
    before = len(handler.written)
    try:
        profiler.__exit__(type(error), error, error.__traceback__)
    except Exception as another:  # noqa: BLE001 - the error of the job is the one to see
        _note(error, f"htagraph.profile: the recording could not be written: {another}")
    for file in handler.written[before:]:
        _note(error, f"htagraph.profile: {file} has what was recorded until this was raised")


def _note(error: BaseException, text: str) -> None:
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(text)


_SNAPSHOT_ENTRIES = 100_000
"""Allocations and frees that a snapshot keeps, the last ones. Chosen: as in PyTorch's examples; a large model has some
thousand per step. Doubled, snapshots are up to twice as large."""


def _beside(handler: TraceHandler, suffix: str) -> Path:
    rank = rank_of_process() if handler.rank is None else handler.rank
    return handler.folder / f"rank-{rank}.{suffix}"


@contextmanager
def memory_snapshot_into(torch: Any, handler: TraceHandler) -> Iterator[None]:  # noqa: ANN401
    """Have CUDA's allocator keep its history, and write it at the end, if anything was recorded."""
    memory = torch.cuda.memory
    if not torch.cuda.is_available() or not hasattr(memory, "_record_memory_history"):
        msg = "memory_snapshot=True needs a CUDA device and PyTorch 2.1 or later; use profile_memory=True instead"
        raise HtagraphError(msg)
    memory._record_memory_history(max_entries=_SNAPSHOT_ENTRIES)
    try:
        yield
        if handler.written:
            with whole(_beside(handler, "memory.pickle")) as part:
                memory._dump_snapshot(str(part))
    finally:
        memory._record_memory_history(enabled=None)


@contextmanager
def execution_trace_into(torch: Any, handler: TraceHandler) -> Iterator[Any]:  # noqa: ANN401
    """Give an observer that writes an execution trace of the steps that are recorded."""
    if "execution_trace_observer" not in inspect.signature(torch.profiler.profile.__init__).parameters:
        msg = f"execution_trace=True: the profiler of PyTorch {torch.__version__} cannot; it came with 2.2"
        raise HtagraphError(msg)
    with whole(_beside(handler, "execution_trace.json")) as part:
        observer = torch.profiler.ExecutionTraceObserver()
        observer.register_callback(str(part))
        try:
            yield observer
        finally:
            observer.unregister_callback()


_LEVEL = 6
"""Level of gzip. Measured on 8.5 MB of `data/gloo_ddp`: 6 takes 0.14 s and 9, Python's own choice, 0.50 s for files
that are a ninth smaller; every rank waits while its file is written. Halved, 0.06 s and a third larger."""
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Environment variables that say the rank of a process: of torchrun, Slurm, Open MPI, and MPICH."""


def folder_of(out: str | os.PathLike[str]) -> Path:
    """Return the folder for the files of all ranks, made if it is not there, or raise an error before the job runs."""
    if not os.fspath(out):
        msg = "out='': give a folder, such as out='traces'; '.' is the current one"
        raise HtagraphError(msg)
    folder = Path(out).expanduser()
    if not os.fspath(out).isprintable():  # PyTorch drops them from the names of its files
        msg = f"out={shown(os.fspath(out))}: has a line break or another letter that is not shown; give another folder"
        raise HtagraphError(msg)
    if folder.name.endswith((".json", ".gz", ".pickle")):
        msg = f"out={shown(os.fspath(out))}: give a folder: every rank writes a file of its own into it"
        raise HtagraphError(msg)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "is a file" if isinstance(error, FileExistsError) else error.strerror or str(error)
        msg = f"out={shown(os.fspath(out))}: {why}; give a folder that this process may make and write to"
        raise HtagraphError(msg) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"out={shown(os.fspath(out))}: this process may not write there; give another folder"
        raise HtagraphError(msg)
    return folder


def rank_of_process() -> int:
    """Return this process's rank: in `torch.distributed` if that is initialized, else in the environment, else 0."""
    texts = [os.environ.get(name, "") for name in _RANK_VARIABLES]
    known = (int(text) for text in texts if text.isascii() and text.isdigit())
    return next(known, 0) if (rank := rank_in_group()) is None else rank


def rank_in_group() -> int | None:
    """Return this process's rank in `torch.distributed`, or None if that is not initialized."""
    try:
        from torch import distributed
    except ImportError:
        return None
    return int(distributed.get_rank()) if distributed.is_available() and distributed.is_initialized() else None


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Give a path to write to; it is renamed to the target if it is there and all went well, and removed if not.

    Its name does not end as a trace's does, so that what is half written is not read for a trace.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    process = os.getpid()
    part = target.with_name(f".{target.name}.{process}.part")
    try:
        yield part
        if part.exists() and os.getpid() == process:
            part.replace(target)
    finally:
        if os.getpid() == process:  # one that was forked meanwhile has no part in it
            part.unlink(missing_ok=True)


def write_packed(target: Path, export: Callable[[str], object]) -> None:
    """Write what a function exports as a file of gzip, whole or not at all.

    `export` writes text to the path that it is given.
    """
    with whole(target) as packed:
        plain = packed.with_name(f"{packed.name}.text")
        try:
            export(str(plain))
            with (
                plain.open("rb") as text,
                packed.open("wb") as file,
                gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as pack,
            ):
                shutil.copyfileobj(text, pack)
        finally:
            plain.unlink(missing_ok=True)


class TraceHandler:
    """Writes each recording that it is called with into a folder."""

    def __init__(self, folder: Path, rank: int | None) -> None:
        self.folder = folder
        self.rank = rank
        self.written: list[Path] = []
        """The files that were written, in order."""
        self.has_captures = False
        """Whether the first recording is that of captures, which has a folder of its own."""
        self._began, self._process = time.time(), os.getpid()
        self._noted: int | None = None

    def __call__(self, profiler: Any) -> None:  # noqa: ANN401 - torch.profiler.profile
        """Write what a profiler has recorded."""
        if _is_empty(profiler):
            warnings.warn(
                "no file was written: another profiler of PyTorch ran while this one recorded, and there is one at a "
                "time; what this one had recorded is lost", stacklevel=2,
            )  # fmt: skip
            return
        number = len(self.written) + (not self.has_captures)
        folder = self.folder if number == 1 else self.folder / (f"recording-{number}" if number else "captures")
        known = self.rank if self.rank is not None else rank_in_group()
        known = self._noted if known is None else known
        target = folder / f"rank-{rank_of_process() if known is None else known}.json.gz"
        if target.exists() and target.stat().st_mtime > self._began:  # then two processes have the same rank
            advice = "call init_process_group before, or set RANK"
            warnings.warn(f"{target} was just written by another process and is replaced: {advice}", stacklevel=2)
        write_packed(target, profiler.export_chrome_trace)
        self.written.append(target)

    def is_of_this_process(self) -> bool:
        """Return whether this process made the handler, rather than one that it was forked from."""
        return self._process == os.getpid()

    def noting_rank(self, schedule: Callable[[int], Any]) -> Callable[[int], Any]:
        """Return a profiler's schedule that notes the rank as each step begins.

        A job may leave its process group before the recording is written, and nothing else may know the rank then.
        """

        def noting(step: int) -> Any:  # noqa: ANN401 - torch.profiler.ProfilerAction
            rank = rank_in_group()
            self._noted = self._noted if rank is None else rank
            return schedule(step)

        return noting


def _is_empty(profiler: Any) -> bool:  # noqa: ANN401
    """Return whether a profiler has lost its recording; PyTorch ends the process if that is written."""
    results = getattr(getattr(profiler, "profiler", None), "kineto_results", None)
    start = getattr(results, "trace_start_ns", None)
    return start is not None and start() == 0


def trace_handler(out: str | os.PathLike[str] = "traces", *, rank: int | None = None) -> Callable[[Any], None]:
    """Return what `torch.profiler.profile` calls as ``on_trace_ready``: it writes a file per rank, packed and whole.

    For profilers that are set up elsewhere: by hand, or by Lightning, Hugging Face or another framework. A schedule
    that repeats gives several recordings; the second one is written to ``recording-2/`` inside the folder, and so on,
    because files in one folder are one job.

    Args:
        out: the folder, made if it is not there. Files of the same rank in it are replaced.
        rank: the rank of this process; if not given, the rank in `torch.distributed` at the time of writing, else in
            the environment (``RANK``, ``SLURM_PROCID``, ``OMPI_COMM_WORLD_RANK``, ``PMI_RANK``), else 0.

    Returns:
        A function of the profiler.

    Raises:
        HtagraphError: `out` is no folder that can be written to.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> handler = hg.trace_handler(tempfile.mkdtemp())
        >>> torch.profiler.profile(record_shapes=True, on_trace_ready=handler)  # doctest: +SKIP
    """
    return TraceHandler(folder_of(out), rank)
