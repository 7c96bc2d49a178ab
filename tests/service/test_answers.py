"""Who is answered, and what never is."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from htagraph.output.schema import envelope_model
from htagraph.service import answers
from htagraph.service.activity_edges import activity_edges
from htagraph.service.answers import Served, answer
from tests.reach import DATA, graph_of

OURS = {"host": "127.0.0.1:80"}


@pytest.fixture
def served(tmp_path: Path) -> Served:
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "index.html").write_text("ui")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "ui" / "link").symlink_to(tmp_path / "secret")
    return Served(graph_of(DATA / "demo"), b"page", lambda: b"overlay", tmp_path / "ui")


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"host": "evil.example:80"}, {"host": "127.0.0.1"}, {"host": "127.0.0.1:81"},
        OURS | {"origin": "http://evil.example"}, OURS | {"origin": "null"}, OURS | {"sec-fetch-site": "cross-site"},
    ],
)  # fmt: skip
def test_others_get_nothing(headers: dict[str, str], served: Served) -> None:
    for path in ("/", "/event/5", "/overlay.json.gz", "/ui/"):
        assert answer(served, path, headers, 80).status == 403


@pytest.mark.parametrize("headers", [OURS, {"host": "localhost:80"}, OURS | {"origin": "http://127.0.0.1:80"}])
def test_our_own_page_gets_what_it_asks_for(headers: dict[str, str], served: Served) -> None:
    assert answer(served, "/", headers, 80).body == b"page"
    assert json.loads(answer(served, "/event/5", headers, 80).body)["results"]["activity"][0]["activity"] == 5
    assert answer(served, "/overlay.json.gz", headers, 80).body == b"overlay"
    assert answer(served, "/ui/?x=1", headers, 80).body == b"ui"


def test_an_event_is_what_the_schema_says_and_how_many_rows_are_not_shown_is_said(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST_ROWS", 2)
    found = json.loads(answer(served, "/event/1205", OURS, 80).body)
    envelope_model("event").model_validate(found)
    incoming = activity_edges(served.graph, 1205, incoming=True)
    assert len(found["results"]["waits_for"]) == 2
    assert {"table": "waits_for", "first": 0, "rows": 2, "of": len(incoming)} in found["cut"]


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../secret", "/ui/%2e%2e/secret", "/ui//etc/passwd", "/ui/link", "/ui/\0", "/ui/%00", "/secret", "/event/x",
        "/event/-1", "/event/99999999", "/event/1/../2", "//evil.example/", "/ui/" + "a" * 5000,
    ],
)  # fmt: skip
def test_what_is_not_there_or_outside_is_not_found(path: str, served: Served) -> None:
    given = answer(served, path, OURS, 80)
    assert given.status == 404
    assert b"secret" not in given.body


def test_without_a_ui_there_is_none(served: Served) -> None:
    bare = Served(served.graph, b"page")
    assert answer(bare, "/ui/index.html", OURS, 80).status == 404
    assert answer(bare, "/overlay.json.gz", OURS, 80).status == 404


def test_the_overlay_is_made_once_however_many_ask_at_a_time() -> None:
    made: list[int] = []

    def overlay() -> bytes:
        made.append(1)
        time.sleep(0.05)
        return b"overlay"

    served = Served(graph_of(DATA / "demo"), b"", overlay)
    with ThreadPoolExecutor(8) as asking:
        given = list(asking.map(lambda _: answer(served, "/overlay.json.gz", OURS, 80).body, range(8)))
    assert (given, made) == ([b"overlay"] * 8, [1])
