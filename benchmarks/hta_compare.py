"""Say where two results differ: frames, series, dicts, lists and plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

Value: TypeAlias = Any
RELATIVE = 1e-6
"""Floats that differ by less than this share are equal. Chosen: sums in another order differ by far less,
wrong numbers by far more."""
_absolute = ContextVar("absolute", default=1e-9)


@dataclass(frozen=True)
class Difference:
    """One place where two results differ."""

    place: str
    """Where: keys and column, ``[0]['stream']``."""
    kind: str
    """type, missing, columns, rows, index, order, value, or dtype."""
    hta: str
    ours: str
    """What is there, shortened."""

    def __str__(self) -> str:
        return f"{self.place or 'result'}: {self.kind}: HTA {self.hta}, ours {self.ours}"


def differences(hta: Value, ours: Value, absolute: float = 1e-9) -> list[Difference]:
    """Return where two results differ, by more than 1e-6 of a number and `absolute`: nothing, where they are equal.

    How many bits an integer has is no difference, nor what columns HTA's empty frames happen to have, nor the numbers
    that stand for names where the names are there as well.
    """
    token = _absolute.set(absolute)
    try:
        return list(_differences(hta, ours, ""))
    finally:
        _absolute.reset(token)


def equal(hta: Value, ours: Value, absolute: float = 1e-9) -> bool:
    """Return whether two results differ in nothing but dtypes."""
    return all(each.kind == "dtype" for each in differences(hta, ours, absolute))


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    numbers = [name for name in ("cat", "name", "user_annotation") if {name, f"s_{name}"} <= set(frame.columns)]
    return frame.drop(columns=numbers) if numbers else frame


def _differences(hta: Value, ours: Value, place: str) -> Iterator[Difference]:
    if isinstance(hta, pd.DataFrame) and isinstance(ours, pd.DataFrame):
        yield from _of_frames(hta, ours, place)
    elif isinstance(hta, pd.Series) and isinstance(ours, pd.Series):
        yield from _of_frames(hta.to_frame("value"), ours.to_frame("value"), place)
    elif isinstance(hta, dict) and isinstance(ours, dict):
        for key in [*hta, *(key for key in ours if key not in hta)]:
            here = f"{place}[{key!r}]"
            if key not in hta or key not in ours:
                yield Difference(here, "missing", _shown(hta, key), _shown(ours, key))
            else:
                yield from _differences(hta[key], ours[key], here)
    elif isinstance(hta, list | tuple) and isinstance(ours, list | tuple):
        yield from _of_sequences(hta, ours, place)
    elif not _same(hta, ours):
        yield Difference(place, "type" if type(hta) is not type(ours) else "value", brief(hta), brief(ours))


def _of_sequences(hta: Value, ours: Value, place: str) -> Iterator[Difference]:
    if len(hta) != len(ours):
        yield Difference(place, "rows", f"{len(hta)} {brief(hta)}", f"{len(ours)} {brief(ours)}")
        return
    if any(isinstance(each, pd.DataFrame | pd.Series | list) for each in hta):
        for i, pair in enumerate(zip(hta, ours, strict=True)):
            yield from _differences(*pair, f"{place}[{i}]")
        return
    unequal = [i for i, (a, b) in enumerate(zip(hta, ours, strict=True)) if a != b and not _same(a, b)]
    if unequal:
        first = unequal[0]
        count = f"{len(unequal)} of {len(hta)}, first at {first}: "
        same = sorted(map(str, hta)) == sorted(map(str, ours))
        yield Difference(place, "order" if same else "value", count + brief(hta[first]), brief(ours[first]))


def _of_frames(hta: pd.DataFrame, ours: pd.DataFrame, place: str) -> Iterator[Difference]:
    hta, ours = _named(hta), _named(ours)
    if not len(hta) and not len(ours) and (not hta.shape[1] or list(hta.columns) == list(ours.columns)):
        return  # HTA's empty frames have what columns and dtypes come about
    if list(hta.columns) != list(ours.columns):
        yield Difference(place, "columns", str(list(hta.columns)), str(list(ours.columns)))
        return
    if len(hta) != len(ours):
        yield Difference(place, "rows", str(len(hta)), str(len(ours)))
        return
    if not _equal_columns(hta.index.to_frame(index=False), ours.index.to_frame(index=False)):
        same = sorted(map(repr, hta.index)) == sorted(map(repr, ours.index))
        yield Difference(
            f"{place}.index", "order" if same else "index", brief(list(hta.index)), brief(list(ours.index))
        )
        if not same:
            return
        if hta.index.is_unique:
            ours = ours.loc[hta.index]
    if list(hta.index.names) != list(ours.index.names):
        yield Difference(f"{place}.index", "index", f"names {hta.index.names}", f"names {ours.index.names}")
    found = list(_of_columns(hta, ours, place))
    if any(each.kind == "value" for each in found) and _equal_columns(_sorted(hta), _sorted(ours)):
        yield Difference(place, "order", "rows", "the same rows in another order")
        found = [each for each in found if each.kind == "dtype"]
    yield from found


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the order of what their values read."""
    texts = sorted((repr([brief(cell) for cell in row]), i) for i, row in enumerate(frame.round(6).to_numpy().tolist()))
    return frame.iloc[[i for _, i in texts]].reset_index(drop=True)


