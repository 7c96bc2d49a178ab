"""The head of a summary: the first change, the recording, the reasons, the next change, and the gaps of the recording.

It fits into 90 words and ten numbers, and a time stands in it once. The verdict tells every conclusion in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from htagraph.findings.bound import BOUND
from htagraph.findings.changes import ProposedChange
from htagraph.findings.damaged import DAMAGED
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.next_change import NextChange
from htagraph.findings.phrases import Advice, spoken
from htagraph.findings.unexplained import UNEXPLAINED
from htagraph.findings.verdict import Sentence, stated

__all__ = [
    "MOST_NUMBERS",
    "MOST_WORDS",
    "Head",
    "HeadLine",
    "RecordingExtent",
    "head_of",
    "numbers_in",
    "times_in",
    "words_in",
]

MOST_WORDS: Final = 90
"""Words of a head at most. Chosen: they are read in half a minute. Doubled, readers skip to the tables."""
MOST_NUMBERS: Final = 10
"""Numbers of a head at most. Chosen: two of the first change, four of the recording, four of the reasons. Doubled, none
is remembered."""
_MOST_REASONS: Final = 2
"""Sentences that say why. Chosen: one for the first change, one for the bound of the job. Doubled, every finding
has a sentence, as in the verdict."""
_NUMBER = re.compile(r"(?<![\w.…-])\d[\d,]*(?:\.\d+)?(?![\w…])")
_TIME = re.compile(r"(?<![\w.…-])\d[\d,]*(?:\.\d+)? (?:ns|µs|ms|s|min|h)(?!\w)")


class RecordingExtent(NamedTuple):
    """The extent of a recording, as a sentence."""

    brief: str
    """The sentence without brackets."""
    text: str
    """The whole sentence."""


class HeadLine(NamedTuple):
    """A line of a head."""

    label: str
    """First, Why, Then, Also or Not known; empty for the recording, and where no way is known."""
    sentence: str

    @property
    def text(self) -> str:
        """The line as it is read."""
        return f"{self.label}: {self.sentence}" if self.label else self.sentence


class NextText(NamedTuple):
    """The words for the next thing."""

    sentence: str
    is_advice: bool
    """Whether it can be done; else it is a fact."""


@dataclass(frozen=True)
class Head:
    """The head of a summary, by its parts.

    Example:
        >>> head = Head("Use autocast.", "1 rank, 3.39 s.", ("Bound by computation.",))
        >>> [line.text for line in head.lines]
        ['First: Use autocast.', '1 rank, 3.39 s.', 'Why: Bound by computation.']
    """

    first: str
    """The first thing to do, and its gain; empty where nothing is known to gain time."""
    recording: str
    """The extent of the recording, and how busy its devices are."""
    why: tuple[str, ...] = ()
    """The reasons, a sentence each."""
    then: str = ""
    """The next thing to do; empty for nothing."""
    not_known: str = ""
    """A gap of the recording; empty for none that matters."""
    is_advised: bool = True
    """Whether the first thing is an advice; else it says that no way is known."""
    is_then_advised: bool = True
    """Whether the next thing is an advice; else it is a fact on code without a known way."""

    @property
    def lines(self) -> list[HeadLine]:
        """The parts as they are read."""
        not_known = f"{self.not_known}." if self.not_known else ""
        lines = [
            HeadLine("First" if self.is_advised else "", self.first),
            HeadLine("", self.recording),
            *(HeadLine("Why", reason) for reason in self.why),
            HeadLine("Then" if self.is_then_advised else "Also", self.then),
            HeadLine("Not known", not_known),
        ]
        return [line for line in lines if line.sentence]


def head_of(
    claims: Sequence[Claim],
    changes: Sequence[ProposedChange],
    recording: RecordingExtent,
    next_change: NextChange | None = None,
) -> Head:
    """Return the head of a summary.

    The first change and the recording always have their place. A reason, a gap of the recording, the next change,
    another reason and the brackets of the recording follow, each where it fits and repeats no time.

    Args:
        claims: the claims of the job, in the order of reading.
        changes: the list of changes, the first thing to do first.
        recording: the extent of the recording.
        next_change: the change to make after the first one.

    Example:
        >>> head_of([], [], RecordingExtent("1 rank, 3.39 s.", "1 rank, 3.39 s.")).lines
        [HeadLine(label='', sentence='1 rank, 3.39 s.')]
    """
    sentences = stated(claims)
    first = changes[0] if changes else None
    action = first.text if first else _advised(sentences)
    head = Head(action, recording.brief, is_advised=not (first and first.is_hypothetical))
    reasons = list(_reasons(sentences, first))
    head = _with_reasons(head, reasons[:1])
    unknown = _unknown(sentences)[:1]
    head = _longest_that_fits(head, [replace(head, not_known=text) for text in unknown])
    longer = _with_reasons(head, reasons[1:])
    head = _longest_that_fits(longer, _followed(longer, head, next_change))
    return _longest_that_fits(head, [replace(head, recording=recording.text)])


def words_in(text: str) -> int:
    """Return the number of words of a text: parts between spaces with a letter or a digit.

    Example:
        >>> words_in("First: use autocast - a step takes 57 ms less.")
        9
    """
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


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
    """Return the first advice of a verdict without changes, as to record again; empty for none."""
    for sentence in sentences:
        advice = sentence.finding.advice(*sentence.claims)
        if advice:
            return advice
    return ""


def _next_texts(following: NextChange | None) -> list[NextText]:
    """Return texts of the next change, the longest first: facts on its code, or its advice with the added gain."""
    if following is None:
        return []
    change = following.row
    if change.is_hypothetical:
        return [NextText(fact, is_advice=False) for fact in change.share_sentences]
    advice = change.action.first if isinstance(change.action, Advice) else change.action
    title = change.change.title if change.change else ""
    action = advice or (f"{title}." if title else "")
    with_gain = f"{action} {following.gain}" if following.gain else ""
    return [NextText(text, is_advice=True) for text in spoken(with_gain, action)]


def _followed(longer: Head, head: Head, next_change: NextChange | None) -> Iterator[Head]:
    """Yield heads with the next thing: an advice and its gain say more than a second reason, a fact does not.

    Args:
        longer: the head with a second reason.
        head: the same without.
        next_change: the change to make after the first one.
    """
    for text in _next_texts(next_change):
        for before in (longer, head) if text.is_advice else (longer,):
            yield replace(before, then=text.sentence, is_then_advised=text.is_advice)


def _with_reasons(head: Head, reasons: Iterable[str]) -> Head:
    """Return a head with as many of the reasons as fit."""
    for reason in reasons:
        longer = replace(head, why=(*head.why, reason))
        if len(longer.why) <= _MOST_REASONS and _fits(longer):
            head = longer
    return head


def _longest_that_fits(head: Head, longer: Iterable[Head]) -> Head:
    """Return the first of several longer heads that fits, given the longest first; the head itself where none fits."""
    return next(filter(_fits, longer), head)


def _fits(head: Head) -> bool:
    """Return whether a head is short enough and says no time twice."""
    text = " ".join(line.text for line in head.lines)
    times = times_in(text)
    is_short = words_in(text) <= MOST_WORDS and len(numbers_in(text)) <= MOST_NUMBERS
    return is_short and len(set(times)) == len(times)


def _reasons(sentences: Sequence[Sentence], first: ProposedChange | None) -> Iterator[str]:
    """Yield the reasons: of the first change, of the bound of the job, then of the rest in the order of reading."""

    def place(sentence: Sentence) -> int:
        if first and _proposes(sentence, first):
            return 0
        return 1 if sentence.finding is BOUND else 2

    for sentence in sorted(sentences, key=place):
        if not _is_on_unknown(sentence.finding) and not _repeats(sentence, first):
            yield from spoken(sentence.finding.why(*sentence.claims))


def _proposes(sentence: Sentence, first: ProposedChange) -> bool:
    """Return whether a sentence tells the claim that proposes the first change."""
    subjects = [claim.about for claim in sentence.claims]
    return sentence.finding.name == first.finding and first.about in subjects


def _repeats(sentence: Sentence, first: ProposedChange | None) -> bool:
    """Return whether a sentence is about the code of which the first line tells the share, and not about the bound."""
    if first is None or not first.is_hypothetical or sentence.finding is BOUND:
        return False
    return bool(sentence.claims) and sentence.claims[0].about == first.about


def _is_on_unknown(finding: Finding) -> bool:
    """Return whether a finding is on a gap of the recording."""
    return finding.is_caution or finding.is_unknown


def _unknown(sentences: Iterable[Sentence]) -> list[str]:
    """Return the gaps of the recording in words; lost parts come first, pauses without a reason last."""
    unknown = [sentence for sentence in sentences if _is_on_unknown(sentence.finding)]
    unknown.sort(key=lambda sentence: (sentence.finding is not DAMAGED, sentence.finding is UNEXPLAINED))
    return [text for sentence in unknown for text in spoken(sentence.finding.why(*sentence.claims))]
