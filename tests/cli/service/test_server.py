"""The server answers on loopback, and over a real connection."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from htagraph.cli.service.server import MOST_AT_ONCE, OVERLAY, Served, answer, server_of
from htagraph.core.errors import HtagraphError
from htagraph.output.reports.activities import activity_edges
from htagraph.output.schema import envelope_model
from tests.patience import PATIENCE_S
from tests.reach import DATA, graph_of


def test_a_request_over_a_real_connection() -> None:
    server = server_of(Served(graph_of(DATA / "demo"), b"page"))
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/event/7")
        given = connection.getresponse()
        assert given.status == 200
        assert given.getheader("X-Content-Type-Options") == "nosniff"
        assert json.loads(given.read())["results"]["activity"][0]["activity"] == 7
        connection.request("GET", "/", headers={"Host": f"evil.example:{port}"})
        assert connection.getresponse().status == 403
        connection.close()
        connection.request("POST", "/", body=b"x")
        assert connection.getresponse().status == 501
        connection.close()
    finally:
        server.shutdown()
        server.server_close()


def test_clients_that_never_end_their_request_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.cli.service.server._ARRIVES_WITHIN_S", 0.6)
    server = server_of(Served(graph_of(DATA / "demo"), b"page" * 1_000_000))
    port = server.server_address[1]
    before = threading.active_count()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    slow = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(3 * MOST_AT_ONCE)]
    try:
        for each in slow:
            with suppress(OSError):  # refused already
                each.sendall(b"GET / HTTP/1.1\r\nHost: a")
        deadline = time.monotonic() + PATIENCE_S
        while status_of(port) != 200:  # until the slow ones are given up
            assert time.monotonic() < deadline
            assert threading.active_count() <= before + MOST_AT_ONCE + 1
        assert any(b" 503 " in received(each) for each in slow)
    finally:
        for each in slow:
            each.close()
        server.shutdown()
        server.server_close()


def status_of(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/event/7")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1000)
    except OSError:
        return b""


def test_a_byte_now_and_then_is_no_reason_to_wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.cli.service.server._ARRIVES_WITHIN_S", 0.3)
    server = server_of(Served(graph_of(DATA / "demo"), b"page"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as connection:
            begun = time.monotonic()
            with pytest.raises(OSError, match=r"Broken pipe|reset"):
                while time.monotonic() < begun + 10:
                    connection.sendall(b"G")
                    time.sleep(0.05)
            assert time.monotonic() < begun + 5
    finally:
        server.shutdown()
        server.server_close()


def test_it_listens_on_loopback_only_and_a_taken_port_is_an_error() -> None:
    server = server_of(Served(graph_of(DATA / "demo"), b""))
    assert server.server_address[0] == "127.0.0.1"
    with pytest.raises(HtagraphError, match=r"port \d+: .*in use; give another"):
        server_of(Served(graph_of(DATA / "demo"), b""), server.server_address[1])
    server.server_close()


def test_a_header_sent_twice_is_neither_of_its_values() -> None:
    server = server_of(Served(graph_of(DATA / "demo"), b"page"))
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for name, values in {
            "Host": ("evil.example", f"127.0.0.1:{port}"),
            "Origin": ("http://evil.example", f"http://127.0.0.1:{port}"),
            "Sec-Fetch-Site": ("cross-site", "none"),
        }.items():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.putrequest("GET", "/", skip_host=name == "Host")
            for value in values:
                connection.putheader(name, value)
            connection.endheaders()
            assert connection.getresponse().status == 403, name
            connection.close()
    finally:
        server.shutdown()
        server.server_close()


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
    for path in ("/", "/event/5", "/overlay.pftrace.gz", "/ui/"):
        assert answer(served, path, headers, 80).status == 403


@pytest.mark.parametrize("headers", [OURS, {"host": "localhost:80"}, OURS | {"origin": "http://127.0.0.1:80"}])
def test_our_own_page_gets_what_it_asks_for(headers: dict[str, str], served: Served) -> None:
    assert answer(served, "/", headers, 80).body == b"page"
    assert json.loads(answer(served, "/event/5", headers, 80).body)["results"]["activity"][0]["activity"] == 5
    assert answer(served, "/overlay.pftrace.gz", headers, 80).body == b"overlay"
    assert answer(served, "/ui/?x=1", headers, 80).body == b"ui"


def test_a_browser_gets_an_event_as_a_page_with_links_to_its_neighbors(served: Served) -> None:
    found = answer(served, "/event/1205", OURS | {"accept": "text/html,*/*;q=0.8"}, 80)
    assert found.kind.startswith("text/html")
    neighbors = served.graph.predecessors(1205)["other_activity"].tolist()
    for number in neighbors:
        assert f'href="/event/{number}"'.encode() in found.body
    assert b"/#on=job&amp;event=1205" in found.body
    assert answer(served, "/event/99999999", OURS | {"accept": "text/html"}, 80).status == 404


def test_an_event_is_what_the_schema_says_and_how_many_rows_are_not_shown_is_said(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htagraph.cli.service.server.MAX_ROWS", 2)
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
    assert answer(bare, "/overlay.pftrace.gz", OURS, 80).status == 404


def test_the_overlay_is_made_once_however_many_ask_at_a_time() -> None:
    made: list[int] = []

    def overlay() -> bytes:
        made.append(1)
        time.sleep(0.05)
        return b"overlay"

    served = Served(graph_of(DATA / "demo"), b"", overlay)
    with ThreadPoolExecutor(8) as asking:
        given = list(asking.map(lambda _: answer(served, "/overlay.pftrace.gz", OURS, 80).body, range(8)))
    assert (given, made) == ([b"overlay"] * 8, [1])


def test_an_overlay_that_cannot_be_made_is_an_answer(served: Served) -> None:
    def fails() -> bytes:
        msg = "rank-0.json.gz: no such file"
        raise HtagraphError(msg)

    given = answer(Served(served.graph, b"", fails), OVERLAY, OURS, 80)
    assert given.status.value == 500
    assert b"rank-0.json.gz" in given.body
