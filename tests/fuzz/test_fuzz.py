"""Inputs that fuzzing started from or failed on are read or refused, and so is what a little damage makes of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.mutations import mutated
from tests.fuzz.run import CORPUS, seeds
from tests.fuzz.targets import TARGETS, Refused, try_file

INPUTS = sorted(CORPUS.iterdir())


def tried(name: str, data: bytes, folder: Path) -> str:
    path = folder / f"rank-0.{name.split('.', 1)[1]}"
    path.write_bytes(data)
    try:
        try_file(path)
    except Refused as error:
        return str(error)
    return ""


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_an_input_of_the_corpus_is_read_or_refused_by_name(path: Path, tmp_path: Path) -> None:
    said = tried(path.name, path.read_bytes(), tmp_path)
    assert bool(said) == path.name.startswith("refused-")


def test_every_kind_of_file_is_tried() -> None:
    assert {name.split(".", 1)[1].removesuffix(".gz") for name in seeds()} == set(TARGETS)


@pytest.mark.parametrize("name", ["made.htagraph", "made.skeleton"])
def test_what_this_release_writes_is_read_and_damage_behind_its_checksums_is_refused_or_read(
    name: str, tmp_path: Path
) -> None:
    whole = seeds()[name]
    assert not tried(name, whole, tmp_path)
    said = {tried(name, mutated(whole, random.Random(seed)), tmp_path) for seed in range(12)}
    assert "" in said or len(said) > 1


@pytest.mark.parametrize("seed", range(10))
def test_damaged_inputs_are_read_or_refused_by_name(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    path = draw.choice(INPUTS)
    tried(path.name, mutated(path.read_bytes(), draw), tmp_path)


def test_mutations_depend_on_their_seed_alone() -> None:
    data = INPUTS[0].read_bytes()
    assert mutated(data, random.Random(5)) == mutated(data, random.Random(5))
    assert len({mutated(data, random.Random(seed)) for seed in range(20)}) > 10
