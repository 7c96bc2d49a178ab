from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.issues import Issue, IssueLog

additions = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 3)), max_size=10)


@given(additions)
def test_equal_issues_are_counted_in_the_order_of_their_first_occurrence(added: list[tuple[str, str, int]]) -> None:
    log = IssueLog("a.json")
    expected: Counter[tuple[str, str]] = Counter()
    for what, detail, count in added:
        log.add(what, detail, count)
        expected.update({(what, detail): count} if count else {})
    issues = log.issues(rank=3)
    assert issues == tuple(Issue("a.json", what, detail, count, 3) for (what, detail), count in expected.items())


@given(additions)
def test_a_log_has_the_codes_that_occurred(added: list[tuple[str, str, int]]) -> None:
    log = IssueLog("a.json")
    for what, detail, count in added:
        log.add(what, detail, count)
    occurred = {what for what, _, count in added if count}
    assert {code for code in "abc" if log.has(code)} == occurred


def test_an_issue_belongs_to_no_rank_until_the_rank_is_known() -> None:
    log = IssueLog("a.json")
    log.add("truncated", "the file ends early")
    assert log.issues()[0].rank == -1
