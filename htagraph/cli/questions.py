"""Verbs that read a job, make one report on it and show that: each is a row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

import typer

from htagraph.cli.options import Form, Paths, Ranks, Scheduler, Steps, Top, given, read, read_on
from htagraph.cli.writing import Drawn, Output, show

if TYPE_CHECKING:
    from pathlib import Path

    from htagraph.cli.writing import Format

__all__ = ["QUESTIONS", "Question", "asked"]


class By(str, Enum):
    """What device time is summed up by."""

    NAME = "name"
    RANK = "rank"
    OPERATOR = "operator"
    SHAPE = "shape"
    MODULE = "module"
    ANNOTATION = "annotation"


def _peak(context: typer.Context, option: typer.CallbackParam, peak: float | None) -> float | None:
    """Return a peak of the device.

    Raises:
        typer.BadParameter: no device has it.
    """
    del context
    if peak is not None and not 0 < peak < float("inf"):
        msg = f"{peak:g} is not a peak of a device: give a number above 0"
        raise typer.BadParameter(msg, param_hint=option.opts[0])
    return peak


@dataclass(frozen=True)
class Question:
    """A verb whose answer is a report on a job."""

    report: str
    """The function of `htagraph.output` that makes the report of a graph, the words that chose it, and the options."""
    help: str
    top: int = 10
    """Rows shown of each ranked table, where the user does not say."""
    options: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Its own options: how typer reads each, and its default."""
    last: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Those of its own options that are shown behind the shared ones."""
    output: Any = Drawn
    """Where results go; `Output` where no figure is drawn of them."""
    on_workers: str = ""
    """The function that makes the report of a job on workers; empty where none does."""


QUESTIONS: Mapping[str, Question] = {
    "opportunities": Question(
        "reports.ranks:opportunities_report",
        "What to improve first, by largest possible gain: kernels, operators, ranks, process groups, host phases.",
    ),
    "stragglers": Question(
        "reports.ranks:stragglers_report",
        "Which rank makes the others wait, for how long, and why it is late.",
        on_workers="job_report:job_stragglers_report",
    ),
    "collectives": Question(
        "reports.ranks:collectives_report",
        "How long ranks wait for each other in collectives, how long transfers take, and at which bandwidth.",
        top=20,
        last={
            "each": (
                Annotated[bool, typer.Option("--each", help="Print every rank's part in every collective.")],
                False,
            )
        },
    ),
    "kernels": Question(
        "reports.device_time:kernels_report",
        "Where device time goes: by kernel, by rank, or by the operator, shape, module or annotation that launched it.",
        top=20,
        options={
            "by": (
                Annotated[
                    By,
                    typer.Option(
                        "--by",
                        metavar="BY",
                        help="Sum up by name, rank, operator, shape, module or annotation that launched it.",
                    ),
                ],
                By.NAME,
            )
        },
    ),
    "idle": Question(
        "reports.device_time:idle_report",
        "Why streams are idle: idle time by cause, and the longest idle intervals with the work before and after.",
    ),
    "launches": Question(
        "reports.device_time:launches_report",
        "What launch calls cost on the host, how long kernels wait after them, and what operators and graphs launch.",
    ),
    "roofline": Question(
        "reports.device_time:roofline_report",
        "How many FLOPs and bytes operators reach per second, and how close that is to what the device allows.",
        top=15,
        options={
            name: (Annotated[float | None, typer.Option(help=text, callback=_peak)], None)
            for name, text in (
                ("peak_tflops", "Peak compute of the device, TFLOP/s."),
                ("peak_gbs", "Peak bandwidth of its memory, GB/s."),
            )
        },
    ),
    "phases": Question(
        "reports.device_time:phases_report",
        "How long phases take, such as prefill and decode or what your annotations name, and how busy the device is.",
        options={
            "annotation": (
                Annotated[
                    str | None,
                    typer.Option(
                        "--annotation",
                        help="Glob of annotations, operators, Python frames or phases, such as decode.",
                        show_default=False,
                    ),
                ],
                None,
            )
        },
        output=Output,
    ),
}


def asked(name: str) -> Callable[..., None]:
    """Return the function of a verb, from whose signature typer makes its options."""
    question = QUESTIONS[name]

    def command(
        paths: list[str],
        ranks: str | None,
        steps: str | None,
        form: Format | None,
        output: Path | None,
        scheduler: str | None = None,
        **options: Any,  # noqa: ANN401 - its own
    ) -> None:
        if scheduler is not None:
            job = read_on(scheduler, paths, ranks, steps)
            report = resolve_name(f"htagraph.output.{question.on_workers}")(job, **options)
        else:
            graph = read(paths, ranks, steps)
            words = {key: value.value if isinstance(value, Enum) else value for key, value in options.items()}
            report = resolve_name(f"htagraph.output.{question.report}")(graph, given(paths, ranks, steps), **words)
        show(report, form, output, paths)

    parameters: dict[str, tuple[Any, Any]] = {
        "paths": (Paths, inspect.Parameter.empty), **question.options, "ranks": (Ranks, None), "steps": (Steps, None),
        "top": (Top, question.top), **question.last, "form": (Form, None), "output": (question.output, None),
        **({"scheduler": (Scheduler, None)} if question.on_workers else {}),
    }  # fmt: skip
    command.__name__, command.__doc__ = name, question.help
    command.__annotations__ = {each: annotation for each, (annotation, _) in parameters.items()}
    command.__signature__ = inspect.Signature([  # type: ignore[attr-defined] # what typer reads
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for each, (annotation, default) in parameters.items()
    ])  # fmt: skip
    return command
