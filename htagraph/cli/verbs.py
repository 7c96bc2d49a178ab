"""The verbs of the command line, each declared once: `VERBS` has a row or the name of a module for each verb.

What a verb needs is imported when the verb is asked for: most verbs import what the others do not need.
"""

from __future__ import annotations

import importlib
import inspect
from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import EnumMeta
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from pathlib import Path

    from htagraph.cli.writing import Format

__all__ = ["FORMER", "QUESTIONS", "VERBS", "Question", "Verb", "Verbs"]


@dataclass(frozen=True)
class Question:
    """A verb that reads a job, makes one report on it and shows the report."""

    report: str
    """The function of `htagraph.output` that makes the report of a graph, the words that chose it, and the options."""
    help: str
    top: int = 10
    """Rows shown of each ranked table, where the user does not say."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own options and their defaults."""
    last: Mapping[str, Any] = field(default_factory=dict)
    """Those of its own options that are shown behind the shared ones."""
    on_workers: str = ""
    """The function that makes the report of a job on workers; empty where none does."""

    @property
    def defaults(self) -> dict[str, Any]:
        """All its options and arguments in the order of its help, with their defaults."""
        scheduler = {"scheduler": None} if self.on_workers else {}
        return {
            "paths": inspect.Parameter.empty, **self.options, "ranks": None, "steps": None, "top": self.top,
            **self.last, "form": None, "output": None, **scheduler,
        }  # fmt: skip

    def show(
        self,
        paths: list[str],
        ranks: str | None,
        steps: str | None,
        form: Format | None,
        output: Path | None,
        scheduler: str | None = None,
        **options: Any,  # noqa: ANN401 - its own
    ) -> None:
        """Read the job, make the report and show it."""
        from htagraph.cli.options import given, read, read_on
        from htagraph.cli.writing import show as written

        if scheduler is not None:
            job = read_on(scheduler, paths, ranks, steps)
            report = resolve_name(f"htagraph.output.{self.on_workers}")(job, **options)
        else:
            graph = read(paths, ranks, steps)
            report = resolve_name(f"htagraph.output.{self.report}")(graph, given(paths, ranks, steps), **options)
        written(report, form, output, paths)


VERBS: Mapping[str, str | Question] = {
    "summary": "jobs",
    "critical-path": "jobs",
    "what-if": "what_if",
    "plan": Question(
        "reports.ranks:plan_report",
        "What to change, each change by its gain, and which changes save most together, as gains do not add up.",
        options={"budget": None, "full": False},
    ),
    "stragglers": Question(
        "reports.ranks:stragglers_report",
        "Which rank makes the others wait, for how long, and why it is late.",
        on_workers="reports.workers:job_stragglers_report",
    ),
    "collectives": Question(
        "reports.ranks:collectives_report",
        "How long ranks wait for each other in collectives, how long transfers take, and at which bandwidth.",
        top=20,
        last={"each": False},
    ),
    "diff": "diff",
    "kernels": Question(
        "reports.device_time:kernels_report",
        "Where device time goes: by kernel, family, rank, or the operator, shape, module or annotation that launched.",
        top=20,
        options={"by": "name"},
    ),
    "idle": Question(
        "reports.device_time:idle_report",
        "Why devices are idle: what they waited for (the host and its call, a loader, a rank), and the longest waits.",
    ),
    "memory": "jobs",
    "launches": Question(
        "reports.queues:launches_report",
        "What launch calls cost on the host, how long kernels wait after them, and what operators and graphs launch.",
    ),
    "counters": "jobs",
    "patterns": "jobs",
    "roofline": Question(
        "reports.device_time:roofline_report",
        "How many FLOPs and bytes operators reach per second, and how close that is to what the device allows.",
        top=15,
        options={"peak_tflops": None, "peak_gbs": None},
    ),
    "phases": Question(
        "reports.device_time:phases_report",
        "How long phases take, such as prefill and decode or what your annotations name, and how busy the device is.",
        options={"annotation": None},
    ),
    "capacity": Question(
        "reports.changes:capacity_report",
        "How long a step takes with other batches and on other devices, and how large a batch fits into memory.",
        options={"batches": None, "before": None, "devices": None, "recorded": ""},
    ),
    "plot": "jobs",
    "export": "jobs",
    "report": "jobs",
    "serve": "jobs",
    "execution-trace": "others",
    "validate": "others",
    "mcp": "others",
    "schema": "others",
    "demo": "others",
    "simulate": "others",
    "cache": "others",
}
"""Every verb, the main one first: the module of this package that holds the function of its name, or its row."""
_GROUPS = {
    "Begin": ("summary", "report", "serve", "demo"),
    "Why": (
        "critical-path",
        "stragglers",
        "collectives",
        "kernels",
        "idle",
        "memory",
        "launches",
        "counters",
        "patterns",
        "roofline",
        "phases",
    ),
    "What if": ("plan", "what-if", "capacity"),
    "Compare": ("diff",),
    "Files": ("validate", "plot", "export"),
    "The rest": ("execution-trace", "mcp", "schema", "simulate", "cache"),
}
"""The verbs in the groups of the help."""
FORMER: Mapping[str, tuple[str, ...]] = {"compare": ("diff", "--names"), "opportunities": ("plan",)}
"""Names that verbs had before, and the words that each stands for; no help lists these names."""
_SERVED = ("event", "select")
"""Names that no command has, but servers answer."""
_GROUP_OF = {verb: group for group, verbs in _GROUPS.items() for verb in verbs}
QUESTIONS: Mapping[str, Question] = {name: each for name, each in VERBS.items() if isinstance(each, Question)}
"""The verbs that are rows."""
_WITHOUT_GRAPH = "others"
"""The module of verbs that neither read traces into a graph nor open what an earlier one read."""


