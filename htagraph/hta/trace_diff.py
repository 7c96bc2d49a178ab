"""HTA's TraceDiff, on htagraph: the same classes, arguments and results.

`htagraph.compare` and `htagraph.diff` compare whole jobs, per rank and step, and say why one is slower.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.hta.common.trace import Trace
from htagraph.hta.shapes import figures
from htagraph.hta.shapes.frame import frame_of, whole
from htagraph.hta.shapes.job import open_job
from htagraph.hta.shapes.names import is_step, shorten, step_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["DeviceType", "LabeledTrace", "TraceDiff", "TraceDir"]

TraceDir: TypeAlias = str
Some: TypeAlias = int | list[int] | None

_NOT_DEVICE = (
    "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "mtia_runtime", "cuda_sync",
)  # fmt: skip
_log = logging.getLogger(__name__)


class DeviceType(Enum):
    """Whose events are compared."""

    CPU = 1
    GPU = 2
    ALL = 3


class LabeledTrace:
    """A job with a label, and all its events, the last profiler step included.

    Args:
        label: what the columns of results begin with; ``t`` and a number if not given.
        t: a job that was read, such as `TraceAnalysis.t`.
        trace_dir: a folder to read, where no job is given.

    Raises:
        ValueError: neither a job nor a folder is given.
    """

    _made = 0

    def __init__(self, label: str | None = None, t: Trace | None = None, trace_dir: str | None = None) -> None:
        if t is None and (trace_dir is None or not Path(trace_dir).is_dir()):
            msg = f"trace_dir={trace_dir!r} is no folder, and no trace was given: pass one of them"
            raise ValueError(msg)
        if not label:
            LabeledTrace._made += 1
            label = f"t{LabeledTrace._made - 1}"
        self.label: str = label
        self._brief = cache(lambda rank: frame_of(self.t.job, rank, from_file=False))
        read = Trace.of(open_job(trace_dir=str(trace_dir), whole=True)) if t is None else t
        self.t: Trace = getattr(read, "t", read)  # a TraceAnalysis has one
        numbers = self.t.symbol_table.get_sym_id_map()
        self.s_map: pd.Series[int] = pd.Series(numbers)
        self.s_tab: pd.Series[str] = pd.Series(self.t.symbol_table.get_sym_table())
        steps = [symbol for symbol in numbers if is_step(symbol) and step_of(symbol) >= 0]
        self.iteration_df = pd.DataFrame({
            "symbol": pd.array(steps, dtype="str"),
            "id": np.array([numbers[symbol] for symbol in steps], np.int64),
            "iteration": np.array([step_of(symbol) for symbol in steps], np.int64),
        })  # fmt: skip

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

        Events on a stream are the device's. Operators that name a stream, and records of synchronization, are the
        host's: HTA counts both as device work.

        Args:
            rank: one or several; the first if not given. The rows of several ranks come one rank after the other, with
                the columns ``rank`` and ``idx`` first.
            iteration: one or several numbers of profiler steps; the first if not given.
            device_type: all events, or events on the ``CPU`` or ``GPU``.

        Raises:
            ValueError: there is no such rank or step, or the job has no rank or step at all.
        """
        frames = {number: self.t.job.frame(number) for number in self._chosen(rank, self.ranks(), "rank")}
        return self._events(frames, iteration, device_type).copy()

    def get_ops_summary(self, ops: pd.DataFrame) -> pd.DataFrame:
        """Return ``counts`` and ``total_duration`` (µs) of events by ``cat`` and ``name``.

        Args:
            ops: a result of `extract_ops`.

        Returns:
            One row per category and name in the order of their numbers: ``cat``, ``name``, ``short_name``, ``counts``,
            ``total_duration`` (integers where all are whole), ``cat_id``, ``name_id``.
        """
        words = self.t.symbol_table.get_sym_table()
        category, name = ops["cat"].to_numpy(np.int64), ops["name"].to_numpy(np.int64)
        pairs, row = np.unique(category * len(words) + name, return_inverse=True)
        categories, numbers = np.divmod(pairs, max(len(words), 1))
        names = [words[i] for i in numbers]
        return pd.DataFrame({
            "cat": pd.array([words[i] for i in categories], dtype="str"),
            "name": pd.array(names, dtype="str"),
            "short_name": pd.array([shorten(name) for name in names], dtype="str"),
            "counts": np.bincount(row, minlength=len(pairs)),
            "total_duration": whole(np.bincount(row, ops["dur"].to_numpy(np.float64), len(pairs))),
            "cat_id": categories,
            "name_id": numbers,
        })  # fmt: skip

    def _summary(self, rank: Some, iteration: Some, device_type: DeviceType) -> pd.DataFrame:
        """Return `get_ops_summary` of `extract_ops`, without reading the arguments that are still in the file."""
        frames = {each: self._brief(each) for each in self._chosen(rank, self.ranks(), "rank")}
        return self.get_ops_summary(self._events(frames, iteration, device_type))

    def _events(self, frames: dict[int, pd.DataFrame], iteration: Some, device_type: DeviceType) -> pd.DataFrame:
        """Return the rows of some steps and devices."""
        iterations = self._chosen(iteration, self.iterations(), "iteration")
        numbers = self.t.symbol_table.get_sym_id_map()
        not_device = [numbers[word] for word in _NOT_DEVICE if word in numbers]
        parts = []
        for frame in frames.values():
            wanted = frame["iteration"].isin(iterations)
            if device_type is not DeviceType.ALL:
                on_device = frame["stream"].ne(-1) & ~frame["cat"].isin(not_device)
                wanted &= on_device if device_type is DeviceType.GPU else ~on_device
            parts.append(frame[wanted])
        return parts[0] if len(parts) == 1 else pd.concat(parts, keys=list(frames), names=["rank", "idx"]).reset_index()

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


