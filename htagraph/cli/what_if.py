"""``htagraph what-if``: how fast the job would be if something were different."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from htagraph.cli.options import read
from htagraph.cli.verbs import Verb
from htagraph.cli.writing import Format, need_perfetto, refuse_input, show
from htagraph.whatif.options import CHANGES, read_sweep

__all__ = ["COMMAND", "MORE", "WhatIfCommand", "what_if"]

_Read = TypeVar("_Read")
_GIVEN = "htagraph.whatif.changes"

_OPTIONS = {f"change_{option.replace('-', '_')}": option for option in CHANGES}
"""Options by the name of their parameter."""
_PANEL = "Changes, applied in the order given; each may be repeated"


class WhatIfCommand(Verb):
    """A command that remembers the changes in the order of the command line, which values by option would lose."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override] # click's context
        """Parse as every command does, and note each change's option and text."""
        end = args.index("--") if "--" in args else len(args)
        bare = {f"--{option}" for option, form in CHANGES.items() if form.value == "optional"}
        args = [f"{arg}=" if arg in bare else arg for arg in args[:end]] + args[end:]  # what follows them is a path
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        texts = {name: iter(values) for name, values in given.items() if isinstance(values, list)}
        names = [str(param.name) for param in order]
        ctx.meta[_GIVEN] = [(_OPTIONS[name], next(texts.get(name, iter(())), "")) for name in names if name in _OPTIONS]
        return super().parse_args(ctx, args)


COMMAND = WhatIfCommand


def _change(option: str) -> tuple[Any, Any]:
    """Return an option for a change as typer reads it, and its default."""
    form = CHANGES[option]
    read_as = typer.Option(
        f"--{option}", metavar=form.metavar or None, help=form.help, rich_help_panel=_PANEL, show_default=False
    )
    return (Annotated[bool, read_as], False) if form.value == "none" else (Annotated[list[str] | None, read_as], None)


MORE = {name: _change(option) for name, option in _OPTIONS.items()}
"""An option per change, whose values `WhatIfCommand` notes."""


def what_if(  # noqa: PLR0913 - one argument per option
    ctx: typer.Context, paths: list[str], *, sweep: str | None = None, ranks: str | None = None,
    steps: str | None = None, top: int = 5, perfetto: Path | None = None, counters: bool = False,
    form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """How fast would the job be if …? Changes apply in the order given; each option may be repeated.

    CRITERIA are key=value pairs separated by commas, which all must hold: kind, name, op, rank, stream, step,
    step_index (-1 is the last), backward_of, min_us, max_us, time (1ms..2ms), category, regex, depth, activity,
    beside (device work of this name runs on another stream).

    name, op, category and backward_of are globs. name= of an operator is its self time, op= all inside it, backward_of=
    what autograd ran for it; kind=untraced is Python between operators.

    Put double quotes around a value that contains a comma followed by a key and =; colons need no quotes.

    Example: htagraph what-if traces/ --scale 'name=*gemm*,rank=0-3:0.5' --network 0.5 --perfect-overlap
    """
    changes = [_understood(CHANGES[option].read, text, option) for option, text in ctx.meta[_GIVEN]]
    asked = None if sweep is None else _understood(read_sweep, sweep, "sweep")
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
    for change, (option, _) in zip(changes, ctx.meta[_GIVEN], strict=True):
        scenarios.append(_understood(change.apply, scenarios[-1], option))
    outcomes = [scenario.run() for scenario in scenarios]
    written = None
    if perfetto is not None:
        from htagraph.output.export.perfetto import to_perfetto

        written = to_perfetto(outcomes[-1], perfetto, counters=counters)
    show(what_if_report(outcomes, texts, changes, top=top), form, output, paths)
    if written is not None:
        typer.echo(str(written), err=True)


def _understood(reader: Callable[[Any], _Read], given: object, option: str) -> _Read:
    """Return what an option's value means, or what it makes of a job."""
    try:
        return reader(given)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=f"--{option}") from None
