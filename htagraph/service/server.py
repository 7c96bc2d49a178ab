"""A server that only this machine reaches, and that no client can keep from answering the others for long."""

from __future__ import annotations

import io
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from htagraph.core.errors import HtagraphError
from htagraph.service.answers import Served, answer

__all__ = ["LOOPBACK", "MOST_AT_ONCE", "server_of"]

LOOPBACK = "127.0.0.1"
"""The address by which a machine reaches itself, and no other does."""
MOST_AT_ONCE = 64
"""Requests that are answered at once, each by a thread; others are refused until one ends. Chosen: a browser sends six.
Doubled, slow clients hold twice as many threads."""
_ARRIVES_WITHIN_S = 10.0
"""Seconds in which a request must arrive, all of it. Chosen: it comes from this machine. Doubled, a client that never
ends its request is held for twice as long."""
_TAKEN_WITHIN_S = 60.0
"""Seconds in which a client must take its answer, all of it. Chosen: the largest page has 15 MB, and a tab in the
background may be slow. Doubled, a client that reads nothing is held for two minutes."""
_BUSY = (
    b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n\r\ntoo many requests at once\n"
)


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
        except OSError:  # it left
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

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address is all that a terminal needs."""

    def _answer(self, *, with_body: bool) -> None:
        # a header sent twice is neither of its values, so that no check reads one and means the other
        headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
        given = answer(self.server.served, self.path, headers, self.server.server_address[1])
        self.connection.settimeout(_TAKEN_WITHIN_S)  # of a whole answer
        self.send_response(given.status)
        for name, value in {
            **given.headers,
            "Content-Type": given.kind,
            "Content-Length": str(len(given.body)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(given.body)


def server_of(served: Served, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of a job, which answers once its ``serve_forever`` is called.

    Args:
        served: the job.
        port: of this machine; 0 for any that is free.

    Raises:
        HtagraphError: the port is taken, or may not be used.

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
