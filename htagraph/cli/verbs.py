"""The verbs of the command line, each imported when it is asked for: most import what the others do not need."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, MutableMapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["MODULES", "Verb", "Verbs"]

MODULES = {
    "summary": "jobs", "critical-path": "jobs", "what-if": "what_if", "opportunities": "questions",
    "stragglers": "questions", "collectives": "questions", "diff": "diff", "kernels": "questions", "idle": "questions",
    "memory": "jobs", "launches": "questions", "counters": "jobs", "patterns": "jobs", "roofline": "questions",
    "phases": "questions", "compare": "diff", "plot": "pages", "report": "pages", "serve": "pages",
    "execution-trace": "others", "validate": "others", "mcp": "others", "schema": "others", "demo": "others",
    "simulate": "others", "cache": "others",
}  # fmt: skip
"""Verbs, the main one first, and the modules of this package that hold them: as functions, or as rows of questions."""
_WITHOUT_GRAPH = "others"
"""The module of verbs that neither read traces into a graph nor open what an earlier one read."""


class Verb(TyperCommand):
    """One verb."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override] # click's context
        """Return its options and arguments."""
        return _named_alone(super().get_params(ctx))


class Verbs(TyperGroup):
    """The group of all verbs."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override] # click's context
        """Return its options."""
        return _named_alone(super().get_params(ctx))

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - typer's
        super().__init__(**given)
        self.commands = _Commands()

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override] # click's context
        """Return their names, the main one first."""
        return list(self.commands)


class _Commands(MutableMapping[str, Any]):
    """Commands by name. Each is made when it is looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's command
        if name not in self._made:
            self._made[name] = _command(name, MODULES[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:  # noqa: ANN401
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*MODULES, *self._made)))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _named_alone(params: list[Any]) -> list[Any]:
    """Return parameters of which flags are shown without a type: ``<bool>`` reads as if a value had to follow."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def _in_paragraphs(text: str) -> str:
    """Return a help text whose lines are as long as the terminal is wide, not as the source is."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _command(name: str, module_name: str) -> Any:  # noqa: ANN401
    """Return the command of a verb: a function of its name, or a row of `questions`.

    A module whose command is of another class, or takes more options, has these as ``COMMAND`` and ``MORE``.
    """
    from htagraph.cli.options import as_command

    module = importlib.import_module(f"htagraph.cli.{module_name}")
    if module_name == "questions":
        question = module.QUESTIONS[name]
        text, function = question.help, as_command(question.show, name, question.defaults, reads=True)
    else:
        verb = getattr(module, name.replace("-", "_"))
        if isinstance(verb, typer.Typer):  # of verbs of its own
            return typer.main.get_group(verb)
        text, more = inspect.getdoc(verb) or "", getattr(module, "MORE", None)
        function = as_command(verb, more=more, reads=module_name != _WITHOUT_GRAPH)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=getattr(module, "COMMAND", Verb), help=_in_paragraphs(text))(function)
    return typer.main.get_command(alone)
