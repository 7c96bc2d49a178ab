"""The columns that a ParserConfig asks for, in the place of HTA's default ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.hta.configs.default_values import AttributeSpec, ValueType
from htagraph.hta.configs.parser_config import AVAILABLE_ARGS, ParserConfig
from htagraph.hta.shapes.frame import smallest_type

if TYPE_CHECKING:
    from htagraph.hta.shapes.job import HtaJob

from htagraph.trace.readers import reader_of

__all__ = ["parsed_frame"]


_DEFAULT = {spec.name: spec for spec in ParserConfig.ARGS_DEFAULT}


def parsed_frame(job: HtaJob, rank: int, config: ParserConfig) -> pd.DataFrame:
    """Return a copy of a rank's frame with the columns of arguments that a configuration asks for.

    The file is read again where it asks for arguments that are not among HTA's default ones. The columns of the frame
    that hold no arguments (``index``, ``cat``, ``ts``, ...) stay.

    Args:
        job: the job.
        rank: one of its ranks.
        config: which arguments.

    Raises:
        TraceError: the file has to be read again and is gone or was changed.
    """
    frame = job.frame(rank).copy()
    specs = config.get_args()
    if not config.parse_all_args and specs == list(_DEFAULT.values()):
        return frame
    from_file = None
    if config.parse_all_args or any(spec.name not in _DEFAULT for spec in specs):
        trace = job.of_rank(rank)
        from_file = reader_of(trace).category_arguments(trace.unchanged_path()).reindex(frame["index"])
    if config.parse_all_args and from_file is not None:
        specs = _all_specs(from_file)
    columns = {spec.name: _column(frame, from_file, spec) for spec in specs}
    fixed = [name for name in frame.columns if name not in _DEFAULT]
    columns = {name: values for name, values in columns.items() if name not in fixed}
    front = fixed[: fixed.index("dur") + 1]
    return pd.concat([frame[front], pd.DataFrame(columns, index=frame.index), frame[fixed[len(front) :]]], axis=1)


def _all_specs(from_file: pd.DataFrame) -> list[AttributeSpec]:
    """Return every argument that an event has: those that HTA knows in its order, then the others."""
    known = {spec.raw_name: spec for spec in AVAILABLE_ARGS.values() if spec.raw_name != "name"}
    keys = from_file.columns[from_file.notna().any()].tolist()
    out = [spec for raw_name, spec in known.items() if raw_name in keys]
    others = [key for key in keys if key not in known]
    return out + [ParserConfig.make_attribute_spec(key, from_file[key].dropna().iloc[0]) for key in others]


def _column(frame: pd.DataFrame, from_file: pd.DataFrame | None, spec: AttributeSpec) -> Array | pd.Series:
    """Return one argument of all events; numbers in the smallest type that holds them."""
    if spec in _DEFAULT.values():
        return frame[spec.name]
    values: Array = np.full(len(frame), None, object)
    has = np.zeros(len(frame), np.bool_)
    if from_file is not None and spec.raw_name in from_file:
        given = from_file[spec.raw_name]
        has = given.notna().to_numpy(np.bool_)
        values[has] = given.to_numpy()[has]
    values[~has] = spec.default_value
    if spec.value_type in (ValueType.Int, ValueType.Float):
        return _numbers(values)
    return values


def _numbers(values: Array) -> Array:
    """Return numbers as integers where all are, else as floats; values that are no numbers stay as they are."""
    if all(isinstance(value, int) for value in values):
        integers = values.astype(np.int64)
        return integers.astype(smallest_type(integers))
    return values.astype(np.float64) if all(isinstance(value, int | float) for value in values) else values
