"""profile: PyTorch's profiler with the settings that the analyses need, for a few steps of a loop."""

from __future__ import annotations

import inspect
import json
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from htagraph.core.errors import HtagraphError
from htagraph.trace.recording.extras import execution_trace_into, memory_snapshot_into
from htagraph.trace.recording.files import folder_of
from htagraph.trace.recording.plan import Plan, plan_of
from htagraph.trace.recording.trace_handler import TraceHandler

__all__ = ["SETTINGS_KEY", "profile"]

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
    **options: Any,  # noqa: ANN401 - torch.profiler.profile's
) -> Iterator[Any]:
    """Record a few steps with PyTorch's profiler; each rank writes ``rank-N.json.gz`` into one folder.

    Recorded are the host and each kind of device that this PyTorch has, shapes of operators' inputs, and
    synchronization of devices where PyTorch can (2.1 and later). Call ``prof.step()`` at the end of each step. A file
    appears in the folder when the last of these steps is over and the file is whole; the job goes on.

    What slows the job is left out unless it is asked for, since a slower host is another job than the one in question:
    ``with_stack=True`` records calls of Python functions and modules, ``profile_memory=True`` allocations.
    ``with_modules=True`` records nothing without ``with_stack``, except in TorchScript; ``with_flops=True`` records
    shapes, from which `htagraph.roofline` computes operations. docs/recording.md has what each costs.

    Args:
        steps: how many steps to record, or which, counted from 0: ``"5-7"``. A number of steps is recorded after one
            step with the profiler off and `warmup` steps.
        out: the folder, made if it is not there. Files of the same rank in it are replaced.
        warmup: steps before the recorded ones with the profiler on, whose events are dropped.
        memory_snapshot: also write ``rank-N.memory.pickle``, the history of CUDA's allocator, see `htagraph.memory`.
        execution_trace: also write ``rank-N.execution_trace.json``, see `htagraph.execution_trace`.
        options: any other of `torch.profiler.profile`, such as ``with_stack=True``; they replace what is set here.

    Yields:
        The `torch.profiler.profile`.

    Raises:
        HtagraphError: PyTorch is not there, or cannot do what is asked for, another recording is under way, or `out`
            is no folder that can be written to.
        SelectionError: `steps` are no steps.
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
    handler = TraceHandler(folder_of(out), None)
    chosen = _settings(torch, plan, options)
    with ExitStack() as extras:
        extras.enter_context(_only_recording())
        if execution_trace:
            observer = extras.enter_context(execution_trace_into(torch, handler))
            chosen["execution_trace_observer"] = observer
        if memory_snapshot:
            extras.enter_context(memory_snapshot_into(torch, handler))
        with torch.profiler.profile(on_trace_ready=handler, **chosen) as profiler:
            if hasattr(profiler, "preset_metadata_json"):  # PyTorch 2.2
                profiler.preset_metadata_json(SETTINGS_KEY, _as_json(torch, plan, chosen))
            yield profiler
    _warn_if_short(plan, getattr(profiler, "step_num", plan.end), handler)


@contextmanager
def _only_recording() -> Iterator[None]:
    """Keep other recordings of this process out.

    Raises:
        HtagraphError: one is under way.
    """
    if not _RECORDING.acquire(blocking=False):
        msg = "htagraph.profile is recording already: PyTorch has one profiler per process; end the other block first"
        raise HtagraphError(msg)
    try:
        yield
    finally:
        _RECORDING.release()


def _torch() -> Any:  # noqa: ANN401
    """Return PyTorch.

    Raises:
        HtagraphError: it is not installed.
    """
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
    chosen = {"schedule": schedule, "record_shapes": True}
    sync_events = _sync_events(torch)
    if sync_events is not None:
        chosen["experimental_config"] = sync_events
    return chosen | options


def _sync_events(torch: Any) -> Any:  # noqa: ANN401
    """Return the setting that records when the host waits for a device, and for what; None if this PyTorch has none."""
    try:
        return torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    except (AttributeError, TypeError):  # experimental: it may have another name one day
        return None


def _as_json(torch: Any, plan: Plan, chosen: dict[str, Any]) -> str:  # noqa: ANN401
    plain = {name: value for name, value in chosen.items() if isinstance(value, bool | int | float | str)}
    settings = {"torch": str(torch.__version__), "steps": [plan.first, plan.end - 1], "warmup": plan.warmup, **plain}
    settings["sync_events"] = "experimental_config" in chosen
    return json.dumps(settings)


def _warn_if_short(plan: Plan, made: int, handler: TraceHandler) -> None:
    """Warn if a loop ended before the steps were recorded; `made` is how often it called ``step()``."""
    if made >= plan.end:
        return
    wanted = f"steps {plan.first} to {plan.end - 1} were to be recorded"
    advice = "call prof.step() at the end of each step" if made == 0 else "record sooner, or run longer"
    last = f"what ran after the last prof.step() is in the file as step {made}"
    lost = last if handler.written else "no file was written"
    warnings.warn(f"{wanted}, but prof.step() was called {made} times: {lost}; {advice}", stacklevel=4)
