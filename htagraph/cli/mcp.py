"""``htagraph mcp``: a server that agents ask about jobs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from htagraph.core.errors import HtagraphError
from htagraph.core.words import nearest_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.service.mcp_server import Answers
    from htagraph.whatif.options import Change

__all__ = ["answers", "mcp", "read_change"]

_CHANGE = re.compile(r"-{0,2}([a-z][a-z-]*)(?:[ =](.*))?", re.DOTALL)
_MOST = {"scale_ranks": ("n", 4_096), "jitter": ("runs", 200)}
"""Method of a change → its argument that says how much work it is, and the most that is done. Chosen: seconds, and
the largest job that is reasonable to extrapolate to. Doubled, one question may keep the server busy for minutes."""


def mcp(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Folders and files that may be read, and all in them; default: here.", show_default=False),
    ] = None,
    *,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read the files even if an earlier command did, and keep nothing.")
    ] = False,
) -> None:
    """Serve these folders to an agent over standard input and output (Model Context Protocol), read-only.

    Example of a client's settings: {"mcpServers": {"htagraph": {"command": "htagraph", "args": ["mcp", "/data/runs"]}}}
    """
    try:
        import mcp.server.mcpserver  # noqa: F401 - asks whether it is there, and new enough
    except ImportError:
        msg = "the server needs a package more: pip install 'htagraph[mcp]'"
        raise HtagraphError(msg) from None
    from htagraph.service.folders import Folders
    from htagraph.service.mcp_server import mcp_server

    mcp_server(Folders.of(paths or ["."]), answers(), cache=not no_cache).run("stdio")


def answers() -> Answers:
    """Return how the commands answer, as the server asks them."""
    from htagraph.service.mcp_server import Answers

    ranked: dict[str, Callable[[DependencyGraph, int], dict[str, Any]]] = {
        "summary": _summary, "stragglers": _stragglers, "idle": _idle, "collectives": _collectives,
        "opportunities": _opportunities,
    }  # fmt: skip
    return Answers(ranked, _critical_path, _kernels, _what_if, _diff, _validate)


def read_change(text: str) -> Change:
    """Return the change that an option of ``htagraph what-if`` and its value mean, without or with dashes.

    Raises:
        HtagraphError: there is no such option, its value cannot be read, or it asks for too much work.

    Example:
        >>> read_change("--network 0.5").options, read_change("network=0.5").options
        ({'factor': 0.5}, {'factor': 0.5})
    """
    from htagraph.whatif.options import CHANGES

    match = _CHANGE.fullmatch(text.strip())
    option = match[1] if match else ""
    if not match or option not in CHANGES:
        msg = f"{text[:100]!r} is no change; choose from {', '.join(CHANGES)}{nearest_words(option, list(CHANGES))}"
        raise HtagraphError(msg)
    value = (match[2] or "").strip()
    if (CHANGES[option].value == "required") > bool(value):
        msg = f"{option}: its value is missing: {option} {CHANGES[option].metavar}"
        raise HtagraphError(msg)
    if CHANGES[option].value == "none" and value:
        msg = f"{option}: takes no value"
        raise HtagraphError(msg)
    try:
        change = CHANGES[option].read(value)
    except ValueError as error:
        msg = f"{option}: {error}"
        raise HtagraphError(msg) from None
    if "regex" in change.options:
        msg = "regex= is not available here, because searching may take for ever: use globs, such as name=*gemm*"
        raise HtagraphError(msg)
    name, most = _MOST.get(change.method, ("", 0))
    if change.options.get(name, 0) > most:
        msg = f"{option}: at most {most} here; ask on the command line: htagraph what-if PATH --{option} …"
        raise HtagraphError(msg)
    return change


def _summary(graph: DependencyGraph, top: int) -> dict[str, Any]:
    from htagraph.output.summary import summarize

    return summarize(graph, top=top).to_dict()


def _stragglers(graph: DependencyGraph, top: int) -> dict[str, Any]:
    from htagraph.analyses.stragglers import stragglers
    from htagraph.cli.stragglers import report

    return report(graph, stragglers(graph), _INPUTS, top=top).to_dict()


def _idle(graph: DependencyGraph, top: int) -> dict[str, Any]:
    from htagraph.cli.idle import report

    return report(graph, _INPUTS, top=top).to_dict()


def _collectives(graph: DependencyGraph, top: int) -> dict[str, Any]:
    from htagraph.analyses.collectives import collectives
    from htagraph.cli.collectives import report

    return report(graph, collectives(graph), _INPUTS, top=top, each=True).to_dict()


def _opportunities(graph: DependencyGraph, top: int) -> dict[str, Any]:
    from htagraph.cli.opportunities import report
    from htagraph.whatif.opportunities import opportunities

    return report(graph, opportunities(graph, top=top), _INPUTS).to_dict()


def _critical_path(graph: DependencyGraph, steps: list[int] | None, top: int) -> dict[str, Any]:
    from htagraph.analyses.critical_path import critical_path
    from htagraph.cli.critical_path import report

    return report(critical_path(graph, steps=steps), _INPUTS, top=top, segments=True).to_dict()


def _kernels(graph: DependencyGraph, by: str, top: int) -> dict[str, Any]:
    from htagraph.cli.kernels import By, report

    return report(graph, _INPUTS, by=By(by), top=top).to_dict()


def _what_if(graph: DependencyGraph, changes: list[str], top: int) -> dict[str, Any]:
    from htagraph.cli.what_if import report
    from htagraph.whatif.scenario import what_if

    scenarios = [what_if(graph)]
    for change in [read_change(text) for text in changes]:
        scenarios.append(change.apply(scenarios[-1]))
    return report([scenario.run() for scenario in scenarios], changes, top=top).to_dict()


def _diff(graphs: tuple[DependencyGraph, DependencyGraph], paths: tuple[str, str], top: int) -> dict[str, Any]:
    from htagraph.analyses.differences import compare, diff
    from htagraph.cli.diff import report

    return report(diff(*graphs), compare(*graphs, by="short_name"), paths, top=top).to_dict()


def _validate(path: str) -> dict[str, Any]:
    from htagraph.output.report import envelope
    from htagraph.output.validation import validate

    result = validate(path)
    tables = {"files": result.files, "support": result.support}
    return envelope("validate", result.files.head(0), result.files, 0.0, {"usable": result.usable, **tables})


_INPUTS = ("PATH",)
"""What stands for a job in commands that conclusions suggest."""
