from __future__ import annotations

from htagraph.output.wording import cache


def test_sizes_are_gigabytes_and_one_graph_is_no_plural() -> None:
    assert "1 graph, 0.50 of at most 10 GB" in cache.contents("here", 1, 500_000_000, 10_000_000_000)[0]
    assert "2 graphs" in cache.contents("here", 2, 0, 1)[0]
    assert cache.cleared("here", 1, 2_000_000_000) == ["1 graph removed from here, 2.00 GB."]
    assert cache.cleared("here", 3, 0)[0].startswith("3 graphs removed")


def test_a_user_without_a_cache_is_told_why() -> None:
    assert "HTAGRAPH_NO_CACHE" in cache.no_folder()[0]
