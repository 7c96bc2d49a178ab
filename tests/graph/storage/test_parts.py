from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.issues import Issue
from htagraph.graph.storage import parts
from htagraph.graph.storage.parts import pack, unpack
from htagraph.trace.columns import Trace
from htagraph.trace.facts import Device, Facts, Group
from tests.graph.storage.same import difference
from tests.reach import DATASETS, graph_of

texts = st.text(st.characters(exclude_categories=()), max_size=4)  # also halves of surrogate pairs
issues = st.builds(Issue, texts, texts, texts, st.integers())
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts, issues,
        st.lists(texts, max_size=40).map(tuple), st.lists(issues, max_size=4).map(tuple),
        st.builds(Path, st.text("ab/", max_size=4)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(texts, st.integers(), st.tuples(st.integers(), texts)), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


def through_json(value: Any) -> Any:
    content, arrays = pack(value)
    return unpack(json.loads(json.dumps(content)), arrays)


@given(values)
def test_every_value_comes_back_with_its_type(value: Any) -> None:
    assert difference(value, through_json(value), "value") == ""


def test_integers_of_any_size_come_back() -> None:
    assert through_json([2**63, -(2**70), 10**5000]) == [2**63, -(2**70), 10**5000]


def test_texts_that_repeat_are_stored_once() -> None:
    _, arrays = pack([tuple(["name"] * 1000), tuple(["name", "other"] * 10)])
    assert [array.nbytes for array in arrays] == [4 * 1000, 4 * 20, len("nameother"), 2 * 8]


def test_an_array_that_two_share_is_stored_once() -> None:
    array = np.arange(3)
    content, arrays = pack([array, array, array[:]])
    assert len(arrays) == 2 + 2  # and the texts, of which there are none
    assert unpack(content, arrays)[0] is unpack(content, arrays)[1]


@pytest.mark.parametrize("value", [Fraction(1, 2), {1}, object(), b"bytes", lambda: 0])
def test_what_is_not_known_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        pack({"deep": [value]})


@given(st.dictionaries(texts, st.one_of(texts, st.integers(), st.none(), st.lists(st.floats(allow_nan=False)))))
def test_facts_come_back_with_the_settings_of_the_recording(raw: dict[str, Any]) -> None:
    groups = (Group("0", "default", 2, (0, 1)), Group("1", "", None, "[0, 2, ..., 8]"))
    facts = Facts(rank=3, groups=groups, devices=(Device(0, "H100"), Device(None, "")), settings=raw)
    back = through_json(facts)
    assert difference(facts, back, "facts") == ""
    assert facts == back


@pytest.mark.parametrize("name", parts.SCHEMA)
def test_a_field_that_is_added_to_a_class_is_stored(name: str) -> None:
    """Every class is stored by its fields, as they are when it is stored."""
    assert parts.SCHEMA[name] == list(parts._CLASSES[name].__dataclass_fields__)


def test_every_class_that_a_graph_holds_is_known() -> None:
    """A field with a class that is not in the list fails here, before it does for a user."""
    for folder in DATASETS:
        graph = graph_of(folder)
        assert difference(graph, through_json(graph)) == ""


def test_an_object_with_other_fields_is_refused() -> None:
    content, arrays = pack(Issue("file", "what", "detail", 1))
    del content["value"]["object"][1]["rank"]  # which has a default
    with pytest.raises(TypeError, match="Issue"):
        unpack(content, arrays)


@pytest.mark.parametrize(
    "content",
    [
        {"object": ["Popen", {"args": "true"}]},
        {"object": ["Path", {}]},
        {"call": []},
        {"array": 7},
        {},
        {"a": 1, "b": 2},
    ],
)
def test_what_was_not_packed_is_refused(content: Any) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        unpack({"value": content, "texts": 0}, [np.empty(0, np.uint8), np.empty(0, np.int64)])


def test_all_of_a_trace_is_kept() -> None:
    assert set(parts.SCHEMA["Trace"]) == {each.name for each in dataclasses.fields(Trace)}


def test_numbers_below_and_above_what_is_there_are_found() -> None:
    numbers = np.array([-1, 0, 4], np.int32)
    assert parts.are_within([(numbers, -1, 5), (numbers[:0], 0, 0)])
    assert not parts.are_within([(numbers, -1, 5), (numbers, 0, 5)])
    assert not parts.are_within([(numbers, -1, 4), (numbers, -1, 5)])