Side: TypeAlias = LabeledTrace | Trace | TraceDir


class TraceDiff:
    """Compares two jobs; each is a folder, a job that was read, or a `LabeledTrace`."""

    @classmethod
    def compare_traces(
        cls,
        control: Side,
        test: Side,
        control_rank: Some = None,
        test_rank: Some = None,
        control_iteration: Some = None,
        test_iteration: Some = None,
        device_type: DeviceType = DeviceType.ALL,
        use_short_name: bool = False,
    ) -> pd.DataFrame:
        """Return how often and how long each operator and kernel occurs in two jobs.

        Args:
            control: the first job; its label is ``Control`` if the job has no label.
            test: the second job; its label is ``Test`` if the job has no label.
            control_rank: one or several ranks; the first if not given.
            test_rank: the same of the other job.
            control_iteration: one or several profiler steps; the first if not given.
            test_iteration: the same of the other job.
            device_type: all events, or events on the ``CPU`` or ``GPU``.
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
        by = "short_name" if use_short_name else "name"
        summaries = [
            job._summary(rank, iteration, device_type) for job, (rank, iteration) in zip(pair, chosen, strict=True)
        ]
        sides = [each.groupby(by)[["counts", "total_duration"]].sum() for each in summaries]
        names = sides[0].index.append(sides[1].index.difference(sides[0].index, sort=False))
        sides = [each if each.index.equals(names) else each.reindex(names).fillna(0) for each in sides]
        columns: dict[str, Any] = {}
        for label, side in zip(labels, sides, strict=True):
            columns |= {f"{label}_counts": side["counts"], f"{label}_total_duration": side["total_duration"]}
        columns["diff_counts"] = sides[1]["counts"] - sides[0]["counts"]
        columns["diff_duration"] = sides[1]["total_duration"] - sides[0]["total_duration"]
        signs = np.sign(columns["diff_counts"].to_numpy()).astype(np.int64)
        columns["counts_change_categories"] = pd.array(np.array(["=", "+", "-"], object)[signs], dtype="str")
        return pd.DataFrame(columns, index=names)

    @classmethod
    def ops_diff(
        cls,
        control: Side,
        test: Side,
        control_rank: Some = None,
        test_rank: Some = None,
        control_iteration: Some = None,
        test_iteration: Some = None,
        device_type: DeviceType = DeviceType.ALL,
    ) -> dict[str, list[str]]:
        """Return the names that two jobs do not have equally often; it takes the arguments of `compare_traces`.

        Returns:
            Lists of names: ``added`` (only in the test), ``deleted`` (only in the control), ``increased``,
            ``decreased`` (in both, more or less often in the test) and ``unchanged``.

        Raises:
            ValueError: a rank or step is not there, or a job is none of the three.
        """
        pair, labels = _labelled(control, test)
        ranks_and_steps = (control_rank, test_rank, control_iteration, test_iteration)
        table = cls.compare_traces(*pair, *ranks_and_steps, device_type)
        before, after = (table[f"{label}_counts"] for label in labels)
        groups = {
            "added": (before == 0) & (after > 0),
            "deleted": (before > 0) & (after == 0),
            "increased": (before > 0) & (after > before),
            "decreased": (after > 0) & (after < before),
            "unchanged": (after > 0) & (after == before),
        }
        return {group: table.index[mask].tolist() for group, mask in groups.items()}

    @classmethod
    def visualize_counts_diff(
        cls, df: pd.DataFrame, show_image: bool = True, export_image_path: str | None = None
    ) -> None:
        """Show how often each name occurs in two jobs, as bars.

        Args:
            df: a result of `compare_traces`.
            show_image: show it.
            export_image_path: write it to this file: a page if it ends with ``.html``, else an image.
        """
        _show(figures.counts_diff(df), export_image_path, show_image=show_image)

    @classmethod
    def visualize_duration_diff(
        cls, df: pd.DataFrame, show_image: bool = True, export_image_path: str | None = None
    ) -> None:
        """Show how long each name takes in two jobs, as bars; it takes the arguments of `visualize_counts_diff`."""
        _show(figures.duration_diff(df), export_image_path, show_image=show_image)


def _labelled(control: Side, test: Side) -> tuple[tuple[LabeledTrace, LabeledTrace], tuple[str, str]]:
    """Return both jobs, and labels that differ."""
    pair = _labeled_trace(control, "Control"), _labeled_trace(test, "Test")
    first, second = (job.label for job in pair)
    if first == second:
        first, second = f"{first}_control", f"{second}_test"
        _log.warning("both jobs have the label %s: their columns begin with %s and %s", pair[0].label, first, second)
    return pair, (first, second)


def _labeled_trace(job: Side, label: str) -> LabeledTrace:
    if isinstance(job, LabeledTrace):
        return job
    if isinstance(job, TraceDir):
        return LabeledTrace(label, trace_dir=job)
    if isinstance(job, Trace):
        return LabeledTrace(label, t=job)
    msg = f"{job!r} is neither a folder, nor a trace, nor a LabeledTrace"
    raise ValueError(msg)


def _show(figure: Figure, path: str | None, *, show_image: bool) -> None:
    if show_image:
        figures.show(figure)
    if path:
        figures.write(figure, path)
