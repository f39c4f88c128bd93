"""Graph and Exchange's clients where the tenant, or what is between, does not behave."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from matoolkit.simulation.tenant import Api, Application, SimulatedTenant, TenantFault
from matoolkit.worker.errors import FunctionError, ValidationError
from matoolkit.worker.tenant import connection
from matoolkit.worker.tenant.connection import Reply, address, same_host
from matoolkit.worker.tenant.errors import BadAnswer, ConnectionLost, NotReached, Refused
from matoolkit.worker.tenant.exchange import _same_domain
from matoolkit.worker.tenant.exchange import read_error as read_exchange
from matoolkit.worker.tenant.graph import read_error as read_graph
from tests.worker.hands import CLIENT_ID, CLIENT_SECRET, Haste, answering, clients

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from matoolkit.worker.tenant import TenantClients

    Asking = Callable[[TenantClients], Awaitable[Any]]


def ask(server: SimulatedTenant, asking: Asking, haste: Haste | None = None) -> Any:
    async def main() -> Any:
        async with clients(server, haste) as tenant:
            return await asking(tenant)

    return asyncio.run(main())


async def get_nobody(tenant: TenantClients) -> Any:
    return await tenant.graph.request("GET", ("users", "nobody"))


async def get_mail_users(tenant: TenantClients) -> Any:
    return await tenant.exchange.invoke("Get-MailUser", {"ResultSize": 3})


# Elsewhere -----------------------------------------------------------------------------------------------------------


def test_graph_is_followed_nowhere(server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.REDIRECTED, api=Api.GRAPH)
    with pytest.raises(BadAnswer, match="not followed"):
        ask(server, get_nobody)


def test_exchange_is_followed_to_its_own_domain(server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.REDIRECTED, api=Api.EXCHANGE, times=1)
    assert isinstance(ask(server, get_mail_users), list)


def test_exchange_is_not_followed_in_circles(server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.REDIRECTED, api=Api.EXCHANGE)
    with pytest.raises(BadAnswer, match="without end"):
        ask(server, get_mail_users)


def test_exchange_is_followed_to_no_other(server: SimulatedTenant) -> None:
    with SimulatedTenant() as other:
        server.tenant.fault(TenantFault.REDIRECTED, api=Api.EXCHANGE, location=other.url)
        with pytest.raises(BadAnswer, match="another domain"):
            ask(server, get_mail_users)
        assert other.tenant.records.last() == []


@pytest.mark.parametrize("location", ["https://elsewhere.example", "//elsewhere.example", "http://localhost"])
def test_a_next_page_elsewhere_is_not_asked(server: SimulatedTenant, location: str) -> None:
    server.tenant.fault(TenantFault.FOREIGN_NEXT_LINK, location=location)
    with pytest.raises(BadAnswer, match="another host"):
        ask(server, get_mail_users)
    with pytest.raises(BadAnswer, match="another host"):
        ask(server, lambda tenant: tenant.graph.collect(("users",)))


def test_a_collection_of_several_pages(server: SimulatedTenant, name: str) -> None:
    server.tenant.add_users([{"userPrincipalName": f"{name}{number}@target.example"} for number in range(7)])
    found = ask(server, lambda tenant: tenant.graph.collect(("users",), query={"$top": "3", "$select": "id"}))
    assert len(found) >= 7
    assert server.tenant.records.count("GET /users") >= 3


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://outlook.office365.com/x", True),
        ("https://eur06.outlook.office365.com/x", True),
        ("https://eur.office365.com/x", True),
        ("https://office365.com/x", False),
        ("https://outlook.office365.com.elsewhere.example/x", False),
        ("https://evil-office365.com/x", False),
        ("http://outlook.office365.com/x", False),
        ("https://outlook.office365.com:8443/x", False),
        ("https://user@outlook.office365.com/x", False),
        ("https://outlook.office365.com:99999999/x", False),
        ("", False),
    ],
)
def test_what_is_of_the_same_domain(url: str, allowed: bool) -> None:
    assert _same_domain(url, "https://outlook.office365.com") is allowed


@pytest.mark.parametrize(
    "url",
    ["https://graph.example.org/x", "https://graph.example@evil/x", "https://graph.example:99999999/x", "/next", ""],
)
def test_what_is_another_host(url: str) -> None:
    assert not same_host(url, "https://graph.example")


def test_every_part_of_an_address_is_encoded() -> None:
    found = address("https://g/v1.0/", ("users", "a/b?c#d %'é", "$ref"), {"$select": "a,b&c"})
    assert found == "https://g/v1.0/users/a%2Fb%3Fc%23d%20%25%27%C3%A9/$ref?$select=a,b%26c"


@pytest.mark.parametrize("segment", ["", ".", "..", "...", "a\nb", "\x00", "\ud800"])
def test_what_is_no_part_of_an_address(segment: str) -> None:
    with pytest.raises(ValidationError):
        address("https://g", ("users", segment))


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (("groups", "g", "members", "$ref"), True),
        (("groups", "g", "members", "u", "$ref"), True),
        (("users", "$count"), False),
        (("groups", "$ref", "members", "$ref"), False),
        (("groups", "g", "members", "$ref", "$ref"), False),
        (("users", "$batch", "checkMemberGroups"), False),
    ],
)
def test_an_identifier_is_no_operation(path: tuple[str, ...], *, allowed: bool) -> None:
    if allowed:
        assert address("https://g", path).endswith("/$ref")
    else:
        with pytest.raises(ValidationError):
            address("https://g", path)


# Broken --------------------------------------------------------------------------------------------------------------


def test_a_tenant_that_is_not_there() -> None:
    async def main() -> None:
        server = SimulatedTenant()
        server.tenant.register(Application(client_id=CLIENT_ID, secrets={CLIENT_SECRET}))
        await server.begin()
        async with clients(server) as tenant:
            await tenant.sign_in.token(f"{server.url}/.default")
            await server.end()
            with pytest.raises(NotReached) as failure:
                await get_nobody(tenant)
            assert failure.value.attempts == 0
            assert not failure.value.uncertain
        server._close()

    asyncio.run(main())


def test_an_answer_that_does_not_come(server: SimulatedTenant) -> None:
    async def main() -> None:
        async with clients(server) as tenant:
            tenant.connection.session._timeout = tenant.connection.session.timeout.__class__(sock_read=0.05)
            await tenant.sign_in.token(f"{server.url}/.default")
            server.tenant.fault(TenantFault.SLOW, api=Api.GRAPH, seconds=0.3, times=1)
            with pytest.raises(ConnectionLost):
                await tenant.graph.request("PATCH", ("users", "x"), body={"city": "x"})

    asyncio.run(main())


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"\xff\xfe", b"{", b"[" * 5000])
def test_an_answer_that_is_no_json(body: bytes) -> None:
    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=200, body=body)

    async def main() -> None:
        async with answering(handler) as tenant:
            with pytest.raises(BadAnswer) as failure:
                await get_nobody(tenant)
            assert failure.value.attempts == 1

    asyncio.run(main())


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b'{"error": 7}', b'{"error": {"code": null}}', b"null"])
@pytest.mark.parametrize("status", [400, 404, 418, 500])
def test_an_error_that_is_no_json(body: bytes, status: int) -> None:
    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=body)

    async def main() -> None:
        async with answering(handler) as tenant:
            for asking in (get_nobody, get_mail_users):
                with pytest.raises(Refused) as failure:
                    await asking(tenant)
                assert failure.value.type == f"HTTP{status}"

    asyncio.run(main())


@pytest.mark.parametrize("body", [b"7", b'{"value": 7}', b"[1]"])
def test_pages_that_are_none(body: bytes) -> None:
    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body)

    async def main() -> None:
        async with answering(handler) as tenant:
            with pytest.raises(BadAnswer):
                await get_mail_users(tenant)
            with pytest.raises(BadAnswer):
                await tenant.graph.collect(("users",))

    asyncio.run(main())


@pytest.mark.parametrize("told", [True, False])
def test_an_answer_without_end(monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    monkeypatch.setattr(connection, "LARGEST_ANSWER", 100_000)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if told:
            return web.Response(body=b" " * 100_001)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            for _ in range(20):
                await response.write(b" " * 10_000)
        except ConnectionError:
            pass
        return response

    async def main() -> None:
        async with answering(handler) as tenant:
            with pytest.raises(BadAnswer, match="larger"):
                await get_nobody(tenant)

    asyncio.run(main())


# Errors --------------------------------------------------------------------------------------------------------------


def test_an_error_names_the_request(server: SimulatedTenant) -> None:
    with pytest.raises(Refused, match=r"request id [0-9a-f-]{36}"):
        ask(server, get_nobody)


def test_a_worker_that_may_not(server: SimulatedTenant) -> None:
    usual = server.tenant.sign_in.applications[CLIENT_ID]
    server.tenant.register(
        Application(client_id=CLIENT_ID, secrets=usual.secrets, graph_roles=frozenset(), exchange_administrator=False)
    )
    try:
        with pytest.raises(Refused) as graph:
            ask(server, get_nobody)
        with pytest.raises(Refused) as exchange:
            ask(server, get_mail_users)
    finally:
        server.tenant.register(usual)
    assert graph.value.type == "Authorization_RequestDenied"
    assert exchange.value.type == "HTTP403"
    assert "directory role" in str(exchange.value)


def reply(status: int) -> Reply:
    return Reply(status, {}, b"")


@pytest.mark.parametrize(
    ("status", "code", "message", "throttled"),
    [
        (400, "TooManyRequests", "x", True),
        (429, "ApplicationThrottled", "x", True),
        (404, "Request_ResourceNotFound", "Resource '429 throttled' does not exist", False),
        (400, "Request_BadRequest", "Rate limit is no property", False),
    ],
)
def test_what_graph_calls_throttling(status: int, code: str, message: str, throttled: bool) -> None:
    found = read_graph(reply(status), {"error": {"code": code, "message": message}})
    assert (found.code, found.throttled) == (code, throttled)


@pytest.mark.parametrize(
    ("status", "kind", "message", "throttled", "transient"),
    [
        (400, "Microsoft.Exchange.Data.Storage.ServerBusyException", "x", True, False),
        (500, "X.BackoffException", "x", True, False),
        (400, "X.MicroDelay", "x", True, False),
        (500, "X.SomethingException", "Server Busy, try later", True, False),
        (503, "X.SomethingException", "Too many concurrent connections opened", True, False),
        (404, "X.ManagementObjectNotFoundException", "object 'MicroDelay' couldn't be found", False, False),
        (400, "CmdletProxyNotAvailableFailure", "x", False, True),
        (400, "Microsoft.Exchange.Data.Directory.ADTransientException", "x", False, True),
        (500, "X.BackendCommunicationException", "x", False, True),
        (400, "X.DataValidationException", "a|b|c", False, False),
    ],
)
def test_what_exchange_calls_throttling(status: int, kind: str, message: str, throttled: bool, transient: bool) -> None:
    content = {"error": {"code": "E", "message": "m", "details": [{"message": f"Ex123456|{kind}|{message}"}]}}
    found = read_exchange(reply(status), content)
    assert (found.code, found.message, found.throttled, found.transient) == (kind, message, throttled, transient)


def test_a_hiccup_of_exchange_is_tried_again(server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.UNAVAILABLE, api=Api.EXCHANGE, status=500, times=2)
    haste = Haste()
    assert isinstance(ask(server, get_mail_users, haste), list)
    assert [2.0 <= haste.slept[0] <= 2.6, 4.0 <= haste.slept[1] <= 5.2] == [True, True]


def test_what_exchange_may_have_done_is_not_done_twice_where_it_must_not(server: SimulatedTenant) -> None:
    async def once(tenant: TenantClients) -> Any:
        return await tenant.exchange.invoke("Get-MailUser", {"ResultSize": 3}, repeatable=False)

    server.tenant.fault(TenantFault.UNAVAILABLE_AFTER_ACTING, api=Api.EXCHANGE, status=500, times=1)
    with pytest.raises(Refused) as failure:
        ask(server, once)
    assert (failure.value.uncertain, failure.value.attempts) == (True, 1)
    assert server.tenant.records.count("Get-MailUser") == 1
    server.tenant.fault(TenantFault.THROTTLED, api=Api.EXCHANGE, times=1)
    assert isinstance(ask(server, once), list)


@pytest.mark.parametrize("error", [ConnectionLost, BadAnswer, NotReached])
def test_errors_speak_for_themselves(error: type[FunctionError]) -> None:
    assert str(error())
