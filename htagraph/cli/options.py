"""The options of all verbs, each declared once, and reading what they chose."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from htagraph.cli.writing import (
    Format,
    analysing,
    ended,
    ending,
    in_folder,
    of_known_form,
    of_known_form_or_figure,
    progress,
    refuse_table,
    table_asked,
    target,
)
from htagraph.core.computing import keep_memory
from htagraph.core.errors import Issue, TraceError, printable, shown
from htagraph.core.kinds import CATEGORIES
from htagraph.whatif.options import MAX_POINTS, duration_ns, numbers

if TYPE_CHECKING:
    from htagraph.cluster.job import DistributedJob
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["FAILED", "OPTIONS", "as_command", "chosen", "given", "read", "read_on", "say_noted", "window"]

FAILED = 3
"""Exit code where a limit of ``--fail-on`` is exceeded."""
_HARMLESS = frozenset(
    {
        "launch_missing",
        "negative_launch_latency",
        "no_window_end",
        "no_base_time",
        "python_not_read",
        "window_cuts",
    }
)
"""Issues that most healthy traces have, or that were asked for."""
_LOST = frozenset({"file_skipped", "rank_missing"})
"""Issues by which a part of the job is missing: these are told first."""
_OF_DEPENDENCIES = frozenset(
    {
        "recording_begins_late",
        "waits_unresolved",
        "edges_uncertain",
        "queued_behind_earlier_work",
    }
)
"""Issues about which work waits for which, and about when ranks begin."""
_OF_RECORDED_TIMES = frozenset(
    {
        "kernels",
        "memory",
        "launches",
        "counters",
        "patterns",
        "roofline",
        "phases",
        "execution_trace",
        "export",
    }
)
"""Verbs whose answers are of recorded times alone, without any wait."""
_MAX_REPEATED_PATHS = 4
"""Paths that a suggested command repeats; chosen: more make it unreadable. Doubled, it may fill several lines."""
_PLAIN = re.compile(r"\d+(\.\d*)?")


def _option(kind: Any, *names: str, **settings: Any) -> Any:  # noqa: ANN401 - a type, and what typer takes
    """Return an option of a type as typer reads it; without names, its name is that of the parameter."""
    return Annotated[kind, typer.Option(*names, **settings)]


def _argument(kind: Any, help_text: str, **settings: Any) -> Any:  # noqa: ANN401 - as above
    return Annotated[kind, typer.Argument(help=help_text, **settings)]


def _one_of(*words: str) -> Any:  # noqa: ANN401 - an enumeration, which typer takes for words to choose from
    return Enum("Word", [(word, word) for word in words], type=str)


def _peak(context: typer.Context, option: typer.CallbackParam, peak: float | None) -> float | None:
    """Return a peak of the device."""
    del context
    if peak is not None and not 0 < peak < float("inf"):
        msg = f"{peak:g} is not a peak of a device: give a number above 0"
        raise typer.BadParameter(msg, param_hint=option.opts[0])
    return peak


def _words(text: str | None) -> list[str] | None:
    """Return the words of a list."""
    return None if text is None else [each.strip() for each in text.split(",") if each.strip()]


def _sizes(text: str | None) -> list[int] | None:
    """Return the whole numbers of a list."""
    words = _words(text)
    if words is None or (len(words) <= MAX_POINTS and all(re.fullmatch("[0-9]{1,9}", each) for each in words)):
        return None if words is None else [int(each) for each in words]
    msg = f"{shown(text)} is no list of at most {MAX_POINTS} batch sizes such as 8,16,32"
    raise typer.BadParameter(msg, param_hint="--batches")


_NUMBERS = "such as 4 or 4-6."
_BY = _one_of("name", "short", "path")
_TO_FILE = "Write to this file (.json, .csv, .md, .txt, .parquet) instead of stdout; to DIR/, a file per table."
_RESULT = _option(
    Path | None, "--output", "-o", callback=of_known_form, parser=target, metavar="FILE|DIR/", help=_TO_FILE
)
_RESULT_OR_FIGURE = _option(
    Path | None, "--output", "-o", callback=of_known_form_or_figure, parser=target, metavar="FILE|DIR/",
    help=f"{_TO_FILE} Ending in .html, .svg or .png: the figure.",
)  # fmt: skip

OPTIONS: Mapping[str, Any] = {
    # of most verbs
    "ctx": typer.Context,
    "paths": _argument(list[str], "A folder, a file, a glob, or several of these.", show_default=False),
    "ranks": _option(str | None, "--ranks", metavar="RANKS", help="Only these ranks, such as 0,3-7."),
    "steps": _option(str | None, "--steps", metavar="STEPS", help=f"Only these ProfilerStep numbers, {_NUMBERS}"),
    "top": _option(int, "--top", metavar="ROWS", min=1, help="Rows shown of each ranked table."),
    "form": _option(
        Format | None, "--format", "-f", metavar="FORMAT", show_default=False, is_eager=True,  # -o needs it
        help="table, json, csv, md or parquet; by default as the file of -o ends, else tables to read.",
    ),
    "table": _option(
        str | None, "--table", metavar="NAME", show_default=False,
        help="The table of CSV and parquet, where a command has several; a wrong name lists them.",
    ),
    "output": _RESULT_OR_FIGURE,
    **dict.fromkeys((f"{verb}.output" for verb in ("phases", "patterns", "validate", "execution_trace",
                                                   "info", "clear")), _RESULT),
    "scheduler": _option(
        str | None, "--scheduler", metavar="WORKERS",
        help="Let workers read the ranks: tcp://… of a Dask scheduler, processes, or ray.",
    ),
    "perfetto": _option(
        Path | None, "--perfetto", callback=ending("PERFETTO", "traces for Perfetto"),
        help="Write the traces with this result on top to a file for ui.perfetto.dev: .pftrace keeps ranks in order, "
        ".json is text; .gz behind either compresses the file.",
    ),
    "counters": _option(
        bool, "--counters", help="With --perfetto: queue lengths, copy bandwidths and memory, too."
    ),
    # how traces are read
    "time": _option(
        str | None, "--time", metavar="FROM..TO",
        help="Only activities that begin in this window since the job's first activity, such as 1.5s..2s or 800ms.. "
        "(else µs).",
    ),
    "python": _option(
        bool | None, "--python/--no-python", show_default=False,
        help="Keep or leave out calls of Python functions. By default they are kept, up to 4 million of a rank.",
    ),
    "captures": _option(
        list[str] | None, "--captures", metavar="DIR", show_default=False,
        help="A recording in which kernels of replayed CUDA graphs were launched one by one, such as the warm-up: "
        "these kernels get its operators. May be repeated.",
    ),
    "no_cache": _option(
        bool, "--no-cache", help="Read the files even if an earlier command read them, and cache nothing."
    ),
    # of one verb on one job
    "summary.full": _option(bool, "--full", help="Show all tables and the whole verdict."),
    "critical_path.full": _option(bool, "--full", help="Show all tables, and twice as many rows of each."),
    "critical_path.steps": _option(
        str | None, "--steps", "--step", metavar="STEPS",
        help=f"From the start to the end of these ProfilerSteps, {_NUMBERS}",
    ),
    "plan.full": _option(bool, "--full", help="Show all tables, what bounds the job, and what was compared."),
    "segments": _option(bool, "--segments", help="Print every segment of the path."),
    "graphviz": _option(
        Path | None, "--graphviz", callback=ending("PICTURES", "pictures"),
        help="Draw the path on a time axis as .svg, .pdf or .png, or write its source as .dot.",
    ),
    "each": _option(bool, "--each", help="Print every rank's part in every collective."),
    "kernels.by": _option(
        _one_of("name", "family", "rank", "operator", "shape", "module", "annotation"), "--by", metavar="BY",
        help="Sum up by name, family (GEMM, attention), rank, operator, shape, module or annotation that launched it.",
    ),
    "budget": _option(
        int | None, "--budget", "-k", min=1, max=16, show_default=False,
        help="Only the best set of at most so many changes; by default the list of all changes, and the best three.",
    ),
    "peak_tflops": _option(float | None, help="Peak compute of the device, TFLOP/s.", callback=_peak),
    "peak_gbs": _option(float | None, help="Peak bandwidth of the device's memory, GB/s.", callback=_peak),
    "batches": _option(
        str | None, "--batches", metavar="SIZES", callback=_sizes,
        help="Batch sizes of each rank, such as 8,16,32; by default half to 8 times the recorded one.",
    ),
    "capacity.before": _option(
        int | None, "--before", min=1, help="The recorded batch of each rank; by default the shapes say it."
    ),
    "recorded": _option(str, "--recorded", metavar="NAME", help="The recorded device, if the recording names none."),
    "devices": _option(
        str | None, "--devices", metavar="NAMES", callback=_words,
        help="Devices, such as 'H100 SXM,L4'; by default some that are often asked for.",
    ),
    "annotation": _option(
        str | None, "--annotation", show_default=False,
        help="Glob of annotations, operators, Python frames or phases, such as decode.",
    ),
    "counters.full": _option(int, "--full", min=1, help="Kernels and copies in a queue that is full."),
    "series": _option(bool, "--series", help="Also print every change over time."),
    "operator": _option(
        str, metavar="NAME", help="Part of the name of operators, annotations or Python frames, or a glob of the name."
    ),
    "min_length": _option(int, min=1, help="Leave out occurrences with fewer kernels."),
    "overlay": _option(
        Path | None, help="Write each rank's trace to this folder, with its frequent patterns marked."
    ),
    "compress": _option(bool, help="In these files, leave out names and arguments of events outside the patterns."),
    "arguments": _option(bool, "--arguments", help="Also check every argument of every event."),
    "sweep": _option(
        str | None, "--sweep", metavar="WHAT=FACTORS", show_default=False,
        help="Predict for many factors, after the changes: WHAT is network or CRITERIA, FACTORS are FROM..TO, "
        "FROM..TO:POINTS or a list, such as network=0.25..2, name=*gemm*=0.5..1:6 or rank=0=0.5,1,2.",
    ),
    # of two jobs
    "before": _argument(str, "The job before: a folder, a file or a glob.", show_default=False),
    "after": _argument(str, "The job after, likewise.", show_default=False),
    "steps_before": _option(
        str | None, "--steps-before", "--steps", metavar="STEPS",
        help="Only from the first to the last of these steps; --steps is the same.",
    ),
    "diff.steps_after": _option(
        str | None, "--steps-after", metavar="STEPS", help="Only these steps of the job after; default: --steps-before."
    ),
    "diff.by": _option(
        _BY, "--by", help="Rows of names: each name, name without template arguments, or call path."
    ),
    "fail_on": _option(
        list[str] | None, "--fail-on", metavar="WHAT>+LIMIT", show_default=False,
        help=f"Exit with code {FAILED} if this grew by more: step_time, or a category of the critical path "
        f"({', '.join(CATEGORIES)}), such as 'step_time>+5%' or 'gap>+2ms'. May be repeated.",
    ),
    "strict": _option(
        bool, "--strict", help=f"Exit with code {FAILED} also if the recordings cannot tell whether steps got slower."
    ),
    "comment": _option(
        Path | None, "--comment", callback=in_folder, metavar="FILE.md", help="Write a comment for a pull request."
    ),
    "names": _option(
        bool, "--names", help="Compare names instead: how often and how long each one runs, per rank and step."
    ),
    "device": _option(
        _one_of("all", "host", "device"), "--device", help="With --names: only names of the host, or of the device."
    ),
    # pages and servers
    "name": _argument(str | None, "Which figure, such as temporal_breakdown or critical-path.", metavar="FIGURE"),
    "plot.paths": _argument(list[str] | None, "A folder, a file, a glob, or several of these.", show_default=False),
    "plot.output": _option(
        Path | None, "--output", "-o", callback=ending("FIGURES", "figures"), metavar="FILE",
        help="The file: .html, or .png or .svg, which need htagraph\\[image] and Chrome.",
    ),
    "report.output": _option(
        Path, "--output", "-o", callback=ending("PAGES", "reports"), metavar="FILE", help="The file to write: .html."
    ),
    "chakra": _option(
        Path, "--chakra", metavar="DIR", callback=in_folder,
        help="Folder for rank.<rank>.et and comm_group.json (MLCommons Chakra, schema 0.0.4).",
    ),
    "compare": _option(bool, "--compare", help="Two jobs, before and after: what changed, and why."),
    "port": _option(int, "--port", min=0, max=65535, help="Port of this machine; 0 for any free port."),
    "perfetto_ui": _option(
        Path | None, "--perfetto-ui", exists=True, file_okay=False,
        help="A folder with a copy of Perfetto's UI, to be opened on these traces.",
    ),
    "mcp.paths": _argument(
        list[str] | None, "Files that may be read, and folders with all in them; default: the current one.",
        show_default=False,
    ),
    # of verbs that read no graph
    "file": _argument(Path, "What ExecutionTraceObserver wrote: JSON.", show_default=False),
    "execution_trace.paths": _argument(
        list[str] | None, "The trace of the same run, whose operators are linked to the nodes."
    ),
    "rank": _option(int | None, "--rank", help="Which rank the execution trace is of, if there are several."),
    "command": _argument(str | None, "A command, such as summary; default: all.", metavar="COMMAND"),
    "schema.output": _option(
        str | None, "--output", "-o", metavar="FILE", help="Write to this file instead of stdout."
    ),
    "demo.output": _option(
        Path | None, "--output", "-o", help="Folder for the traces, new or empty; by default a temporary folder."
    ),
    "simulate.output": _option(Path, "--output", "-o", help="Folder to write to; created if it does not exist."),
    "simulate.ranks": _option(int | None, min=1, help="Processes, one GPU each."),
    "simulate.steps": _option(int | None, min=1, help="Training steps."),
    "regime": _option(str, help="What bounds the job: gpu_bound, host_bound, communication_bound, straggler, …"),
    "events": _option(int | None, min=1000, help="Write about this many events instead."),
    "settings": _option(
        list[str] | None, "--set", help="A Job field: backend=cupti, cores_per_host=2, clock_offsets_us=[0,900]."
    ),
}  # fmt: skip
"""Options and arguments of verbs by the name of the parameter, or by verb and parameter where verbs differ."""


class _Reading(NamedTuple):
    """How this command reads traces, besides which ranks and steps: options of every verb that reads a job."""

    time: str | None = None
    python: bool | None = None
    captures: list[str] | None = None
    no_cache: bool = False


_verb: ContextVar[str] = ContextVar("verb", default="")
"""The verb that runs."""
_notes: list[str] = []
"""Remarks for the end of the answer of the verb that runs."""
_reading: ContextVar[_Reading] = ContextVar("reading", default=_Reading())  # noqa: B039 - it is frozen


def as_command(
    function: Callable[..., None], verb: str = "", defaults: Mapping[str, Any] | None = None,
    more: Mapping[str, tuple[Any, Any]] | None = None, *, reads: bool = False,
) -> Callable[..., None]:  # fmt: skip
    """Return a verb as typer reads it: the name of each parameter says which of `OPTIONS` it is."""
    own = defaults or {each.name: each.default for each in inspect.signature(function).parameters.values()}
    verb = verb or function.__name__
    options = {name: (OPTIONS.get(f"{verb}.{name}", OPTIONS.get(name)), default) for name, default in own.items()}
    shared = {name: (OPTIONS[name], default) for name, default in _Reading()._asdict().items() if reads}
    chooses = {"table": (OPTIONS["table"], None)} if "form" in own else {}

    @wraps(function)
    def command(**asked: Any) -> None:  # noqa: ANN401 - the options' values
        if chooses:
            refuse_table(asked["table"], asked["form"], asked["output"])
        before = _reading.set(_Reading(**{name: asked[name] for name in shared}))
        chosen_before = table_asked.set(asked.get("table"))
        verb_before = _verb.set(verb)
        try:
            function(**{name: _word(asked[name]) for name in own})
        finally:
            ended()
            say_noted()
            _verb.reset(verb_before)
            table_asked.reset(chosen_before)
            _reading.reset(before)

    parameters = {**options, **chooses, **(more or {}), **shared}
    command.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    command.__signature__ = inspect.Signature([  # type: ignore[attr-defined] # what typer reads
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in parameters.items()
    ])  # fmt: skip
    return command


def _word(value: Any) -> Any:  # noqa: ANN401 - of any option
    """Return a word that was chosen from several as a plain text."""
    return value.value if isinstance(value, Enum) and not isinstance(value, Format) else value


def chosen(text: str | None, option: str) -> list[int] | None:
    """Return the numbers that ``--ranks`` or ``--steps`` gave, None for all."""
    if text is None:
        return None
    try:
        return numbers(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def given(paths: list[str], ranks: str | None = None, steps: str | None = None) -> list[str]:
    """Return the words that make another command read the same; many files are not repeated."""
    reading = _reading.get()
    words = _few(paths)
    for option, text in (("--ranks", ranks), ("--steps", steps)):
        words += [option, text] if text is not None else []
    words += ["--time", reading.time] if reading.time is not None else []
    words += ["--python" if reading.python else "--no-python"] if reading.python is not None else []
    words += [word for folder in reading.captures or () for word in ("--captures", folder)]
    return words


def _few(paths: Sequence[str]) -> list[str]:
    """Return the paths as a suggested command has them; many files are not repeated."""
    return list(paths) if len(paths) <= _MAX_REPEATED_PATHS else ["PATHS"]


def window(text: str | None) -> tuple[float | None, float | None] | None:
    """Return the window that ``--time`` gave in µs, with None for an end that is open; None for all time.

    Example:
        >>> window("1.5ms..2000"), window("..1s")
        ((1500.0, 2000.0), (None, 1000000.0))
    """
    if text is None:
        return None
    ends = [each.strip() for each in text.split("..")]
    try:
        begin, end = (
            None if not each else float(each) if _PLAIN.fullmatch(each) else duration_ns(each) / 1000 for each in ends
        )
    except ValueError:
        begin = end = math.inf
    if (begin is not None and end is not None and not begin < end) or not any(ends):
        msg = f"{text!r} is not a window FROM..TO such as 1.5s..2s, 800ms.. or ..250000 (µs)"
        raise typer.BadParameter(msg, param_hint="--time")
    return begin, end


def read(paths: list[str], ranks: str | None, steps: str | None) -> DependencyGraph:
    """Return the graph of what the options chose; a bar and warnings go to stderr."""
    return _loaded(paths, ranks, steps)


def _loaded(paths: list[str], ranks: str | None, steps: str | None, **on: Any) -> Any:  # noqa: ANN401 - a graph, on workers a job
    chosen_ranks, chosen_steps, reading = chosen(ranks, "--ranks"), chosen(steps, "--steps"), _reading.get()
    if on and reading.time is not None:
        msg = "it counts from the first activity of all ranks, which no worker knows: choose --steps instead"
        raise typer.BadParameter(msg, param_hint="--time")
    if on and reading.captures:
        msg = "no worker reads captures: leave out --scheduler"
        raise typer.BadParameter(msg, param_hint="--captures")
    time = window(reading.time)
    with progress("reading") as advance:
        from htagraph.graph.load import load
        from htagraph.trace.discover import find_files

        asked: dict[str, Any] = {"time": time, "python": reading.python, "cache": not reading.no_cache}
        asked |= {"captures": reading.captures} if reading.captures else {}
        read = partial(load, paths, chosen_ranks, chosen_steps, advance, **asked, **on)
        try:
            job: Any = read()
        except TraceError:  # of several files, one that cannot be read is named, and costs no other its answer
            if len(find_files(paths)) < 2:
                raise
            job = read(on_error="skip")
    keep_memory()  # not while it is read, when much memory is needed once
    text = _noted(job.issues, paths)
    if text and text not in _notes:
        _notes.append(text)
    analysing()
    return job


def read_on(scheduler: str, paths: list[str], ranks: str | None, steps: str | None) -> DistributedJob:
    """Return the job of what the options chose, read by workers; a bar, warnings and missing ranks go to stderr."""
    from htagraph.cluster.engines import engine_of

    try:
        engine = engine_of(scheduler)
    except TypeError:
        msg = f"{scheduler!r} is none; give tcp://… of a Dask scheduler, processes (of this machine), or ray"
        raise typer.BadParameter(msg, param_hint="--scheduler") from None
    return _loaded(paths, ranks, steps, engine=engine)


def _noted(issues: Sequence[Issue], paths: Sequence[str]) -> str:
    """Return the damage and the gaps of a recording in a line; empty where the answer does not depend on it."""
    left_out = _HARMLESS | (_OF_DEPENDENCIES if _verb.get() in _OF_RECORDED_TIMES else frozenset())
    kinds: dict[str, list[Issue]] = {}
    for issue in issues:
        if issue.what not in left_out:
            kinds.setdefault(issue.what, []).append(issue)
    if not kinds:
        return ""
    from htagraph.findings.phrases import command_line, plural

    alike = kinds[min(kinds, key=lambda what: (what in _OF_DEPENDENCIES, what not in _LOST))]
    count = sum(max(issue.count, 1) for issue in alike)
    file = f"{Path(alike[0].file).name}: " if alike[0].file else ""
    several = f" ({count:,} in all)" if count > 1 else ""
    further = f", and {plural(len(kinds) - 1, 'further remark')}" if len(kinds) > 1 else ""
    return f"{file}{alike[0].detail}{several}{further}: {command_line('validate', _few(paths))}"


def say_noted() -> None:
    """Say the remarks on stderr, once, behind the answer."""
    while _notes:
        typer.echo(printable(f"htagraph: warning: {_notes.pop(0)}"), err=True)
