"""HTA's TraceDiff, on htagraph: the same classes, arguments and results.

`htagraph.compare` and `htagraph.diff` compare whole jobs, per rank and step, and say why one is slower.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from htagraph.hta.common.trace import Trace
from htagraph.hta.shapes.diff import DeviceType, brief_frame, compared, events_of, groups_of, ops_summary, steps_of

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["DeviceType", "LabeledTrace", "TraceDiff", "TraceDir"]

TraceDir: TypeAlias = str
Some: TypeAlias = int | list[int] | None

_log = logging.getLogger(__name__)


class LabeledTrace:
    """A job with a label; all its events, those of the last profiler step too.

    Args:
        label: what the columns of results begin with; ``t`` and a number if not given.
        t: a job that was read, such as `TraceAnalysis.t`.
        trace_dir: a folder to read, where no job is given.

    Raises:
        ValueError: neither a job nor a folder is given.
    """

    _made = 0

    def __init__(self, label: str | None = None, t: Trace | None = None, trace_dir: str | None = None) -> None:
        import pandas as pd

        if t is None and (trace_dir is None or not Path(trace_dir).is_dir()):
            msg = f"trace_dir={trace_dir!r} is no folder, and no trace was given: pass one of them"
            raise ValueError(msg)
        if not label:
            LabeledTrace._made += 1
            label = f"t{LabeledTrace._made - 1}"
        self.label: str = label
        self._brief: dict[int, pd.DataFrame] = {}
        self.t: Trace = getattr(t, "t", t) if t is not None else _read(str(trace_dir))  # a TraceAnalysis has one
        self.s_map: pd.Series[int] = pd.Series(self.t.symbol_table.get_sym_id_map())
        self.s_tab: pd.Series[str] = pd.Series(self.t.symbol_table.get_sym_table())
        self.iteration_df: pd.DataFrame = steps_of(self.t.symbol_table)

    def ranks(self) -> list[int]:
        """Return the ranks, ascending."""
        return self.t.get_ranks()

    def iterations(self) -> list[int]:
        """Return the numbers of the profiler steps, ascending."""
        return sorted(self.iteration_df["iteration"].tolist())

    def extract_ops(
        self, rank: Some = None, iteration: Some = None, device_type: DeviceType = DeviceType.ALL
    ) -> pd.DataFrame:
        """Return the events of some ranks and profiler steps, as rows of HTA's frame.

        Args:
            rank: one or several; the first if not given.
            iteration: one or several numbers of profiler steps; the first if not given.
            device_type: all, or those on the ``CPU`` or ``GPU``.

        Raises:
            ValueError: there is no such rank or step, or none at all.
        """
        frames = {number: self.t.job.frame(number) for number in self._ranks(rank)}
        return events_of(frames, self._iterations(iteration), device_type, self.t.symbol_table).copy()

    def get_ops_summary(self, ops: pd.DataFrame) -> pd.DataFrame:
        """Return ``counts`` and ``total_duration`` (µs) of events by ``cat`` and ``name``.

        Args:
            ops: a result of `extract_ops`.
        """
        return ops_summary(ops, self.t.symbol_table)

    def _summary(self, rank: Some, iteration: Some, device_type: DeviceType) -> pd.DataFrame:
        """Return `get_ops_summary` of `extract_ops`, without the columns that it does not read."""
        ranks = self._ranks(rank)
        for each in ranks:
            if each not in self._brief:
                self._brief[each] = brief_frame(self.t, each)
        frames = {each: self._brief[each] for each in ranks}
        return self.get_ops_summary(events_of(frames, self._iterations(iteration), device_type, self.t.symbol_table))

    def _ranks(self, wanted: Some) -> list[int]:
        return self._chosen(wanted, self.ranks(), "rank")

    def _iterations(self, wanted: Some) -> list[int]:
        return self._chosen(wanted, self.iterations(), "iteration")

    def _chosen(self, wanted: Some, known: Sequence[int], what: str) -> list[int]:
        if wanted is None:
            if not known:
                msg = f"{self.label}: the trace has no {what}; htagraph.compare compares whole jobs without"
                raise ValueError(msg)
            return [known[0]]
        chosen = [wanted] if isinstance(wanted, int) else wanted
        if not isinstance(chosen, list) or not chosen or any(number not in known for number in chosen):
            msg = f"{what}={wanted!r}: choose one or a list of {', '.join(map(str, known)) or 'none'}"
            raise ValueError(msg)
        return chosen


class TraceDiff:
    """Compares two jobs; each is a folder, a job that was read, or a `LabeledTrace`."""

    @classmethod
    def compare_traces(
        cls,
        control: LabeledTrace | Trace | TraceDir,
        test: LabeledTrace | Trace | TraceDir,
        control_rank: Some = None,
        test_rank: Some = None,
        control_iteration: Some = None,
        test_iteration: Some = None,
        device_type: DeviceType = DeviceType.ALL,
        use_short_name: bool = False,
    ) -> pd.DataFrame:
        """Return how often and how long each operator and kernel occurs in two jobs.

        Args:
            control: a job; its label is ``Control`` unless it has one.
            test: another; its label is ``Test`` unless it has one.
            control_rank: one or several ranks; the first if not given.
            test_rank: the same of the other job.
            control_iteration: one or several profiler steps; the first if not given.
            test_iteration: the same of the other job.
            device_type: all events, or those on the ``CPU`` or ``GPU``.
            use_short_name: compare by name without template arguments, parameters and return type.

        Returns:
            Indexed by ``name`` or ``short_name``: ``<label>_counts`` and ``<label>_total_duration`` (µs) of both,
            ``diff_counts``, ``diff_duration`` (test - control), ``counts_change_categories`` (``+``, ``-`` or ``=``).
            Counts are sums over the ranks and steps chosen.

        Raises:
            ValueError: a rank or step is not there, or a job is none of the three.
        """
        pair, labels = _labelled(control, test)
        chosen = ((control_rank, control_iteration), (test_rank, test_iteration))
        summaries = [
            job._summary(rank, iteration, device_type) for job, (rank, iteration) in zip(pair, chosen, strict=True)
        ]
        return compared(summaries, labels, "short_name" if use_short_name else "name")

    @classmethod
    def ops_diff(
        cls,
        control: LabeledTrace | Trace | TraceDir,
        test: LabeledTrace | Trace | TraceDir,
        control_rank: Some = None,
        test_rank: Some = None,
        control_iteration: Some = None,
        test_iteration: Some = None,
        device_type: DeviceType = DeviceType.ALL,
    ) -> dict[str, list[str]]:
        """Return the names that two jobs do not have equally often; the arguments are those of `compare_traces`.

        Returns:
            Lists of names: ``added`` (only in the test), ``deleted`` (only in the control), ``increased``,
            ``decreased`` (in both, more or less often in the test) and ``unchanged``.

        Raises:
            ValueError: a rank or step is not there, or a job is none of the three.
        """
        pair, labels = _labelled(control, test)
        ranks_and_steps = (control_rank, test_rank, control_iteration, test_iteration)
        return groups_of(cls.compare_traces(*pair, *ranks_and_steps, device_type), labels)

    @classmethod
    def visualize_counts_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,
        export_image_path: str | None = None,
    ) -> None:
        """Show how often each name occurs in two jobs, as bars.

        Args:
            df: a result of `compare_traces`.
            show_image: show it.
            export_image_path: write it to this file: a page if it ends with ``.html``, else an image.
        """
        from htagraph.output.plot.hta_shapes.diff import counts_diff

        _show(counts_diff(df), export_image_path, show_image=show_image)

    @classmethod
    def visualize_duration_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,
        export_image_path: str | None = None,
    ) -> None:
        """Show how long each name takes in two jobs, as bars; the arguments are those of `visualize_counts_diff`."""
        from htagraph.output.plot.hta_shapes.diff import duration_diff

        _show(duration_diff(df), export_image_path, show_image=show_image)


def _read(folder: str) -> Trace:
    from htagraph.hta.shapes.job import open_job

    return Trace.of(open_job(trace_dir=folder, whole=True))


def _labelled(
    control: LabeledTrace | Trace | TraceDir, test: LabeledTrace | Trace | TraceDir
) -> tuple[tuple[LabeledTrace, LabeledTrace], tuple[str, str]]:
    """Return both jobs, and labels that differ."""
    pair = _labeled_trace(control, "Control"), _labeled_trace(test, "Test")
    first, second = (job.label for job in pair)
    if first == second:
        first, second = f"{first}_control", f"{second}_test"
        _log.warning("both jobs have the label %s: their columns begin with %s and %s", pair[0].label, first, second)
    return pair, (first, second)


def _labeled_trace(job: LabeledTrace | Trace | TraceDir, label: str) -> LabeledTrace:
    if isinstance(job, LabeledTrace):
        return job
    if isinstance(job, TraceDir):
        return LabeledTrace(label, trace_dir=job)
    if isinstance(job, Trace):
        return LabeledTrace(label, t=job)
    msg = f"{job!r} is neither a folder, nor a trace, nor a LabeledTrace"
    raise ValueError(msg)


def _show(figure: Figure, path: str | None, *, show_image: bool) -> None:
    from htagraph.output.plot.hta_shapes.show import show

    if show_image:
        show(figure)
    if path:
        figure.write_html(path) if path.endswith(".html") else figure.write_image(path)
