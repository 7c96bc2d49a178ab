from __future__ import annotations

from htagraph.core.naming.categories import (
    COUNTER_RANGE,
    DEVICE_ANNOTATION,
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    RUNTIME_CATEGORIES,
)
from htagraph.trace.events import MODELS


def test_every_category_is_one_of_the_schema() -> None:
    assert {COUNTER_RANGE, DEVICE_ANNOTATION} | DEVICE_CATEGORIES | HOST_CATEGORIES <= set(MODELS)


def test_no_category_is_on_host_and_device() -> None:
    assert not DEVICE_CATEGORIES & HOST_CATEGORIES
    assert not {COUNTER_RANGE, DEVICE_ANNOTATION} & (DEVICE_CATEGORIES | HOST_CATEGORIES)


def test_calls_run_on_the_host() -> None:
    assert RUNTIME_CATEGORIES < HOST_CATEGORIES


def test_every_runtime_and_driver_category_of_the_schema_is_a_call() -> None:
    assert {name for name in MODELS if name.endswith(("_runtime", "_driver"))} == RUNTIME_CATEGORIES
