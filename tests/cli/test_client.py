"""The client: every failure has a name and says what to do, and nothing is done twice."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, Self

import pytest

from matoolkit.cli.client import (
    ApiClient,
    DoesNotFit,
    NotOurServer,
    NotThere,
    Refused,
    RoleMissing,
    ServerAway,
    ServerFailed,
    ServerSilent,
    SignInRefused,
    all_pages,
)
from matoolkit.cli.sign_in.local import LocalSignIn
from matoolkit.clock import ManualClock, SystemClock
from tests.api.people import csv, runbook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.api.live import Live


@pytest.fixture
def client(live: Live) -> Iterator[ApiClient]:
    with ApiClient(live.server.url, lambda: live.token("Admin")) as client:
        yield client


class Scripted:
    """A server that answers as it is told, one answer after another, and keeps what it was asked."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes] | None) -> None:
        scripted = self
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                scripted.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
                answer = scripted.answers.pop(0)
                if answer is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do_PUT = handle_any  # noqa: N815 - the names are the base class's

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def said(status: int, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(body or {}).encode()


class Sleeps(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# What goes right ----------------------------------------------------------------------------------------------------


def test_a_wave_by_the_client_alone(live: Live, client: ApiClient) -> None:
    name = live.name()
    published = client.publish_runbook(name, runbook(name))
    assert published["version"] == 1
    made = client.create_batch(name, "people.csv", csv("anna", "ben"))
    batch_id = made["batchId"]
    assert client.advance_batch(batch_id)["phaseName"] == "prepare"
    live.settle()
    assert client.advance_batch(batch_id)["phaseName"] == "move"
    live.settle()
    assert client.batch(batch_id)["batch"]["status"] == "completed"
    assert [each["memberKey"] for each in client.members(batch_id, status="completed")["members"]] == ["anna", "ben"]
    assert client.health()["status"] == "healthy"


def test_pages_follow_each_other_to_the_end(live: Live, client: ApiClient) -> None:
    batch_id = live.batch(*(f"p{number}" for number in range(7)))
    pages = list(all_pages(lambda **query: client.members(batch_id, **query), limit=3))
    assert [len(page["members"]) for page in pages] == [3, 3, 1]
    assert [each["memberKey"] for page in pages for each in page["members"]] == [f"p{number}" for number in range(7)]


@pytest.mark.parametrize("name", ["Größe & Maß", "50%/day?x=1#y", "a b", "semi;colon", "日本"])
def test_a_name_stays_one_part_of_the_path(client: ApiClient, name: str) -> None:
    with pytest.raises(NotThere):
        client.runbook(name)


@pytest.mark.parametrize("name", ["..", ".", ""])
def test_a_name_that_would_be_another_path_is_nobody(client: ApiClient, name: str) -> None:
    with pytest.raises(NotThere):
        client.versions(name)


def test_a_prefix_of_the_address_is_kept() -> None:
    with Scripted(said(200, {"runbooks": []})) as server, ApiClient(f"{server.url}/waves/", "t") as client:
        client.runbooks(limit=2, cursor=None)
    assert server.asked[0][:2] == ("GET", "/waves/api/runbooks?limit=2")


def test_passwords_of_netrc_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login anna password swordfish\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Scripted(said(200), said(200)) as server:
        for token in ("mine", None):
            with ApiClient(server.url, token) as client:
                client.health()
    assert [headers.get("Authorization") for _, _, headers, _ in server.asked] == ["Bearer mine", None]


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Scripted(said(200, {"status": "healthy"})) as server, ApiClient(server.url, None) as client:
        assert client.health() == {"status": "healthy"}


# What goes wrong ----------------------------------------------------------------------------------------------------


def test_nobody_there_names_the_address_and_what_to_do() -> None:
    sleeps = Sleeps()
    url = f"http://127.0.0.1:{free_port()}"
    with ApiClient(url, "t", sleep=sleeps) as client, pytest.raises(ServerAway) as caught:
        client.runbooks()
    assert str(caught.value).startswith(f"the server at {url} cannot be reached: Connection refused. ")
    assert "matoolkit up" in str(caught.value)
    assert "--api-url" in str(caught.value)
    assert sleeps == []


def test_an_expired_token(live: Live) -> None:
    token = live.key.token("anna", ["Admin"], datetime.now(UTC) - timedelta(hours=2), timedelta(minutes=10))
    with ApiClient(live.server.url, token) as client, pytest.raises(SignInRefused) as caught:
        client.runbooks()
    assert str(caught.value) == (
        "the server does not accept your sign-in: the token has expired. Sign in again with `matoolkit auth login`"
    )


def test_a_role_that_is_missing(live: Live) -> None:
    with ApiClient(live.server.url, live.token("Reader")) as client, pytest.raises(RoleMissing) as caught:
        client.cancel_batch(1)
    assert "this needs the role Admin" in str(caught.value)


def test_what_is_not_there_and_what_does_not_fit(live: Live, client: ApiClient) -> None:
    with pytest.raises(NotThere, match="there is no batch 999999"):
        client.batch(999999)
    batch_id = live.batch()
    client.cancel_batch(batch_id)
    with pytest.raises(DoesNotFit, match="cancelled"):
        client.advance_batch(batch_id)


def test_every_error_of_a_runbook_is_told(live: Live, client: ApiClient) -> None:
    with pytest.raises(Refused) as caught:
        client.publish_runbook(live.name(), "name: x\n")
    assert len(caught.value.errors) == 2
    assert str(caught.value).splitlines() == [
        "it has 2 errors:",
        *(f"  {each}" for each in caught.value.errors),
    ]


def test_every_error_and_warning_of_a_file_is_told(live: Live, client: ApiClient) -> None:
    name = live.publish()
    with pytest.raises(Refused) as caught:
        client.create_batch(name, "people.csv", b"Key,Other\r\nanna,1\r\nanna,2\r\n")
    assert len(caught.value.errors) > 1
    for each in caught.value.errors:
        assert f"\n  {each}" in str(caught.value)
    assert "\n  warning: " in str(caught.value)


def test_a_fault_of_the_server_names_the_request() -> None:
    broken = said(500, {"error": "An internal error occurred."}, X_Request_Id="abc-1")
    with Scripted(broken) as server, ApiClient(server.url, "t") as client, pytest.raises(ServerFailed) as caught:
        client.runbooks()
    assert str(caught.value) == (
        f"the server at {server.url} failed: An internal error occurred. "
        "(status 500; its log says more under request abc-1)"
    )
    assert caught.value.request_id == "abc-1"


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"Content-Type": "text/html"}, b"<html>Sign in to the guest network</html>"),
        (404, {"Content-Type": "text/html"}, b"<html>nothing here</html>"),
        (302, {"Location": "https://login.example/"}, b""),
        said(200, [1]),
    ],
)
def test_something_else_at_the_address(answer: tuple[int, dict[str, str], bytes]) -> None:
    with Scripted(answer) as server, ApiClient(server.url, "t") as client, pytest.raises(NotOurServer) as caught:
        client.runbooks()
    assert server.url in str(caught.value)
    assert "does not look like the admin API" in str(caught.value)


