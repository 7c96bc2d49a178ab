"""The server answers on loopback, and over a real connection."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from contextlib import suppress

import pytest

from htagraph.core.errors import HtagraphError
from htagraph.service.answers import Served
from htagraph.service.server import MOST_AT_ONCE, server_of
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
    monkeypatch.setattr("htagraph.service.server._ARRIVES_WITHIN_S", 0.6)
    server = server_of(Served(graph_of(DATA / "demo"), b"page" * 1_000_000))
    port = server.server_address[1]
    before = threading.active_count()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    slow = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(3 * MOST_AT_ONCE)]
    try:
        for each in slow:
            with suppress(OSError):  # refused already
                each.sendall(b"GET / HTTP/1.1\r\nHost: a")
        deadline = time.monotonic() + 10
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
    monkeypatch.setattr("htagraph.service.server._ARRIVES_WITHIN_S", 0.3)
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
