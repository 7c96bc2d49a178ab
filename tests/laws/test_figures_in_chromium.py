"""Every figure in a real browser: no error, nothing that a name could do, no text cut off or over another."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.output.plot.jobs import job, result_of

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (700, 1400)

TEXTS = """() => {
  const hidden = node => {
    for (let e = node; e && e.style; e = e.parentElement) {
      const s = getComputedStyle(e);
      if (s.display === 'none' || s.visibility === 'hidden' || s.opacity === '0') return true;
    }
    return false;
  };
  const bad = [];
  for (const plot of document.querySelectorAll('.js-plotly-plot')) {
    const box = plot.getBoundingClientRect(), name = plot.parentElement.id;
    const items = [...plot.querySelectorAll('svg text')].filter(t => t.textContent.trim() && !hidden(t)).map(t => {
      const r = t.getBoundingClientRect();
      return {text: t.textContent.slice(0, 40), turned: (t.getAttribute('transform') || '').includes('rotate(-45'), r};
    }).filter(i => i.r.width && i.r.height);
    for (const {text, r} of items)
      if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
        bad.push(`${name}: cut off: ${text}`);
    for (let a = 0; a < items.length; a++) for (let b = 0; b < a; b++) {
      const x = items[a], y = items[b];
      const wide = Math.min(x.r.right, y.r.right) - Math.max(x.r.left, y.r.left);
      const high = Math.min(x.r.bottom, y.r.bottom) - Math.max(x.r.top, y.r.top);
      if (wide > 2 && high > 3 && !(x.turned && y.turned)) bad.push(`${name}: overlap: ${x.text} | ${y.text}`);
    }
  }
  return bad;
}"""
"""Texts outside their figure, and texts over each other; boxes of texts turned by 45 degrees may overlap."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("needs Chromium or Chrome")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


def page_of(kind: str, target: Path) -> Path:
    """Write a page with every figure of a job."""
    figures = {name: getattr(hg.plot, name)(result_of(name, job(kind))) for name in hg.plot.__all__}
    parts = [
        f'<div id="{name}">'
        + figure.to_html(full_html=False, include_plotlyjs=not at, config={"responsive": True})
        + "</div>"
        for at, (name, figure) in enumerate(figures.items())
    ]
    head = '<!DOCTYPE html><meta charset="utf-8"><title>figures</title>'
    target.write_text(f"{head}<body>{''.join(parts)}</body>", encoding="utf-8")
    return target


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["demo", "CPU only", "one rank", "no events", "hostile names"])
def test_every_figure_is_drawn_without_an_error_and_its_texts_can_be_read(
    kind: str, browser: Any, tmp_path: Path
) -> None:
    path = page_of(kind, tmp_path / "figures.html")
    page, errors = browser.new_page(), []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: errors.append(request.url) if not request.url.startswith("file:") else None)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri())
        count = len(hg.plot.__all__)
        page.wait_for_function(f"document.querySelectorAll('.js-plotly-plot .main-svg').length >= {count}")
        assert page.evaluate(TEXTS) == []
        assert errors == []
        assert page.title() == "figures"
        assert page.locator("svg a, svg img, svg script").count() == 0
    page.close()