def test_a_server_that_is_silent_is_not_asked_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with ApiClient(url, "t") as client, pytest.raises(ServerSilent) as caught:
            client.connection.ask("POST", "/api/batches/1/cancel", seconds=0.2)
    assert "did not answer within 0.2 seconds" in str(caught.value)
    assert "not known" in str(caught.value)


# What is tried again ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", [lambda client: client.runbooks(), lambda client: client.cancel_batch(1)])
def test_a_broken_connection_is_tried_again_under_the_same_key(act: Callable[[ApiClient], Any]) -> None:
    sleeps = Sleeps()
    answers = None, said(503, {"error": "busy"}), said(200, {"done": True})
    with Scripted(*answers) as server, ApiClient(server.url, "t", sleep=sleeps) as client:
        assert act(client) == {"done": True}
    assert sleeps == [0.5, 1.0]
    keys = [headers.get("Idempotency-Key") for _, _, headers, _ in server.asked]
    assert len(set(keys)) == 1
    assert (keys[0] is None) == (server.asked[0][0] == "GET")


def test_each_write_has_a_key_of_its_own() -> None:
    with Scripted(said(200), said(200)) as server, ApiClient(server.url, "t") as client:
        client.cancel_batch(1)
        client.cancel_batch(1)
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in server.asked}) == 2


def test_a_file_is_sent_again_whole() -> None:
    content = csv(*(f"p{number}" for number in range(1000)))
    with Scripted(said(503, {"error": "busy"}, Retry_After="3"), said(200)) as server:
        sleeps = Sleeps()
        with ApiClient(server.url, "t", sleep=sleeps) as client:
            client.create_batch("wave", 'odd "näme";.csv', content)
    assert sleeps == [3.0, 0.5]
    for _, _, _, body in server.asked:
        assert content in body
    assert server.asked[0][3].count(b"Content-Disposition") == 2


def test_it_is_not_tried_for_ever() -> None:
    busy = said(503, {"error": "the database cannot be reached"})
    with Scripted(busy, busy, busy) as server:
        client = ApiClient(server.url, "t", sleep=Sleeps())
        with client, pytest.raises(ServerFailed, match="the database cannot be reached"):
            client.runbooks()
    assert server.answers == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500])
def test_what_was_refused_is_not_tried_again(status: int) -> None:
    with Scripted(said(status, {"error": "no"})) as server:
        client = ApiClient(server.url, "t", sleep=Sleeps())
        with client, pytest.raises((Refused, ServerFailed)):
            client.advance_batch(1)
    assert len(server.asked) == 1


# Signing in on this machine -----------------------------------------------------------------------------------------


def test_the_key_of_the_data_folder_signs_in(live: Live, live_folder: Path) -> None:
    with ApiClient(live.server.url, LocalSignIn(live_folder, SystemClock()).token) as client:
        assert "batches" in client.batches()


def test_a_token_is_renewed_before_it_ends(live: Live, live_folder: Path) -> None:
    clock = ManualClock(datetime.now(UTC))
    sign_in = LocalSignIn(live_folder, clock)
    first = sign_in.token()
    clock.advance(minutes=7)
    assert sign_in.token() == first
    clock.advance(minutes=1)
    assert sign_in.token() != first
