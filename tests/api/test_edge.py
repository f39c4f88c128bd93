"""The outermost layer: ids, headers, the log, and what is said when something breaks."""

from __future__ import annotations

import logging
import socket
import threading
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit import __version__
from matoolkit.api.edge import RequestIdFilter
from matoolkit.hosts import api as host
from matoolkit.hosts.api import ApiServer, ApiSettings, CannotListen
from matoolkit.settings import BadSettings
from matoolkit.store.errors import DatabaseFull, DatabaseUnavailable, StoreError
from tests.api.entra import CLIENT, TENANT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.live import Live


class Lines(logging.Handler):
    """What is logged, with the request's id. A request's last line comes after its answer, and is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.has_more = threading.Condition()
        self.addFilter(RequestIdFilter())

    def emit(self, record: logging.LogRecord) -> None:
        with self.has_more:
            self.records.append(record)
            self.has_more.notify_all()

    def about(self, request: str) -> list[str]:
        """All lines of a request, the last of which says how it ended."""

        def own() -> list[logging.LogRecord]:
            return [each for each in self.records if getattr(each, "request_id", None) == request]

        with self.has_more:
            assert self.has_more.wait_for(
                lambda: any(f"(request {request})" in each.getMessage() for each in own()), 10
            )
            return [each.getMessage() for each in own()]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    caplog.set_level(logging.INFO)
    lines = Lines()
    logging.getLogger().addHandler(lines)
    yield lines
    logging.getLogger().removeHandler(lines)


def test_every_request_has_an_id(live: Live) -> None:
    first, second = (live.call("GET", "/api/batches").headers["x-request-id"] for _ in range(2))
    assert first != second
    given = live.call("GET", "/api/batches", headers={"X-Request-Id": "mine-1"})
    assert given.headers["x-request-id"] == "mine-1"
    for bad in ("x" * 65, "a b", "<x>", ""):
        assert live.call("GET", "/nothing", headers={"X-Request-Id": bad}).headers["x-request-id"] != bad


def test_security_headers_are_on_every_answer(live: Live) -> None:
    for path, role in (("/api/batches", "Admin"), ("/api/batches", None), ("/nothing", None), ("/docs", None)):
        headers = live.call("GET", path, role=role).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_what_breaks_says_nothing_and_is_in_the_log(live: Live, log: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("with the password hunter2")

    monkeypatch.setattr("matoolkit.store.batch_lists.page", broken)
    answer = live.call("GET", "/api/batches", headers={"X-Request-Id": "broken-1"})
    assert (answer.status_code, answer.json()) == (500, {"error": "An internal error occurred."})
    assert answer.headers["x-request-id"] == "broken-1"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert log.about("broken-1")[0] == "GET /api/batches failed"
    (told,) = [each.exc_info for each in log.records if each.exc_info]
    assert told[0] is ZeroDivisionError


def test_the_id_is_on_lines_from_other_threads(live: Live, log: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    def talking(*_: Any, **__: Any) -> None:
        logging.getLogger("deep.inside").warning("something odd")

    monkeypatch.setattr("matoolkit.store.batch_lists.one", talking)
    live.call("GET", "/api/batches/1", headers={"X-Request-Id": "deep-1"})
    assert "something odd" in log.about("deep-1")


def test_the_log_names_who_and_what_and_never_a_query_or_a_line_break(live: Live, log: Lines) -> None:
    live.call("GET", "/api/batches/1%0A2/steps?member=anna@secret.test", headers={"X-Request-Id": "line-1"})
    (line,) = log.about("line-1")
    assert line.startswith("GET /api/batches/1%0A2/steps: 400 in ")
    assert "'anna@example.test'" in line
    everything = "\n".join(each.getMessage() for each in log.records if not each.name.startswith("urllib3"))
    assert "secret" not in everything
    assert "Bearer" not in everything


@pytest.mark.parametrize(
    ("error", "status"), [(DatabaseUnavailable("gone"), 503), (StoreError("odd"), 500), (RuntimeError("x"), 500)]
)
def test_a_database_that_is_away(live: Live, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int) -> None:
    def away() -> None:
        raise error

    monkeypatch.setattr(live.database, "reading", away)
    answer = live.call("GET", "/api/batches")
    assert answer.status_code == status
    assert ("retry-after" in answer.headers) == (status == 503)
    assert "gone" not in answer.text
    health = live.call("GET", "/api/health", role=None)
    if isinstance(error, StoreError):
        assert (health.status_code, health.json()["status"]) == (503, "unhealthy")


def test_a_disk_that_is_full_is_told(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = live.batch("anna")

    def full() -> None:
        raise DatabaseFull("/var/lib/somewhere is full")

    monkeypatch.setattr(live.database, "transaction", full)
    error = live.error("POST", f"/api/batches/{batch}/advance", 503)
    assert error == "the database cannot write: its disk is full, or its file is read-only"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/api/nothing", 404), ("PATCH", "/api/batches", 405), ("GET", "/api/batches/", 404)],
)
def test_routes_that_are_not_there(live: Live, method: str, path: str, status: int) -> None:
    told = {404: "there is no such route", 405: f"this route does not take {method}"}[status]
    assert live.error(method, path, status).startswith(told)


def test_a_client_that_goes_away_in_the_middle_harms_nobody(live: Live, log: Lines) -> None:
    name = live.publish()
    host_name, port = live.server.url.removeprefix("http://").split(":")
    head = (
        f"POST /api/batches HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.token('Admin')}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n\r\n--b\r\n"
    )
    with socket.create_connection((host_name, int(port))) as client:
        client.sendall(head.encode())
    assert live.create(name, "anna")["memberCount"] == 1
    assert not [each for each in log.records if each.exc_info]


@pytest.mark.parametrize(
    ("path", "kind"), [("/api/runbooks", "application/json"), ("/api/batches", "multipart/form-data; boundary=b")]
)
def test_a_body_that_stops_coming_is_not_waited_for(
    live: Live, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    monkeypatch.setattr("matoolkit.api.bodies._PATIENCE_SECONDS", 0.2)
    host_name, port = live.server.url.removeprefix("http://").split(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.token('Admin')}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: 1000\r\n\r\n--b\r\n"
    )
    with socket.create_connection((host_name, int(port)), timeout=10) as client:
        client.sendall(head.encode())
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b'{"error":"nothing more of the request has come for 0.2 seconds"}')


def test_the_documents_are_for_everybody(live: Live) -> None:
    page = live.call("GET", "/docs", role=None)
    assert page.headers["content-type"].startswith("text/html")
    described = live.get("/openapi.json", role=None)
    assert described["info"]["version"] == __version__
    for path in described["paths"]:
        assert path in page.text
    assert "http" not in page.text.replace("Authorization", "")
    assert {"422"}.isdisjoint(
        code for each in described["paths"].values() for operation in each.values() for code in operation["responses"]
    )


# Starting -------------------------------------------------------------------------------------------------------------

ENTRA = {"AzureAd__TenantId": TENANT, "AzureAd__ClientId": CLIENT}


def test_without_entra_it_speaks_to_this_machine_only() -> None:
    settings = ApiSettings.read({})
    assert (settings.address, settings.entra) == (("127.0.0.1", 8080), None)
    for address in (str(IPv4Address(0)), "10.0.0.1", "example.test", "::"):
        with pytest.raises(BadSettings, match="AdminApi__Host"):
            ApiSettings.read({"AdminApi__Host": address})
    for address in ("127.0.0.2", "::1", "localhost"):
        assert ApiSettings.read({"AdminApi__Host": address}).address[0] == address


def test_with_entra_the_local_key_is_not_even_made(tmp_path: Path) -> None:
    settings = ApiSettings.read(ENTRA)
    assert settings.address[0] == str(IPv4Address(0))
    found = host.sign_in(settings, tmp_path)
    assert found.rules.algorithm == "RS256"
    assert list(tmp_path.iterdir()) == []
    assert host.sign_in(ApiSettings.read({}), tmp_path).rules.algorithm == "ES256"


@pytest.mark.parametrize("missing", ENTRA)
def test_half_of_entras_settings_is_none(missing: str) -> None:
    with pytest.raises(BadSettings, match=missing):
        ApiSettings.read({name: value for name, value in ENTRA.items() if name != missing})
    with pytest.raises(BadSettings, match="AzureAd__TenantId and AzureAd__ClientId"):
        ApiSettings.read({"AzureAd__Audience": "api://x"})


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        app: Any = None
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}"):
            ApiServer(app, "127.0.0.1", port)
