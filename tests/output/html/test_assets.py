"""The page's own script and style: no way to turn a text into markup, and names that do not clash."""

from __future__ import annotations

import colorsys
import re
from collections import Counter
from pathlib import Path

import pytest

from htagraph.output.html.page import script_of
from htagraph.output.html.report import SCRIPTS, STYLES
from tests.output.html.browsed import CHROMIUM
from tests.output.plot.test_style import contrast
from tests.reach import REPOSITORY

ASSETS = sorted((REPOSITORY / "htagraph" / "output" / "html" / "assets").iterdir())
MODULES = [path for path in ASSETS if path.suffix == ".js"]
FORBIDDEN = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setAttribute(\"style",
    "setAttribute('style", "createContextualFragment", "DOMParser", "import(", "fetch(", "XMLHttpRequest", "srcdoc",
    "javascript:", ".cssText",
)  # fmt: skip
"""What could make markup, code or a request of a text."""
MOST_LINES = 45
"""Of a function."""


@pytest.mark.parametrize("path", ASSETS, ids=lambda path: path.name)
def test_no_asset_makes_markup_of_a_text_or_asks_for_anything(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not [word for word in FORBIDDEN if word in text]
    assert not re.search(r"https?://|@import|url\(", text)


def defined(path: Path, words: str) -> list[str]:
    """Return the names that a module defines by some words, such as "export function"."""
    return re.findall(rf"^{words} (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_functions_of_all_modules_have_names_of_their_own() -> None:
    words = "(?:export )?(?:async )?(?:function|const|let)"
    count = Counter(name for path in MODULES for name in defined(path, words))
    assert not [name for name, times in count.items() if times > 1]


def test_what_a_module_imports_another_exports_and_is_there_before() -> None:
    order = ["page.js", *SCRIPTS, "start.js"]
    exported = {path.name: set(defined(path, "export (?:async )?(?:function|const)")) for path in MODULES}
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for names, source in re.findall(r'^import \{ (.*?) \} from "\./(.*?)";', text, re.MULTILINE):
            assert set(names.split(", ")) <= exported[source], f"{path.name} imports {names}"
            if path.name in order:
                assert order.index(source) < order.index(path.name), f"{source} comes behind {path.name}"


def test_functions_are_small() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for body in re.split(r"^(?=(?:export )?(?:async )?function )", text, flags=re.MULTILINE):
            lines = body.split("\n}\n")[0].count("\n")
            assert not body.startswith(("function", "export", "async")) or lines <= MOST_LINES, (
                f"{path.name}: {body[:60]}"
            )


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_can_be_read_on_light_and_dark_pages(mode: str) -> None:
    colors: dict[str, str] = {}
    for name in ("page.css", "timeline.css"):
        light, _, dark = (ASSETS[0].parent / name).read_text(encoding="utf-8").partition("prefers-color-scheme: dark")
        colors |= dict(re.findall(r"--([\w-]+): (#\w{6});", light.partition("@media")[0]))
        colors |= dict(re.findall(r"--([\w-]+): (#\w{6});", dark.partition("\n}\n")[0])) if mode == "dark" else {}
    for ink in ("ink", "muted", "link"):
        for ground in ("paper", "card"):
            assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
    script = (ASSETS[0].parent / "colors.js").read_text(encoding="utf-8")
    darkest = int(re.findall(r"const DARKEST = (\d+)", script)[0])
    for hue, saturation in re.findall(r"\[(\d+), (\d+)\]", script):
        parts = colorsys.hls_to_rgb(int(hue) / 360, darkest / 100, int(saturation) / 100)
        slice_color = "#" + "".join(f"{round(255 * part):02x}" for part in parts)
        assert contrast(colors["slice-ink"], slice_color) >= 4.5, hue


def test_every_file_of_the_section_is_there() -> None:
    there = {path.name for path in ASSETS}
    assert {*SCRIPTS, *STYLES, "page.js", "page.css", "start.js"} <= there


COUNT = """
(scanRow) => [1e3, 1e5, 1e6].map((count) => {
  const start = Float64Array.from({ length: count }, (_, i) => i * (1e8 / count));
  const end = start.map((moment) => moment + 1e8 / count / 2);
  let asked = 0;
  let read = 0;
  const counted = new Proxy(end, { get: (values, place) => { read++; return values[place]; } });
  const look = { color: () => { asked++; return 1; }, seam: 0, least: Infinity };
  const line = new Uint32Array(500);
  const row = { first: 0, last: count };
  const scan = () => scanRow(line, { start, end: counted }, row, { from: 0, scale: 500 / 1e8 }, look);
  scan(); // which makes the index
  [asked, read] = [0, 0];
  scan();
  return [asked, line.filter((pixel) => pixel === 1).length, read];
})
"""
"""Draws a row of slices into 500 pixels; gives how many slices and pixels were drawn, and how many ends were read."""


@pytest.mark.slow
def test_the_work_of_a_row_is_in_proportion_to_pixels_not_slices() -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    script = script_of(["payload.js", "model.js", "scan.js"]).replace("})();", "return scanRow; })()")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox"])
        few, many, most = browser.new_page().evaluate(
            f"({COUNT})({script.removeprefix(chr(34) + 'use strict' + chr(34) + ';')})"
        )
        browser.close()
    assert [drawn[:2] for drawn in (few, many, most)] == [[500, 500]] * 3
    assert max(few[2], many[2], most[2]) <= 12 * 500
