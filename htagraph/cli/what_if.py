"""``htagraph what-if``: how fast the job would be if something were different."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, read, refuse_input, show
from htagraph.cli.targets import Counters, Drawn, Perfetto, need_perfetto
from htagraph.cli.verbs import Verb
from htagraph.output.wording import what_if as wording
from htagraph.whatif.options import CHANGES, Change, Sweep, read_sweep

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.output.export.perfetto import Written
    from htagraph.output.report import Report
    from htagraph.whatif.outcome import Outcome

__all__ = ["COMMAND", "WhatIfCommand", "report", "what_if"]

_GIVEN = "htagraph.whatif.changes"


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


_OPTIONS = {f"change_{option.replace('-', '_')}": option for option in CHANGES}
"""Options by the name of their parameter."""
_PANEL = "Changes, applied in the order given; each may be repeated"


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
    from htagraph.whatif.scenario import what_if as scenario_of

    if asked is not None:
        from htagraph.cli.sweeps import sweep_report

        show(sweep_report(graph, asked, changes, texts), form, output, paths)
        return
    scenarios = [scenario_of(graph)]
    for change in changes:
        scenarios.append(change.apply(scenarios[-1]))
    outcomes = [scenario.run() for scenario in scenarios]
    written = None if perfetto is None else _written(outcomes[-1], perfetto, counters=counters)
    show(report(outcomes, texts, top=top), form, output, paths, lambda: outcomes[-1])
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


def report(outcomes: Sequence[Outcome], texts: Sequence[str], *, top: int = 5) -> Report:
    """Return the report on changes.

    Args:
        outcomes: that without any change, and that after each change.
        texts: the changes in words.
        top: kernels of the critical path named.
    """
    from htagraph.analyses.critical_path import critical_path
    from htagraph.findings.verbs import what_if as findings
    from htagraph.output.report import Wording, report_on
    from htagraph.queries.path_segments import bound_of

    after = outcomes[-1]
    paths = critical_path(after.baseline), after.critical_path()
    bounds = _bounds(paths[0].summary(), paths[1].summary(), top)
    tables = {
        "prediction": _prediction(after),
        "changes": _changes(outcomes, texts),
        "step_times": after.step_times(),
        "bounds": bounds,
    }
    brief = tables | {"step_times": _by_step(tables["step_times"])}
    brief |= {f"bounds_{group}": rows.drop(columns="group").rename(columns={"key": group})
              for group, rows in bounds.groupby("group", sort=False)}  # fmt: skip
    del brief["bounds"]
    if len(texts) == 1:
        del brief["changes"]
    notes = list(after.notes)
    sentences = findings.sentences(after, *map(bound_of, paths))
    return report_on(
        after.baseline, "what-if", tables, [*sentences, *(f"Note: {note}" for note in notes)],
        figures={"notes": notes}, brief=brief, wording=Wording(wording.TITLES),
    )  # fmt: skip


def _prediction(after: Outcome) -> pd.DataFrame:
    import pandas as pd

    row: dict[str, Any] = {
        "baseline_us": after.baseline_ns / 1000,
        "predicted_us": after.makespan_ns / 1000,
        "saved_us": after.saved_ns / 1000,
        "speedup": after.speedup,
        "low": after.low,
        "high": after.high,
        "baseline_step_us": after.baseline_mean_step_ns / 1000,
        "predicted_step_us": after.mean_step_ns / 1000,
    }
    if after.state.jitter:
        row |= {"p50_us": after.p50_ns / 1000, "p99_us": after.p99_ns / 1000}
    return pd.DataFrame([row])


def _changes(outcomes: Sequence[Outcome], texts: Sequence[str]) -> pd.DataFrame:
    """Return what each change adds to those before it."""
    import pandas as pd

    rows = [
        (text, new.makespan_ns / 1000, (old.makespan_ns - new.makespan_ns) / 1000, new.speedup)
        for text, old, new in zip(texts, outcomes, outcomes[1:], strict=False)
    ]
    return pd.DataFrame(rows, columns=["change", "predicted_us", "saved_us", "speedup"])


def _by_step(times: pd.DataFrame) -> pd.DataFrame:
    """Return each step's time from the first rank's start to the last rank's end."""
    ends = times.groupby("step", as_index=False).agg(
        start=("start_us", "min"), end=("end_us", "max"), new_start=("predicted_start_us", "min"),
        new_end=("predicted_end_us", "max"),
    )  # fmt: skip
    table = ends[["step"]].copy()
    table["recorded_us"], table["predicted_us"] = ends["end"] - ends["start"], ends["new_end"] - ends["new_start"]
    table["speedup"] = table["recorded_us"] / table["predicted_us"]
    return table


def _bounds(before: pd.DataFrame, after: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the critical path's shares before and after (summaries of it): by category, rank and kernel."""
    import pandas as pd

    tables = []
    for group in ("category", "rank", "kernel"):
        old, new = (
            path[path["group"] == group].set_index("key")[["time_us", "share_percent"]] for path in (before, after)
        )
        both = old.add_prefix("before_").join(new.add_prefix("after_"), how="outer").astype("float64").fillna(0.0)
        both = both.drop(index="none", errors="ignore")
        largest = both[["before_time_us", "after_time_us"]].max(axis=1).sort_values(ascending=False, kind="stable")
        both = both.loc[largest.head(top).index]
        tables.append(both.rename_axis("key").reset_index().assign(group=group))
    columns = ["group", "key", "before_time_us", "after_time_us", "before_share_percent", "after_share_percent"]
    return pd.concat(tables, ignore_index=True)[columns]
