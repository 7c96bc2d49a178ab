"""``htagraph serve`` says where it is, and answers there."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request

from tests.reach import REPOSITORY


def test_the_page_and_its_events_are_served_until_it_is_interrupted() -> None:
    words = [sys.executable, "-m", "htagraph", "serve", "data/demo", "--no-cache"]
    with subprocess.Popen(words, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        lines = iter(running.stderr.readline, "")
        address = next(found[0] for line in lines if (found := re.match(r"http://127\.0\.0\.1:\d+/", line)))
        with urllib.request.urlopen(address) as page:
            assert b"Findings" in page.read()
        with urllib.request.urlopen(f"{address}event/5") as event:
            assert b'"activity": 5' in event.read()
        running.terminate()
        running.stderr.read()
    assert running.returncode in (143, -15)
