"""A page: one script and one style that its policy names, and payloads that are data."""

from __future__ import annotations

import base64
import hashlib
import re

from htagraph.output.html.markup import element
from htagraph.output.html.page import Section, page, script_of

WHOLE = page("<A>", [Section("a", "A & B", element("p", "x"), payload={"bytes": b"</script>\0"})]).decode()


def digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def test_the_policy_names_the_script_and_the_style() -> None:
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', WHOLE)[0].replace("&#x27;", "'")
    (script,), (style,) = (
        re.findall(r"<script>(.*?)</script>", WHOLE, re.S),
        re.findall(r"<style>(.*?)</style>", WHOLE, re.S),
    )
    assert f"script-src 'sha256-{digest(script)}'" in policy
    assert f"style-src 'sha256-{digest(style)}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


def test_a_payload_is_data() -> None:
    (data,) = re.findall(r'<script type="application/octet-stream" id="bytes">([^<]*)</script>', WHOLE)
    assert base64.b64decode(data) == b"</script>\0"


def test_titles_are_escaped_and_sections_are_linked() -> None:
    assert "<title>&lt;A&gt;</title>" in WHOLE
    assert '<a href="#a">A &amp; B</a>' in WHOLE


def test_modules_become_one_script_without_imports() -> None:
    script = script_of(["words.js", "scan.js"])
    assert "import " not in re.sub(r"//.*|/\*.*?\*/", "", script)
    assert "export " not in script
    assert "function scanRow(" in script
