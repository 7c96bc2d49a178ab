from __future__ import annotations

import gzip
import io
import os
import pickle
from collections import OrderedDict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htagraph.core.errors import DamagedTraceError, NotATraceError
from htagraph.trace.profiler_files.unpickle import read_plain_pickle

plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


class Harmful:
    """Its unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


class Persistent(pickle.Pickler):
    def persistent_id(self, obj: object) -> str | None:
        return "elsewhere" if isinstance(obj, str) else None


@given(value=plain, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL), gzipped=st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_plain_values_are_read_as_they_were_written(
    value: Any, protocol: int, tmp_path: Path, *, gzipped: bool
) -> None:
    path = tmp_path / "a.pickle"
    data = pickle.dumps([value], protocol)
    path.write_bytes(gzip.compress(data) if gzipped else data)
    assert read_plain_pickle(path) == [value]


@pytest.mark.parametrize("value", [OrderedDict(a=1), Decimal(1), print, Path], ids=repr)
def test_classes_and_functions_are_refused_by_name(value: object, tmp_path: Path) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps({"segments": [value]}))
    with pytest.raises(NotATraceError, match=r"a\.pickle: the pickle names .*plain values only, so it was not loaded"):
        read_plain_pickle(path)


def test_a_harmful_pickle_runs_nothing(tmp_path: Path) -> None:
    path, made = tmp_path / "a.pickle", tmp_path / "made"
    path.write_bytes(pickle.dumps(Harmful(made)))
    with pytest.raises(NotATraceError, match="mkdir"):
        read_plain_pickle(path)
    assert not made.exists()


def test_objects_kept_elsewhere_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Persistent(buffer).dump(["text"])
    path = tmp_path / "a.pickle"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(NotATraceError, match="persistent object 'elsewhere'"):
        read_plain_pickle(path)


@pytest.mark.parametrize("cut", range(0, 30, 5))
def test_a_pickle_that_ends_early_is_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps({"segments": [{"device": 0, "blocks": []}]})[:cut])
    with pytest.raises((DamagedTraceError, NotATraceError), match=r"ends early|not a readable"):
        read_plain_pickle(path)
