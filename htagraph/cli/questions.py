"""Verbs that read a job, make one report on it and show that: each is a row."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from htagraph.cli.options import given, read, read_on
from htagraph.cli.writing import show

if TYPE_CHECKING:
    from pathlib import Path

    from htagraph.cli.writing import Format

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True)
class Question:
    """A verb whose answer is a report on a job."""

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
        if scheduler is not None:
            job = read_on(scheduler, paths, ranks, steps)
            report = resolve_name(f"htagraph.output.{self.on_workers}")(job, **options)
        else:
            graph = read(paths, ranks, steps)
            report = resolve_name(f"htagraph.output.{self.report}")(graph, given(paths, ranks, steps), **options)
        show(report, form, output, paths)


QUESTIONS: Mapping[str, Question] = {
    "opportunities": Question(
        "reports.ranks:opportunities_report",
        "What to improve first, by largest possible gain: kernels, operators, ranks, process groups, host phases.",
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
    "kernels": Question(
        "reports.device_time:kernels_report",
        "Where device time goes: by kernel, by rank, or by the operator, shape, module or annotation that launched it.",
        top=20,
        options={"by": "name"},
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
        options={"peak_tflops": None, "peak_gbs": None},
    ),
    "phases": Question(
        "reports.device_time:phases_report",
        "How long phases take, such as prefill and decode or what your annotations name, and how busy the device is.",
        options={"annotation": None},
    ),
}
