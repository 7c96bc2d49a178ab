"""Photograph the top of the demo's page: `python docs/page_picture.py` writes docs/img/page.png.

It needs Chromium or Chrome on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import htagraph as hg

HERE: Final = Path(__file__).parent
PICTURE: Final = HERE / "img" / "page.png"
WIDTH: Final = 1280
"""Width of the window, pixels: GitHub shows pictures at most 1,012 wide, and text stays legible at four fifths."""
HEIGHT: Final = 640
"""Height of the window, pixels: the first finding with the picture of its step."""
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str:
    """Return the path of a browser that can be run without a screen."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    sys.exit(f"None of {', '.join(BROWSERS)} is on the path: install one of them.")


def photograph(page: Path, picture: Path) -> None:
    """Write a picture of the top of a page."""
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--virtual-time-budget=6000",
        f"--window-size={WIDTH},{HEIGHT}",
        f"--screenshot={picture}",
    ]
    subprocess.run([browser(), *options, page.as_uri()], check=True, capture_output=True)


def main() -> None:
    """Write the page of the demo, and the picture of its top."""
    with TemporaryDirectory() as folder:
        page = Path(folder) / "demo.html"
        hg.report(hg.load(HERE.parent / "data" / "demo"), page, inputs=["data/demo"])
        photograph(page, PICTURE)


if __name__ == "__main__":
    main()
