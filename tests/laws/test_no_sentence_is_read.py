"""No code reads a sentence: texts are taken apart only at listed sites, each with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.reach import REPOSITORY

READS = frozenset({
    "endswith", "findall", "finditer", "fullmatch", "match", "partition", "removeprefix", "removesuffix", "replace",
    "rpartition", "rsplit", "search", "split", "startswith", "sub",
})  # fmt: skip
"""Methods that look into a text, or change a part of it."""
PLACES = ("findings", "output", "analyses", "trace/readers.py")
"""Where sentences are made, or pass through."""
UNREAD = ("output/export/",)
"""Writers of formats that other programs read: no sentence of this program passes through them."""
REASONS = {
    "array": "no text: an array, a table or a path",
    "key": "a key or a column of a table, an option, an ending of files: a word that code gives to code",
    "name": "a name from a trace",
    "layout": "cuts, wraps or escapes any text for the place where it is shown, whatever it says",
    "owed": "a sentence is still read here",
}
"""Why a site is none of what the law forbids; ``owed``: it is."""
MOST_OWED = 0
"""Sites at which a sentence is still read; may only become fewer."""
LIST = Path(__file__).with_name("sentences_read.txt")


def sites() -> Iterator[str]:
    """Yield each site as the module and the method with what it is called on."""
    package = REPOSITORY / "htagraph"
    for place in PLACES:
        root = package / place
        for file in [root] if root.is_file() else sorted(root.rglob("*.py")):
            module = file.relative_to(package).as_posix()
            if module.startswith(UNREAD):
                continue
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
                    yield f"{module} {ast.unparse(node.func)}"


def listed() -> dict[str, str]:
    """Return the reason of each listed site."""
    lines = [line.partition(" ") for line in LIST.read_text(encoding="utf-8").splitlines() if line]
    return {site: reason for reason, _, site in lines}


def test_a_text_is_taken_apart_only_at_listed_sites_and_each_listed_site_exists() -> None:
    assert set(sites()) == set(listed())


def test_each_site_has_a_known_reason_and_no_sentence_more_is_read() -> None:
    reasons = list(listed().values())
    assert set(reasons) <= set(REASONS)
    assert reasons.count("owed") <= MOST_OWED


def test_the_law_sees_a_sentence_that_is_read() -> None:
    node = ast.parse("'it waits'.replace('it', 'rank 3')").body[0]
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Call)
    assert isinstance(node.value.func, ast.Attribute)
    assert node.value.func.attr in READS
