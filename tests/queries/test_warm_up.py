"""Which region a job measures after its warm-up."""

from __future__ import annotations

from htagraph.queries.warm_up import warm_region
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load


def worked(name: str, start: int, duration: int, number: int) -> list[Json]:
    """Return a region that launches a kernel."""
    call = [launch(start + 2, 5, number), kernel(COMPUTE, start + 20, 10, number)]
    return [annotation(name, start, duration), *call]


def test_the_innermost_region_after_all_warm_ups_is_measured() -> None:
    whole = annotation("[model|cuda]", 0, 1000)
    warming = [*worked("[model|warmup|forward]", 10, 100, 1), *worked("[model|warmup|forward]", 120, 100, 2)]
    measuring = [annotation("[model|measure|forward]", 300, 300), *worked("[model|measure|forward]", 400, 100, 3)]
    region = warm_region(load([whole, *warming, annotation("[clear_cache]", 310, 50), *measuring]), 0)
    assert region is not None
    assert (region.name, region.begin_us, region.end_us) == ("[model|measure|forward]", 400.0, 500.0)


def test_without_a_warm_up_or_anything_behind_it_nothing_is_named() -> None:
    assert warm_region(load(worked("measure", 0, 100, 1)), 0) is None
    assert warm_region(load([*worked("warm-up", 0, 100, 1), annotation("after", 200, 50)]), 0) is None
    assert warm_region(load([*worked("warm_up", 0, 100, 1), *worked("lukewarmup", 200, 50, 2)]), 0) is not None
