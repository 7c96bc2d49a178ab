"""The head of a summary: what to do first, what was recorded, why, what comes then, and what is not known.

It fits into 90 words and ten numbers, and each number stands in it once. All else that the findings say is the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from htagraph.findings.bound import BOUND
from htagraph.findings.change import brief_gain
from htagraph.findings.changes import ProposedChange
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import spoken
from htagraph.findings.unexplained import UNEXPLAINED
from htagraph.findings.verdict import Sentence, stated

__all__ = ["MOST_NUMBERS", "MOST_WORDS", "Head", "Line", "head_of", "numbers_in", "times_in", "words_in"]

MOST_WORDS: Final = 90
"""Words of a head at most. Chosen: they are read in half a minute. Doubled, readers skip to the tables."""
MOST_NUMBERS: Final = 10
"""Numbers of a head at most. Chosen: two of the first change, four of the recording, four of the reasons. Doubled, none
is remembered."""
_MOST_REASONS: Final = 2
"""Sentences that say why. Chosen: one for the first change, one for what bounds the job. Doubled, the other findings
have a sentence, and the verdict says these in full."""
_NUMBER = re.compile(r"(?<![\w.…-])\d[\d,]*(?:\.\d+)?(?![\w…])")
_TIME = re.compile(r"(?<![\w.…-])\d[\d,]*(?:\.\d+)? (?:ns|µs|ms|s|min|h)(?!\w)")
_SENTENCE_END = re.compile(r"(?<=[\w)]\.)\s")
_ASIDE = re.compile(r" \([^()]*\)")


class Line(NamedTuple):
    """A line of a head."""

    label: str
    """What it says: First, Why, Then, Not known; empty for the recording."""
    sentence: str

    @property
    def text(self) -> str:
        """The line as it is read."""
        return f"{self.label}: {self.sentence}" if self.label else self.sentence


@dataclass(frozen=True)
class Head:
    """The head of a summary, by its parts.

    Example:
        >>> head = Head("Use autocast.", "1 rank, 3.39 s.", ("Bound by computation.",))
        >>> [line.text for line in head.lines]
        ['First: Use autocast.', '1 rank, 3.39 s.', 'Why: Bound by computation.']
    """

    first: str
    """What to do first, and what that gains; empty where nothing is known to gain anything."""
    recording: str
    """What was recorded, and how busy its devices are."""
    why: tuple[str, ...] = ()
    """The reasons, a sentence each."""
    then: str = ""
    """What to do next; empty for nothing."""
    not_known: str = ""
    """What the recording does not tell; empty for nothing that matters."""

    def worded(self, words: Callable[[list[str]], list[str]]) -> Head:
        """Return the head in other words: those that a function returns for a list of texts."""
        why = tuple(words([*self.why]))
        first, then, not_known = (" ".join(words([text])) for text in (self.first, self.then, self.not_known))
        return Head(first, self.recording, why, then, not_known)

    @property
    def lines(self) -> list[Line]:
        """The parts as they are read."""
        not_known = f"{self.not_known}." if self.not_known else ""
        lines = [
            Line("First", self.first),
            Line("", self.recording),
            *(Line("Why", reason) for reason in self.why),
            Line("Then", self.then),
            Line("Not known", not_known),
        ]
        return [line for line in lines if line.sentence]


def head_of(claims: Sequence[Claim], changes: Sequence[ProposedChange], recording: str) -> Head:
    """Return the head of a summary.

    The first change and the recording always have their place. A reason, what is not known, another reason, the next
    change and what is in brackets about the recording follow, each where it fits and repeats no time.

    Args:
        claims: the claims of the job, in the order of reading.
        changes: the list of changes, the first thing to do first.
        recording: what was recorded, as a sentence.

    Example:
        >>> head_of([], [], "1 rank, 3.39 s.").lines
        [Line(label='', sentence='1 rank, 3.39 s.')]
    """
    sentences = stated(claims)
    first = changes[0] if changes else None
    head = Head(first.text if first else _advised(sentences), _ASIDE.sub("", recording))
    reasons = list(_reasons(sentences, first))
    unknown = _unknown(sentences)
    for reason in reasons[:1]:
        head = _longer(head, replace(head, why=(reason,)))
    for not_known in unknown[:1]:
        head = _longer(head, replace(head, not_known=not_known))
    for reason in reasons[1:]:
        if len(head.why) < _MOST_REASONS:
            head = _longer(head, replace(head, why=(*head.why, reason)))
    for change in changes[1:2]:
        advice = _SENTENCE_END.split(change.action)[0]
        gain = f"{change.change.title}: {brief_gain(change.change.gain)}." if change.change else ""
        for text in spoken(" ".join(spoken(advice, gain)), advice, gain):
            head = _longer(head, replace(head, then=head.then or text))
    return _longer(head, replace(head, recording=recording))


def words_in(text: str) -> int:
    """Return the number of words of a text: parts between spaces with a letter or a digit.

    Example:
        >>> words_in("First: use autocast - a step takes 57 ms less.")
        9
    """
    return sum(any(letter.isalnum() for letter in part) for part in text.split())


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text; digits inside names are no numbers.

    Example:
        >>> numbers_in("2 ranks on A100-SXM4-80GB, 1,024 steps of 8.70 ms (16 %), gemm_64x64")
        ['2', '1,024', '8.70', '16']
    """
    return _NUMBER.findall(text)


def times_in(text: str) -> list[str]:
    """Return the times of a text.

    Example:
        >>> times_in("2 ranks, steps of 8.70 ms (16 %)")
        ['8.70 ms']
    """
    return _TIME.findall(text)


def _advised(sentences: Iterable[Sentence]) -> str:
    """Return the first advice where no change is known to gain anything, such as how to record again."""
    advice = (each.finding.advice(*each.claims) for each in sentences)
    return next(filter(None, advice), "")


def _longer(head: Head, longer: Head) -> Head:
    """Return the longer of two heads if it fits, else the other one."""
    return longer if _fits(longer) else head


def _fits(head: Head) -> bool:
    """Return whether a head is short enough and says no time twice."""
    text = " ".join(line.text for line in head.lines)
    times = times_in(text)
    is_short = words_in(text) <= MOST_WORDS and len(numbers_in(text)) <= MOST_NUMBERS
    return is_short and len(set(times)) == len(times)


def _reasons(sentences: Iterable[Sentence], first: ProposedChange | None) -> Iterator[str]:
    """Yield the reasons: of the first change, then of what bounds the job, then of all else in the order of reading."""
    of_first = [each for each in sentences if first and _proposes(each, first)]
    of_bound = [each for each in sentences if each not in of_first and each.finding is BOUND]
    others = [each for each in sentences if each not in (*of_first, *of_bound)]
    for sentence in (*of_first, *of_bound, *others):
        if not _is_of_unknown(sentence.finding):
            yield from spoken(sentence.finding.why(*sentence.claims))


def _proposes(sentence: Sentence, first: ProposedChange) -> bool:
    """Return whether a sentence is of the claim that proposes the first change."""
    return sentence.finding.name == first.finding and any(claim.about == first.about for claim in sentence.claims)


def _is_of_unknown(finding: Finding) -> bool:
    """Return whether a finding is on what is not known."""
    return finding.is_caution or finding.is_unknown


def _unknown(sentences: Iterable[Sentence]) -> list[str]:
    """Return what is not known, what makes most conclusions uncertain first."""
    unknown = [each for each in sentences if _is_of_unknown(each.finding)]
    unknown.sort(key=lambda each: each.finding is UNEXPLAINED)
    return [text for each in unknown for text in spoken(each.finding.why(*each.claims))]
