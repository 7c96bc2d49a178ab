"""A job served to a browser: a server that only this machine reaches, and what each request is answered.

No client can keep the server from answering the others for long, and nothing goes to a page of another site.
"""

from __future__ import annotations

import io
import mimetypes
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import unquote

from htagraph.cli.service.bounded import MAX_ROWS
from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.event_page import event_page
from htagraph.output.render import to_json
from htagraph.output.reports.activities import event_report

__all__ = ["EVENTS", "LOOPBACK", "MOST_AT_ONCE", "OVERLAY", "UI", "Response", "Served", "answer", "server_of"]

LOOPBACK = "127.0.0.1"
"""The address by which a machine reaches itself, and no other does."""
MOST_AT_ONCE = 64
"""Requests that are answered at once, each by a thread; others are refused until one ends. Chosen: a browser sends six.
Doubled, slow clients hold twice as many threads."""
_ARRIVES_WITHIN_S, _TAKEN_WITHIN_S = 10.0, 60.0
"""Seconds in which a request must arrive, and in which a client must take its answer, all of it. Chosen: a request
comes from this machine; the largest page has 15 MB, and a tab in the background may be slow. Doubled, a client that
never ends its request, or reads nothing, is held for twice as long."""
_BUSY = (
    b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n\r\ntoo many requests at once\n"
)

EVENTS, OVERLAY, UI = "/event/", "/overlay.pftrace.gz", "/ui/"
"""Where events, the traces with the critical path drawn over them, and the files of Perfetto's UI are."""
_NAMES = ("127.0.0.1", "localhost")
"""What this machine calls itself. A page of another site that has made its own name mean 127.0.0.1 sends that name."""
_NUMBER = re.compile(r"[0-9]{1,10}")
_ALLOWED = ("same-origin", "none")
"""Values of ``Sec-Fetch-Site``: asked for by a page of ours, or by the user."""
_HEADERS = {
    "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN",
}  # fmt: skip


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    """Do not wait for clients at the end: each may take its time."""
    request_queue_size = 128
    served: Served

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - the standard library's
        super().__init__(*arguments)
        self._free = BoundedSemaphore(MOST_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the standard library's
        """Answer in a thread, if one is free."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        try:
            request.settimeout(0)  # its first bytes always fit
            request.send(_BUSY)
        except OSError:  # the client left: nobody reads the answer
            pass
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        """Answer, and let another request have the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        """Say nothing of a client that left or was too slow."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Arriving(io.RawIOBase):
    """What a client sends until a moment; a socket's own timeout begins again with every byte."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection = connection
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer, which has no type before Python 3.12
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; the standard library answers all else with 501."""

    server: _Server
    server_version = "htagraph"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Arriving(self.connection, time.monotonic() + _ARRIVES_WITHIN_S))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address is all that a terminal needs."""

    def do_GET(self) -> None:
        # a header sent twice is neither of its values, so that no check reads one and means the other
        headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
        given = answer(self.server.served, self.path, headers, self.server.server_address[1])
        self.connection.settimeout(_TAKEN_WITHIN_S)  # of a whole answer
        self.send_response(given.status)
        own = {"Content-Type": given.kind, "Content-Length": str(len(given.body))}
        for name, value in {**given.headers, **own}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(given.body)

    do_HEAD = do_GET


def server_of(served: Served, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of a job, which answers once its ``serve_forever`` is called.

    Example:
        >>> import htagraph as hg
        >>> server = server_of(Served(hg.load("data/demo"), b""))
        >>> server.server_address[0]
        '127.0.0.1'
        >>> server.server_close()
    """
    try:
        server = _Server((LOOPBACK, port), _Handler)
    except OSError as error:
        msg = f"port {port}: {error.strerror or error}; give another one, or none for any that is free"
        raise HtagraphError(msg) from None
    server.served = served
    return server


@dataclass(frozen=True)
class Response:
    """What goes back."""

    status: HTTPStatus
    kind: str
    """Its media type."""
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: dict(_HEADERS))


@dataclass
class Served:
    """A job that is served."""

    graph: DependencyGraph
    page: bytes
    """What is at ``/``."""
    overlay: Callable[[], bytes] | None = None
    """Makes the traces with the critical path drawn over them, gzipped."""
    ui: Path | None = None
    """The folder of a copy of Perfetto's UI."""

    _made: list[bytes] = field(default_factory=list, init=False)
    _making: Lock = field(default_factory=Lock, init=False)

    @property
    def overlay_bytes(self) -> bytes:
        """The overlay, made when first asked for, once however many ask at a time."""
        with self._making:
            if not self._made and self.overlay is not None:
                self._made.append(self.overlay())
        return self._made[0] if self._made else b""


def answer(served: Served, path: str, headers: Mapping[str, str], port: int) -> Response:
    """Return what a GET is answered.

    Example:
        >>> import htagraph as hg
        >>> served = Served(hg.load("data/demo"), b"<!doctype html>")
        >>> answer(served, "/", {"host": "127.0.0.1:80"}, 80).status.value
        200
        >>> answer(served, "/", {"host": "evil.example:80"}, 80).status.value
        403
    """
    if not _is_ours(headers, port):
        return _plain(HTTPStatus.FORBIDDEN, "this server answers pages of its own only")
    where = unquote(path.partition("?")[0])
    if where in ("/", "/favicon.ico"):  # an icon is what browsers ask for unasked
        is_page = where == "/"
        return Response(HTTPStatus.OK, "text/html; charset=utf-8", served.page if is_page else b"")
    if where.startswith(EVENTS):
        return _event(served, where.removeprefix(EVENTS), is_read="text/html" in headers.get("accept", ""))
    if where == OVERLAY and served.overlay is not None:
        return _overlay(served)
    if where.startswith(UI) and served.ui is not None:
        return _file(served.ui, where.removeprefix(UI) or "index.html")
    return _plain(HTTPStatus.NOT_FOUND, "nothing is here")


def _is_ours(headers: Mapping[str, str], port: int) -> bool:
    hosts = {f"{name}:{port}" for name in _NAMES}
    if headers.get("host", "") not in hosts:
        return False
    origin = headers.get("origin")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return False
    return headers.get("sec-fetch-site", "none") in _ALLOWED


def _overlay(served: Served) -> Response:
    try:
        return Response(HTTPStatus.OK, "application/gzip", served.overlay_bytes)
    except (HtagraphError, OSError) as error:  # a trace has gone, or the disk is full
        return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))


