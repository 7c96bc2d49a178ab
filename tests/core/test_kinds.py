from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.kinds import BLOCKING, DEVICE, ActivityKind, EdgeKind, GapKind, Provenance, of_kinds


@pytest.mark.parametrize("kind", ["COMPUTATION", "COMMUNICATION", "MEMORY", "DEVICE_OTHER"])
def test_these_kinds_run_on_devices(kind: str) -> None:
    assert ActivityKind[kind].on_device


def test_every_other_kind_runs_on_the_host() -> None:
    device = {kind.name for kind in ActivityKind if kind.on_device}
    assert device == {"COMPUTATION", "COMMUNICATION", "MEMORY", "DEVICE_OTHER"}


def test_what_only_names_a_region_or_a_moment_is_no_work() -> None:
    assert {kind.name for kind in ActivityKind if not kind.is_work} == {
        "ANNOTATION", "STEP", "BOUNDARY", "JOIN", "DEVICE_OTHER",
    }  # fmt: skip


@pytest.mark.parametrize("vocabulary", [ActivityKind, EdgeKind, GapKind, Provenance])
def test_members_fit_int8_columns_and_have_words_of_their_own(vocabulary: type[ActivityKind]) -> None:
    assert all(0 <= member <= 127 for member in vocabulary)
    assert len({member.label for member in vocabulary}) == len(vocabulary)
    assert all(member.label == member.name.lower() for member in vocabulary)


@pytest.mark.parametrize(("vocabulary", "kinds"), [(ActivityKind, DEVICE), (EdgeKind, BLOCKING), (EdgeKind, ())])
def test_a_table_says_what_a_search_says(vocabulary: type[ActivityKind], kinds: tuple[ActivityKind, ...]) -> None:
    column = np.random.default_rng(1).integers(0, len(vocabulary), 500).astype(np.int8)
    assert of_kinds(column, kinds).tolist() == np.isin(column, kinds).tolist()
