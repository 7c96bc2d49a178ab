"""The server answers on loopback, and over a real connection."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from htagraph.core.errors import HtagraphError
from htagraph.service.answers import Served
from htagraph.service.server import server_of
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
