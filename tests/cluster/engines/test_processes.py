"""Processes that die or hang cost no item its answer but the one that they die of."""

from __future__ import annotations

from pathlib import Path

from htagraph.cluster.engines.processes import Processes
from htagraph.cluster.run_each import Failed, Patience, run_each
from tests.cluster.calls import doubled, dying, dying_once, hanging_once


def test_processes_answer_and_say_what_failed() -> None:
    engine = Processes(2)
    assert dict(run_each(engine, doubled, range(4))) == {0: 0, 1: Failed("odd"), 2: 4, 3: Failed("odd")}
    assert engine.slots() == 2


def test_a_process_that_dies_once_costs_nothing_and_one_that_always_does_its_item(tmp_path: Path) -> None:
    engine = Processes(2)
    answers = dict(run_each(engine, dying_once, range(6), 2, str(tmp_path / "died")))
    assert answers == {number: number for number in range(6)}
    answers = dict(run_each(engine, dying, range(4), 1, patience=Patience(tries=2)))
    assert isinstance(answers.pop(1), Failed)
    assert answers == {0: 0, 2: 2, 3: 3}


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    engine = Processes(1)
    assert dict(run_each(engine, doubled, [0])) == {0: 0}  # which starts it
    patience = Patience(tries=3, slow_s=0.5)
    answers = dict(run_each(engine, hanging_once, range(2), 0, str(tmp_path / "hung"), patience=patience))
    assert set(answers) == {0, 1}
    assert dict(run_each(engine, doubled, [2])) == {2: 4}
