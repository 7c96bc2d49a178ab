"""Jobs, groups, draws and the engine's own errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from htagraph.simulate import Job, SlowRank
from htagraph.simulate.costs import columns, draw, mix, normal, uniform
from htagraph.simulate.engine import Code, compile_code
from htagraph.simulate.formats import ranks_text
from htagraph.simulate.job import places
from htagraph.simulate.program import STREAM_INDEX, STREAMS, epilogue, step
from htagraph.simulate.simulated import execute
from htagraph.simulate.template import Builder, Template


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"ranks": 6, "tp": 4}, "not divisible"),
        ({"ranks": 8, "parallelism": "pipeline", "layers": 4}, "at least 8 layers"),
        ({"ranks": 2, "slow_ranks": (SlowRank(rank=2, factor=2.0),)}, "beyond the last"),
        ({"ranks": 2, "tp": 2, "cuda_graph": "forward"}, "no collective is in a graph"),
        ({"kernel_us": -1.0}, "greater than 0"),
        ({"colour": "red"}, "not permitted"),
    ],
)
def test_impossible_jobs_are_refused(fields: dict[str, object], word: str) -> None:
    with pytest.raises(ValidationError, match=word):
        Job.model_validate(fields)


def test_every_field_is_described() -> None:
    assert [name for name, field in Job.model_fields.items() if not field.description] == []


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_each_rank_is_in_one_group_per_direction(data: int, tensor: int, stages: int) -> None:
    job = Job(ranks=data * tensor * stages, tp=tensor, pp=stages, layers=4)
    groups, where = places(job)
    assert [group.index for group in groups] == list(range(len(groups)))
    assert len({(group.ranks, group.description) for group in groups}) == len(groups)
    for place in where:
        assert all(place.rank in group.ranks for group in place.roles.values())
        assert ("dp" in place.roles) == (data > 1)
        assert ("tp" in place.roles) == (tensor > 1)
        assert ("forward_in" in place.roles) == (place.stage > 0)
        assert ("forward_out" in place.roles) == (place.stage < stages - 1)
        if data > 1:
            assert len(place.roles["dp"].ranks) == data
    assert sum(len(job.stage_layers(stage)) for stage in range(stages)) == job.layers


def test_draws_are_about_normal_and_keyed() -> None:
    keys = np.arange(20_000, dtype=np.uint64)
    numbers = normal(mix(1, 2, 3), keys)
    assert abs(numbers.mean()) < 0.03
    assert abs(numbers.std() - 1) < 0.03
    assert np.array_equal(numbers[5:9], normal(mix(1, 2, 3), keys[5:9]))
    assert abs(np.corrcoef(numbers, normal(mix(1, 2, 4), keys))[0, 1]) < 0.03
    values = [uniform(7, key) for key in range(2000)]
    assert 0 <= min(values) < max(values) < 1
    assert abs(np.mean(values) - 0.5) < 0.03


def test_long_lists_of_ranks_are_cut_as_pytorch_cuts_them() -> None:
    assert ranks_text(tuple(range(3))) == "[0, 1, 2]"
    text = ranks_text(tuple(range(64)))
    assert text.endswith("27, 28, ..., 63]")
    assert text.count(",") == 30


def test_programs_that_do_not_match_are_reported() -> None:
    job = Job(ranks=2, steps=1, layers=1)
    _, where = places(job)
    templates: list[Template] = [step(job, where[0]), epilogue(job)]

    def prepare(rank: int, position: int) -> tuple[Template, list[Code], object]:
        template = templates[1 if rank == 1 else position]
        return (template, compile_code(template), draw(job, rank, position, columns(job, where[rank], template)))

    with pytest.raises(RuntimeError, match=r"ranks \[0\] wait for collectives"):
        list(execute(job, where, len(STREAMS), prepare))  # type: ignore[arg-type]


def test_unknown_collectives_are_named() -> None:
    with pytest.raises(ValueError, match="no collective is called 'gossip'"):
        Builder(STREAM_INDEX).collective("dp", "gossip")
