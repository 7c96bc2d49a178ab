"""Laws over the words of every command."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

from htagraph.findings.phrases import CATEGORY_WORDS
from htagraph.output import wording
from htagraph.output.summary import SUMMARY_TITLES
from tests.reach import REPOSITORY

MODULES = [module.name for module in pkgutil.iter_modules(wording.__path__)]
BANNED = (
    "told by", "is its doing", "works", "their own masters", "on its way", "what would be critical next",
    "stand still", "such as it is", "that nothing explains",
)  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_a_command_has_the_words_of_its_own_name(name: str) -> None:
    assert (REPOSITORY / "htagraph" / "cli" / f"{name}.py").is_file()


@pytest.mark.parametrize("name", MODULES)
def test_titles_are_one_capitalized_line(name: str) -> None:
    module = importlib.import_module(f"htagraph.output.wording.{name}")
    titles = module.titles("network") if name == "sweeps" else module.TITLES
    assert titles
    assert all(title[0].isupper() or title.startswith("torch.") for title in titles.values())
    assert max(map(len, titles.values())) <= 100


def test_no_title_or_sentence_has_a_banned_phrase() -> None:
    texts = [*SUMMARY_TITLES.values(), *CATEGORY_WORDS.values()]
    for path in sorted((REPOSITORY / "htagraph" / "output").glob("**/*.py")):
        if path.parent.name == "wording" or path.stem in {"verdict", "diff_sentences", "validation"}:
            texts += re.findall(r'f?"([^"\n]* [^"\n]*)"', path.read_text(encoding="utf-8"))
    assert [text for text in texts for phrase in BANNED if phrase in text.lower().replace("networks", "")] == []
