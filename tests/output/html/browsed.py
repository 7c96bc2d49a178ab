"""Pages in a real browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""The browser of the machine; None where there is none."""


@dataclass
class Browsed:
    """A page that is open."""

    page: Any
    said: list[str] = field(default_factory=list)
    """Errors and warnings of the console, dialogs, and addresses that were asked for beyond the file."""


@contextmanager
def browsed(
    path: Path, *, fragment: str = "", scripts: bool = True, ready: str = ".timeline", **options: Any
) -> Iterator[Browsed]:
    """Open a file in a browser without a window; skip the test where there is no browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox"])
        context = browser.new_context(java_script_enabled=scripts, **options)
        page = context.new_page()
        seen = Browsed(page)
        page.on("console", lambda message: seen.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: seen.said.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: _asked(seen, request.url, path))
        page.goto(path.as_uri() + fragment)
        if scripts:
            page.wait_for_selector(f"{ready}[data-ready]", timeout=30_000)
            page.wait_for_timeout(100)
        yield seen
        browser.close()


def _asked(seen: Browsed, url: str, path: Path) -> None:
    if not url.startswith((path.as_uri(), "data:")):
        seen.said.append(f"request: {url}")