class Verb(TyperCommand):
    """One verb."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override] # click's context
        """Return its options and arguments."""
        return _prepared(super().get_params(ctx))


class Verbs(TyperGroup):
    """The group of all verbs."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override] # click's context
        """Return its options."""
        return _prepared(super().get_params(ctx))

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - typer's
        super().__init__(**given)
        self.commands = _Commands(dict.fromkeys(VERBS))

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override] # noqa: ANN401
        """Return a verb by its name or its former name, and the words behind it."""
        name, *words = args
        if name in _SERVED:
            ctx.fail(f"{name!r} is no command: htagraph mcp answers it, and htagraph serve PATHS shows every event")
        return super().resolve_command(ctx, [*FORMER.get(name, (name,)), *words])

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override] # click's context
        """Return their names in the groups of the help, the main one first."""
        return [verb for verb in _GROUP_OF if verb in self.commands]


class _Commands(UserDict[str, Any]):
    """Commands by name. Each is made when it is looked up."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's command
        if self.data[name] is None:
            self.data[name] = _command(name, VERBS[name])
            self.data[name].rich_help_panel = _GROUP_OF[name]
        return self.data[name]


def _prepared(params: list[Any]) -> list[Any]:
    """Return parameters of which flags are shown without a type: ``<bool>`` reads as if a value had to follow."""
    # paths and options that are not given are not read: typer has pydantic build what reads each of them
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
        if "process_value" not in vars(param):
            param.process_value = partial(_processed, param, param.process_value)
    return params


def _processed(param: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:  # noqa: ANN401 - click's
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    if kind == list[str] and value:
        value = list(value)
    elif param.required or value != param.default or param.multiple or isinstance(value, str):
        return _chosen(process, param, context, value)
    return value if param.callback is None else param.callback(context, param, value)


def _chosen(
    process: Callable[[Any, Any], Any],
    param: Any,  # noqa: ANN401 - click's, as all below
    context: Any,  # noqa: ANN401
    value: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return the value that a text is read as; a wrong word of a choice is told with the words most like it."""
    kind = getattr(param, "type_descriptor", None)
    words = _words_of(getattr(kind, "annotation", None))
    try:
        return process(context, value)
    except typer.BadParameter:
        if not words or not isinstance(value, str):
            raise
        from htagraph.core.errors import nearest_words, shown

        listed = ", ".join(words)
        nearest = nearest_words(value, words)
        msg = f"{shown(value)} is none of {listed}{nearest}"
        raise typer.BadParameter(msg, ctx=context, param=param) from None


def _words_of(annotation: object) -> list[str]:
    """Return the words that an option chooses from; none of any other option."""
    words = list[str]()
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, EnumMeta):
            members: Mapping[str, Any] = kind.__members__
            words += [str(member.value) for member in members.values()]
    return words


def _command(name: str, verb: str | Question) -> Any:  # noqa: ANN401
    """Return the command of a verb: a function of its name in a module, or a row."""
    # a module whose command is of another class, or takes more options, has these as ``COMMAND`` and ``MORE``
    from htagraph.cli.options import as_command

    kind: type[TyperCommand] = Verb
    if isinstance(verb, Question):
        text, function = verb.help, as_command(verb.show, name, verb.defaults, reads=True)
    else:
        module = importlib.import_module(f"htagraph.cli.{verb}")
        answer, kind = getattr(module, name.replace("-", "_")), getattr(module, "COMMAND", Verb)
        if isinstance(answer, typer.Typer):  # of verbs of its own
            return typer.main.get_group(answer)
        text, more = inspect.getdoc(answer) or "", getattr(module, "MORE", None)
        function = as_command(answer, more=more, reads=verb != _WITHOUT_GRAPH)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    # lines as long as the terminal is wide, not as the source is
    in_paragraphs = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    alone.command(name, cls=kind, help=in_paragraphs)(function)
    return typer.main.get_command(alone)