def _equal_columns(hta: pd.DataFrame, ours: pd.DataFrame) -> bool:
    return all(not _unequal(hta.iloc[:, k], ours.iloc[:, k]).any() for k in range(hta.shape[1]))


def _of_columns(hta: pd.DataFrame, ours: pd.DataFrame, place: str) -> Iterator[Difference]:
    for k, column in enumerate(hta.columns):
        theirs, mine = hta.iloc[:, k], ours.iloc[:, k]
        here = f"{place}[{column!r}]"
        if theirs.dtype.kind != mine.dtype.kind:  # how many bits an integer has is no matter
            yield Difference(here, "dtype", str(theirs.dtype), str(mine.dtype))
        unequal = _unequal(theirs, mine)
        if unequal.any():
            first = int(np.flatnonzero(unequal)[0])
            count = f"{int(unequal.sum())} of {len(unequal)} rows, first at {hta.index[first]!r}: "
            yield Difference(here, "value", count + brief(theirs.iloc[first]), brief(mine.iloc[first]))


def _unequal(hta: pd.Series[Any], ours: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    numbers = pd.api.types.is_numeric_dtype(hta.dtype) and pd.api.types.is_numeric_dtype(ours.dtype)
    if numbers:
        a, b = hta.to_numpy(dtype=np.float64), ours.to_numpy(dtype=np.float64)
        return ~np.isclose(a, b, rtol=RELATIVE, atol=_absolute.get(), equal_nan=True)
    if hta.dtype == ours.dtype and hta.reset_index(drop=True).equals(ours.reset_index(drop=True)):
        return np.zeros(len(hta), dtype=np.bool_)
    return np.array([not _same(a, b) for a, b in zip(hta, ours, strict=True)], dtype=np.bool_)


def _same(hta: Value, ours: Value) -> bool:
    if isinstance(hta, list | tuple) and isinstance(ours, list | tuple):
        return len(hta) == len(ours) and all(_same(a, b) for a, b in zip(hta, ours, strict=True))
    if isinstance(hta, dict) and isinstance(ours, dict):
        return hta.keys() == ours.keys() and all(_same(hta[key], ours[key]) for key in hta)
    if _absent(hta) or _absent(ours):
        return _absent(hta) and _absent(ours)
    if _number(hta) and _number(ours):
        return math.isclose(float(hta), float(ours), rel_tol=RELATIVE, abs_tol=_absolute.get())
    return bool(hta == ours)


def _number(value: Value) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)


def _absent(value: Value) -> bool:
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value)) or value is pd.NA


def _shown(values: dict[Any, Value], key: Value) -> str:
    return brief(values[key]) if key in values else "nothing"


def brief(value: Value) -> str:
    """Return a value in a few words."""
    if isinstance(value, pd.DataFrame | pd.Series):
        return f"{type(value).__name__}{value.shape}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 110 else f"{text[:100]}…"
