"""A server that only this machine reaches."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from htagraph.core.errors import HtagraphError
from htagraph.service.answers import Served, answer

__all__ = ["LOOPBACK", "server_of"]

LOOPBACK = "127.0.0.1"
"""The address by which a machine reaches itself, and no other does."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    served: Served


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; the standard library answers all else with 501."""

    server: _Server
    server_version = "htagraph"
    sys_version = ""
    timeout = 30
    """Seconds that a request may take to arrive. Chosen: it comes from this machine. Doubled, a broken one is held for
    a minute."""

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