def _event(served: Served, number: str, *, is_read: bool) -> Response:
    """Return the report on an activity: a page where a browser asks for one, JSON otherwise."""
    if not _NUMBER.fullmatch(number):
        return _plain(HTTPStatus.NOT_FOUND, "an event is a number")
    try:
        if is_read:
            shown_page = event_page(served.graph, int(number), events=EVENTS, rows=MAX_ROWS)
            return Response(HTTPStatus.OK, "text/html; charset=utf-8", shown_page)
        found = event_report(served.graph, int(number)).to_dict()
    except SelectionError as error:
        return _plain(HTTPStatus.NOT_FOUND, str(error))
    shown, cut = _cut(found.pop("results"))
    text = to_json({"results": shown, "cut": cut} | found)  # what was asked for before what was read
    return Response(HTTPStatus.OK, "application/json", text.encode())


def _cut(results: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return results with the first rows of each table, and for tables with more of them how many there are."""
    tables = {name: rows for name, rows in results.items() if isinstance(rows, list) and len(rows) > MAX_ROWS}
    cut = [{"table": name, "first": 0, "rows": MAX_ROWS, "of": len(rows)} for name, rows in tables.items()]
    return {name: rows[:MAX_ROWS] if name in tables else rows for name, rows in results.items()}, cut


def _file(folder: Path, name: str) -> Response:
    """Return a file of a folder; nothing outside of it, by whatever links."""
    root = folder.resolve()
    try:
        file = (root / name).resolve()
        if file.is_relative_to(root) and file.is_file():
            return Response(
                HTTPStatus.OK, mimetypes.guess_type(file.name)[0] or "application/octet-stream", file.read_bytes()
            )
    except (OSError, ValueError):  # a name that no file can have, or a file that cannot be read: both are no such file
        pass
    return _plain(HTTPStatus.NOT_FOUND, "no such file")


def _plain(status: HTTPStatus, words: str) -> Response:
    return Response(status, "text/plain; charset=utf-8", f"{words}\n".encode("utf-8", "replace"))
