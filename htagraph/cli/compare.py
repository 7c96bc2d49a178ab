"""``htagraph compare``: how often and how long each name runs in two jobs."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from htagraph.cli.options import Form, Ranks, Top, chosen, read, show
from htagraph.cli.targets import Output
from htagraph.output.wording import compare as wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["compare", "report"]


class By(str, Enum):
    """What a row is."""

    NAME = "name"
    SHORT = "short"
    PATH = "path"


class Device(str, Enum):
    """Where activities ran."""

    ALL = "all"
    HOST = "host"
    DEVICE = "device"


_BY: dict[By, Literal["name", "short_name", "path"]] = {By.NAME: "name", By.SHORT: "short_name", By.PATH: "path"}


def compare(  # noqa: PLR0913 - one argument per option
    before: Annotated[str, typer.Argument(help="The job before: a folder, a file or a glob.", show_default=False)],
    after: Annotated[str, typer.Argument(help="The job after, likewise.", show_default=False)],
    *,
    by: Annotated[By, typer.Option("--by", help="Name, name without template arguments, or call path.")] = By.SHORT,
    device: Annotated[Device, typer.Option("--device", help="Only what ran there.")] = Device.ALL,
    steps: Annotated[
        str | None,
        typer.Option("--steps", metavar="STEPS", help="Only from the first to the last of these steps, of both."),
    ] = None,
    steps_after: Annotated[
        str | None, typer.Option("--steps-after", metavar="STEPS", help="Those of the job after, if others.")
    ] = None,
    ranks: Ranks = None,
    top: Top = 20,
    form: Form = None,
    output: Output = None,
) -> None:
    """How often and how long operators, kernels and annotations run in two jobs, by name; diff says why steps differ.

    Example: htagraph compare before/ after/ --device device
    """
    numbers, later = chosen(steps, "--steps"), chosen(steps_after, "--steps-after")
    some = chosen(ranks, "--ranks")
    graphs = [read([path], None, None) for path in (before, after)]
    from htagraph.analyses.differences import compare as table_of

    table = table_of(
        graphs[0], graphs[1], by=_BY[by], device=device.value, steps=numbers, steps_after=later, ranks=some
    )
    show(report(graphs, table, (before, after), top=top), form, output, [before, after])


def report(graphs: Sequence[DependencyGraph], table: pd.DataFrame, inputs: Sequence[str], *, top: int = 20) -> Report:
    """Return the report on the result of `htagraph.compare`.

    Args:
        graphs: the two jobs.
        table: what is reported.
        inputs: the two jobs as they were named.
        top: rows that are shown.
    """
    import pandas as pd

    from htagraph.findings.verbs import compare as findings
    from htagraph.output.report import Report, Wording
    from htagraph.queries.inputs import inputs_of, issues_of, window_us

    sides = list(zip(("before", "after"), graphs, strict=True))
    read_from, issues = (
        pd.concat([each(graph).assign(job=side) for side, graph in sides], ignore_index=True)
        for each in (inputs_of, issues_of)
    )
    unlike = table[(table["change_per_step_us"] != 0) | (table["change"] != "same")].head(top)
    columns = [
        "name", "before_per_step_count", "after_per_step_count", "before_per_step_us", "after_per_step_us",
        "change_per_step_us", "change",
    ]  # fmt: skip
    return Report(
        "compare", read_from, issues, window_us(graphs[1]), {"names": table}, findings.sentences(table, inputs), {},
        {"names": unlike[columns].rename(columns={"change": "occurs"})}, Wording(wording.TITLES, wording.HEADINGS),
    )  # fmt: skip
