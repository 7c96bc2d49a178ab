"""``htagraph what-if``: how fast the job would be if something were different."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, read, refuse_input, show
from htagraph.cli.verbs import Verb
from htagraph.cli.writing import Counters, Drawn, Perfetto, need_perfetto
from htagraph.whatif.options import CHANGES, Change, Sweep, read_sweep

if TYPE_CHECKING:
    from htagraph.output.export.perfetto import Written
    from htagraph.whatif.outcome import Outcome

__all__ = ["COMMAND", "WhatIfCommand", "what_if"]

_GIVEN = "htagraph.whatif.changes"

_OPTIONS = {f"change_{option.replace('-', '_')}": option for option in CHANGES}
"""Options by the name of their parameter."""
_PANEL = "Changes, applied in the order given; each may be repeated"


class WhatIfCommand(Verb):
    """A command that remembers the changes in the order of the command line, which values by option would lose."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override] # click's context
        """Parse as every command does, and note each change's option and text."""
        args = _with_values(args)
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        texts = {name: iter(values) for name, values in given.items() if isinstance(values, list)}
        names = [str(param.name) for param in order]
        ctx.meta[_GIVEN] = [(_OPTIONS[name], next(texts.get(name, iter(())), "")) for name in names if name in _OPTIONS]
        return super().parse_args(ctx, args)


COMMAND = WhatIfCommand


def _with_values(args: list[str]) -> list[str]:
    """Give options whose value is optional an empty one: what follows them is a path."""
    end = args.index("--") if "--" in args else len(args)
    bare = {f"--{option}" for option, form in CHANGES.items() if form.value == "optional"}
    return [f"{arg}=" if arg in bare else arg for arg in args[:end]] + args[end:]


def _with_changes(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes an option per change besides its own."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())

    @wraps(command)
    def extended(**given: Any) -> None:  # noqa: ANN401 - the options' values
        command(**{parameter.name: given[parameter.name] for parameter in own})

    parameters = [*own, *map(_parameter, _OPTIONS)]
    extended.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what typer reads
    extended.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return extended


def _parameter(name: str) -> inspect.Parameter:
    form = CHANGES[_OPTIONS[name]]
    settings: dict[str, Any] = {"help": form.help, "rich_help_panel": _PANEL, "show_default": False}
    is_flag = form.value == "none"
    option = typer.Option(f"--{_OPTIONS[name]}", metavar=form.metavar or None, **settings)
    annotation: Any = Annotated[bool, option] if is_flag else Annotated[list[str] | None, option]
    default = False if is_flag else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@_with_changes
def what_if(  # noqa: PLR0913 - one argument per option
    ctx: typer.Context,
    paths: Paths,
    *,
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            metavar="WHAT=FACTORS",
            help="Predict for many factors, after the changes: WHAT is network or CRITERIA, FACTORS are FROM..TO, "
            "FROM..TO:POINTS or a list, such as network=0.25..2, name=*gemm*=0.5..1:6 or rank=0=0.5,1,2.",
            show_default=False,
        ),
    ] = None,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 5,
    perfetto: Perfetto = None,
    counters: Counters = False,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """How fast would the job be if …? Changes apply in the order given; each option may be repeated.

    CRITERIA are key=value pairs separated by commas, which all must hold: kind, name, op, rank, stream, step,
    step_index (-1 is the last), backward_of, min_us, max_us, time (1ms..2ms), category, regex, depth, activity.

    name, op, category and backward_of are globs. name= of an operator is its self time, op= all inside it, backward_of=
    what autograd ran for it; kind=untraced is Python between operators.

    Put double quotes around a value that contains a comma followed by a key and =; colons need no quotes.

    Example: htagraph what-if traces/ --scale 'name=*gemm*,rank=0-3:0.5' --network 0.5 --perfect-overlap
    """
    changes = [_read_change(option, text) for option, text in ctx.meta[_GIVEN]]
    asked = None if sweep is None else _read_sweep(sweep)
    if not changes and asked is None:
        msg = f"give at least one change: {', '.join(f'--{option}' for option in CHANGES)}, or --sweep"
        raise typer.BadParameter(msg, ctx=ctx, param_hint="CHANGES")
    if asked is not None and perfetto is not None:
        msg = "a sweep has many timelines: give the changes of one, without --sweep"
        raise typer.BadParameter(msg, param_hint="--perfetto")
    need_perfetto(perfetto, counters=counters)
    refuse_input(perfetto, paths, "--perfetto")
    texts = [f"--{option} {text}".rstrip() for option, text in ctx.meta[_GIVEN]]
    graph = read(paths, ranks, steps)
    from htagraph.output.reports.changes import sweep_report, what_if_report
    from htagraph.whatif.scenario import what_if as scenario_of

    if asked is not None:
        show(sweep_report(graph, asked, changes, texts), form, output, paths)
        return
    scenarios = [scenario_of(graph)]
    for change in changes:
        scenarios.append(change.apply(scenarios[-1]))
    outcomes = [scenario.run() for scenario in scenarios]
    written = None if perfetto is None else _written(outcomes[-1], perfetto, counters=counters)
    show(what_if_report(outcomes, texts, top=top), form, output, paths)
    if written is not None:
        typer.echo(str(written), err=True)


def _written(outcome: Outcome, perfetto: Path, *, counters: bool) -> Written:
    """Write the predicted timeline beside the recorded one."""
    from htagraph.output.export.perfetto import to_perfetto

    return to_perfetto(outcome, perfetto, counters=counters)


def _read_change(option: str, text: str) -> Change:
    try:
        return CHANGES[option].read(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=f"--{option}") from None


def _read_sweep(text: str) -> Sweep:
    try:
        return read_sweep(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--sweep") from None
