"""A Databricks workspace of our own: SQL statements over real HTTP, with the troubles a test asks for.

The storage behind external links is a second server, which refuses whoever tells it a token.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

TOKEN = "a-good-token"
WAREHOUSE = "abc123"

Rows = "Sequence[Sequence[str | None]]"


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Trouble:
    """What happens to one request instead of an answer."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    broken: bool = False
    """The connection ends in the middle of the answer."""
    dripping: Event | None = None
    """The answer goes on in drops until this is set."""


class DatabricksDouble:
    """A workspace with one statement, whose result it gives in parts."""

    def __init__(self, columns: Sequence[tuple[str, str]], parts: Sequence[Any] = (), **changes: Any) -> None:
        self.columns = columns
        self.parts = list(parts)
        self.links: bool = changes.pop("links", True)
        self.states: deque[str] = deque(changes.pop("states", ["SUCCEEDED"]))
        self.error: dict[str, str] = changes.pop("error", {})
        self.truncated: bool = changes.pop("truncated", False)
        self.link_headers: dict[str, str] = changes.pop("link_headers", {})
        self.link_scheme: str | None = changes.pop("link_scheme", None)
        self.troubles: dict[str, deque[Trouble]] = {}
        self.calls: list[Call] = []
        self.storage_calls: list[Call] = []
        self.cancelled = Event()
        self.go_on = Event()
        self.hold: bool = changes.pop("hold", False)
        """Whether asking about the statement is answered only once the test says so."""
        tls: ssl.SSLContext | None = changes.pop("tls", None)
        assert not changes
        self._workspace = _Server(self._answer, tls)
        self._storage = _Server(self._stored, tls)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._workspace.close()
        self._storage.close()

    @property
    def url(self) -> str:
        return self._workspace.url

    def trouble(self, path: str, *troubles: Trouble) -> None:
        """Have the next requests whose path ends like this go wrong."""
        self.troubles.setdefault(path, deque()).extend(troubles)

    def paths(self) -> list[str]:
        return [f"{call.method} {call.path}" for call in self.calls]

    def _trouble(self, call: Call) -> Trouble | None:
        for path, troubles in self.troubles.items():
            if call.path.endswith(path) and troubles:
                return troubles.popleft()
        return None

    def _answer(self, call: Call) -> Trouble:
        self.calls.append(call)
        if trouble := self._trouble(call):
            return trouble
        if call.headers.get("authorization") != f"Bearer {TOKEN}":
            return Trouble(401, body=b'{"message": "who is that?"}')
        match call.method, call.path.removeprefix("/api/2.0/sql/statements").split("/")[1:]:
            case "POST", []:
                if call.body["warehouse_id"] != WAREHOUSE:
                    return Trouble(404, body=b'{"error_code": "NOT_FOUND", "message": "no such warehouse"}')
                return self._state()
            case "GET", ["one"]:
                if self.hold:
                    self.go_on.wait(30)
                return self._state()
            case "GET", ["one", "result", "chunks", number]:
                return _json(self._result(int(number)))
            case "POST", ["one", "cancel"]:
                self.cancelled.set()
                return _json({})
            case _:
                return Trouble(404)

    def _state(self) -> Trouble:
        state = self.states.popleft() if len(self.states) > 1 else self.states[0]
        answer: dict[str, Any] = {"statement_id": "one", "status": {"state": state}}
        if self.error:
            answer["status"]["error"] = self.error
        if state == "SUCCEEDED":
            columns = [
                {
                    "name": name,
                    "type_name": kind.partition("<")[0].partition("(")[0],
                    "type_text": kind,
                    "position": place,
                }
                for place, (name, kind) in enumerate(self.columns)
            ]
            answer["manifest"] = {
                "format": "JSON_ARRAY",
                "schema": {"column_count": len(columns), "columns": columns},
                "total_chunk_count": len(self.parts),
                "total_row_count": sum(map(len, self.parts)),
                "truncated": self.truncated,
            }
            answer["result"] = self._result(0) if self.parts else {}
        return _json(answer)

    def _result(self, number: int) -> dict[str, Any]:
        place: dict[str, Any] = {"chunk_index": number, "row_count": len(self.parts[number])}
        if number + 1 < len(self.parts):
            place["next_chunk_index"] = number + 1
        if not self.links:
            return {**place, "data_array": self.parts[number]}
        address = self._storage.url
        if self.link_scheme:
            address = self.link_scheme + "://" + address.partition("://")[2]
        link = {**place, "external_link": f"{address}/part/{number}?sig=a-key", "http_headers": self.link_headers}
        return {"external_links": [link]}

    def _stored(self, call: Call) -> Trouble:
        self.storage_calls.append(call)
        if trouble := self._trouble(call):
            return trouble
        if "authorization" in call.headers:
            return Trouble(400, body=b"storage knows no such token")
        return _json(self.parts[int(call.path.partition("?")[0].rsplit("/", 1)[1])])


def _json(value: Any) -> Trouble:
    return Trouble(200, {"Content-Type": "application/json"}, json.dumps(value).encode())


class _Server:
    """One HTTP server on a free port of this machine."""

    def __init__(self, answer: Callable[[Call], Trouble], tls: ssl.SSLContext | None) -> None:
        class Handler(_Handler):
            reply = staticmethod(answer)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://localhost:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    reply: Callable[[Call], Trouble]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = type(self).reply(Call(self.command, self.path, headers, json.loads(body or b"null")))
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body) + (1000 if answer.broken or answer.dripping else 0)))
        self.end_headers()
        self.wfile.write(answer.body)
        while answer.dripping and not answer.dripping.wait(0.05):
            self.wfile.write(b" ")
        self.close_connection = bool(answer.dripping) or answer.broken or self.close_connection

    do_POST = do_GET  # noqa: N815 - the name it has to have

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
        """Say nothing."""
