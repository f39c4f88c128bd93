"""Answers whether the worker is well, from a thread of its own: also when the event loop does not turn."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from matoolkit.worker.errors import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Callable

_NOTICES_CLOSING = 0.05
"""Seconds within which it stops when told to: a worker that ends has none to spare."""

Answer = tuple[int, dict[str, "Any"]]


class PortTaken(WorkerFailure):
    """The port of the health address cannot be used."""


class HealthAddress:
    """Listens until it is closed."""

    def __init__(self, port: int, answer: Callable[[], Answer], *, host: str = "0.0.0.0") -> None:  # noqa: S104 - asked by who runs the container, from outside of it
        try:
            self._server = _Server((host, port), answer)
        except OSError as error:
            raise PortTaken(
                f"HEALTH_CHECK_PORT: nothing can listen on port {port}: {error.strerror or error}"
            ) from error
        self.port: int = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(_NOTICES_CLOSING,), name="health", daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], answer: Callable[[], Answer]) -> None:
        super().__init__(address, _Handler)
        self.answer = answer


class _Handler(BaseHTTPRequestHandler):
    server_version = "matoolkit"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        """Any path: what is asked is always the same."""
        assert isinstance(self.server, _Server)  # noqa: S101 - made by it
        status, body = self.server.answer()
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
        """Nothing: it is asked every few seconds."""
