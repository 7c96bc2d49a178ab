"""The words: phrases that no docstring, comment, help text, string or page may have, each with what to say instead."""

from __future__ import annotations

import io
import re
import tokenize
from itertools import groupby
from pathlib import Path

import pytest

from tests.reach import REPOSITORY

PAGES = sorted(
    [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "benchmarks" / "README.md"]
)
MODULES = sorted([*(REPOSITORY / "htagraph").rglob("*.py"), *(REPOSITORY / "htagraph").rglob("*.pyi")])

BANNED = {
    # riddles: say what does what
    r"told by": "known by, given by",
    r"(can|cannot) be told\b(?! apart)": "is known, can be estimated",
    r"(its|his|their|whose) doing\b": "it causes …",
    r"(its|their) own masters": "independent",
    r"on its way": "recording starts 7.5 ms later on rank 7",
    r"critical next": "next-critical",
    r"took no time at all": "largest possible gain",
    r"such as it is": "as recorded",
    r"of equals": "on ties",
    r"such texts": "strings like these",
    r"from (there|then) on": "after that",
    r"not so where": "False where",
    r"at most to gain|most to gain": "largest possible gain",
    r"foretells?": "predicts",
    # devices and streams are idle, hosts are blocked
    r"stands? still": "is idle (a device or stream), is blocked (a thread)",
    r"stood still": "was idle, was blocked",
    # kernels and copies are no works
    r"a works?\b(?! of art)": "a kernel or copy",
    r"works? queued": "queue length, queued kernels and copies",
    r"(the|these|those|of|its|their|all|many|several|whose|other|linked|more|no|untimed|fused) works\b": (
        "kernels and copies"
    ),
    # units
    r"\bgbps\b": "GB/s in texts, gb_s in names",
}
"""A pattern, in which a space is any white space and case does not count, and the words in its place."""


def spoken(path: Path) -> str:
    """Return what a file says: a page as a whole, of a module its strings and comments.

    White space is made one space. Strings that Python joins and comments on successive lines are one text; " | " stands
    between texts.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return " ".join(text.split())
    said, last = "", 0
    for part in tokenize.generate_tokens(io.StringIO(text).readline):
        if part.type in _BLANK:
            continue
        kind = part.type if part.type in _SPEAKING else 0
        if kind:
            joined = (" " if kind == tokenize.COMMENT else "") if kind == last else " | "
            said += joined + (part.string.lstrip("# ") if kind == tokenize.COMMENT else _QUOTES.sub("", part.string))
        last = kind
    return " ".join(said.split())


_BLANK = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_SPEAKING = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
_QUOTES = re.compile(r"^[a-zA-Z]*(\"{3}|'{3}|\"|')|(\"{3}|'{3}|\"|')$")


def part_of(path: Path) -> str:
    """Return the floor or the folder that a file belongs to."""
    parts = path.relative_to(REPOSITORY).parts
    return "/".join(parts[: 2 if parts[0] == "htagraph" else 1][: len(parts) - 1]) or "pages"


FILES = {part: list(files) for part, files in groupby(sorted([*PAGES, *MODULES], key=part_of), part_of)}


@pytest.mark.parametrize("part", FILES)
def test_no_file_has_a_phrase_that_a_reader_stumbles_over(part: str) -> None:
    stumbles = [
        f"{path.relative_to(REPOSITORY)}: …{text[max(0, hit.start() - 30) : hit.end() + 30]}… → {instead}"
        for path, text in ((path, spoken(path)) for path in FILES[part])
        for pattern, instead in BANNED.items()
        for hit in re.finditer(rf"\b{pattern}", text, re.IGNORECASE)
    ]
    assert not stumbles, "\n".join(stumbles)


@pytest.mark.parametrize(
    ("sentence", "banned"),
    [
        ("Most to gain, if it took no time at all", True),
        ("The works of a graph launch", True),
        ("gzip is told by its content", True),
        ("how it works", False),
        ("the network of a single group", False),
    ],
)
def test_the_patterns_find_phrases_and_leave_verbs_alone(sentence: str, *, banned: bool) -> None:
    hits = [pattern for pattern in BANNED if re.search(rf"\b{pattern}", sentence, re.IGNORECASE)]
    assert bool(hits) == banned
