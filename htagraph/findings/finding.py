"""A finding: one kind of conclusion, with when it holds, its words, what proves it and what to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from htagraph.findings.claim import Claim
from htagraph.findings.evidence import Evidence
from htagraph.findings.phrases import command_line, name_text

if TYPE_CHECKING:
    from htagraph.findings.results import Results

__all__ = [
    "LETTERS_IN_FULL", "LETTERS_IN_SHORT", "SHORT_LIST", "Finding", "Trial", "in_full", "in_short", "in_whole",
]  # fmt: skip

LETTERS_IN_FULL, LETTERS_IN_SHORT = 60, 32
"""Letters of a name in a sentence, and in a line or two; chosen: half a line, and less. Doubled, the name of a kernel
may fill a line."""
SHORT_LIST = 2
"""Parts of a list, such as gains, that the words in brief name. Chosen: they fit on two lines. Doubled, four lines."""


@dataclass(frozen=True)
class Trial:
    """What to try: a prediction that a claim makes already, and the options of the what-if that makes it again."""

    saved_us: float
    sentence: str
    options: tuple[str, ...]

    def command(self, inputs: Iterable[str]) -> str:
        """Return the command; `inputs` are the words of the command line that choose what is read."""
        return command_line("what-if", inputs, *self.options)


@dataclass(frozen=True)
class Finding:
    """One kind of conclusion about a job: the file of its name declares all that is known of it.

    `when` is called with the results of a job. The other functions are called with the claims of one sentence: a single
    claim, or, where `is_list` is set, all claims of the finding.
    """

    name: str
    when: Callable[[Results], list[Claim]]
    """Returns the claims that the job's results support, with their facts; none where they do not."""
    long: Callable[..., str]
    """Returns the sentence of the whole verdict."""
    short: Callable[..., str]
    """Returns the sentence in a line or two; of a caution the part of a sentence, without capital and point."""
    evidence: Callable[..., Evidence] = lambda *_: Evidence()
    """Returns what proves the claims; called with the results and the claims."""
    trial: Callable[[Claim], Trial | None] | None = None
    """Returns what to try, if it can be made as predicted."""
    is_list: bool = False
    """Whether all claims share a sentence."""
    is_caution: bool = False
    """Whether it makes other findings uncertain, and is no conclusion by itself."""


def in_full(name: str) -> str:
    """Return a name for the sentence of the whole verdict."""
    return name_text(name, LETTERS_IN_FULL)


def in_short(name: str) -> str:
    """Return a name for a sentence in a line or two."""
    return name_text(name, LETTERS_IN_SHORT)


def in_whole(short: Callable[[Claim], str], more: str) -> Callable[[Claim], str]:
    """Return the function that makes a sentence of what a caution says in brief, with more at its end.

    Example:
        >>> in_whole(lambda claim: f"{claim.about} is late", "(htagraph validate)")(Claim("x", "one", 1, "count"))
        'One is late (htagraph validate).'
    """

    def long(claim: Claim) -> str:
        text = short(claim).removesuffix(".")
        return f"{text[0].upper()}{text[1:]} {more}."

    return long
