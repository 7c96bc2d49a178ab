"""Whether two graphs, or parts of them, are equal in every field, value, type of number and text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel

__all__ = ["difference"]


def difference(one: Any, other: Any, where: str = "graph") -> str:
    """Return the first place in which two values differ, "" if they are equal."""
    if type(one) is not type(other):
        return f"{where}: {type(one).__name__} and {type(other).__name__}"
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
        return "" if same else f"{where}: {one!r} and {other!r}"
    inner, others = _inner(one), _inner(other)
    if inner is None or others is None:
        return "" if one == other or one != one else f"{where}: {one!r} and {other!r}"
    if list(inner) != list(others):
        return f"{where}: {list(inner)} and {list(others)}"
    return next(filter(None, (difference(inner[key], others[key], f"{where}.{key}") for key in inner)), "")


def _inner(value: Any) -> dict[Any, Any] | None:
    """Return what a value holds, by name or number; None if it holds nothing."""
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return {**fields, "set": sorted(value.model_fields_set), "extra": value.model_extra}
    if isinstance(value, pd.DataFrame | pd.Series):
        return {"types": str(value.dtypes), "index": list(value.index), "values": value.to_dict()}
    if isinstance(value, Mapping):
        return dict(value)
    return dict(enumerate(value)) if isinstance(value, list | tuple) else None
