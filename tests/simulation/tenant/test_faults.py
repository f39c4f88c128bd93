"""What goes wrong on demand, as a client sees it, and what the tenant did all the same."""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import requests

from matoolkit.simulation.tenant import CUT, TENANT_ID, Api, FaultRule, TenantFault
from matoolkit.simulation.tenant.calls import Call
from matoolkit.simulation.tenant.faults import TenantFaults
from tests.simulation.tenant.client import GRAPH, error_of, kind_of, new_user

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant
    from tests.simulation.tenant.client import Client

CREATE: dict[str, Any] = {"method": "POST", "path": "/users$"}


@pytest.mark.parametrize(
    ("fault", "acted"),
    [
        (TenantFault.CUT_BEFORE_ACTING, False),
        (TenantFault.CUT_AFTER_ACTING, True),
        (TenantFault.CUT_HALFWAY, True),
    ],
)
def test_an_answer_is_cut(client: Client, server: SimulatedTenant, name: str, fault: TenantFault, acted: bool) -> None:
    server.tenant.fault(fault, times=1, **CREATE)
    with pytest.raises(requests.exceptions.RequestException):
        client.graph("POST", "/users", new_user(name))
    upn = f"{name}@target.example"
    records = server.tenant.records
    assert records.count("POST /users", status=CUT, acted=acted) == 1
    assert client.graph("POST", "/users", new_user(name)).status_code == (400 if acted else 201)
    assert records.by_subject("POST /users", acted=True)[upn] == 1


def test_an_asynchronous_client_sees_the_cut_too(client: Client, server: SimulatedTenant, name: str) -> None:
    server.tenant.fault(TenantFault.CUT_HALFWAY, times=1, **CREATE)
    headers = {"Authorization": f"Bearer {client.token(GRAPH)}"}

    async def create() -> int:
        connector = aiohttp.TCPConnector(ssl=server.client_context())
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(aiohttp.ClientError):
                async with session.post(f"{server.url}/v1.0/users", json=new_user(name), headers=headers) as answer:
                    await answer.read()
            async with session.post(f"{server.url}/v1.0/users", json=new_user(name), headers=headers) as answer:
                return answer.status

    assert asyncio.run(create()) == 400


def test_throttled_and_unavailable(client: Client, server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.THROTTLED, times=1, retry_after=7)
    answer = client.graph("GET", "/users")
    assert (error_of(answer), answer.headers["Retry-After"]) == ((429, "TooManyRequests"), "7")
    server.tenant.fault(TenantFault.UNAVAILABLE, times=1, retry_after=3)
    answer = client.graph("GET", "/users")
    assert (error_of(answer), answer.headers["Retry-After"]) == ((503, "ServiceUnavailable"), "3")
    server.tenant.fault(TenantFault.UNAVAILABLE, times=1, status=504)
    assert error_of(client.graph("GET", "/users")) == (504, "GatewayTimeout")
    server.tenant.fault(TenantFault.UNAUTHORIZED, times=1)
    assert error_of(client.graph("GET", "/users")) == (401, "InvalidAuthenticationToken")
    assert client.graph("GET", "/users?$top=1").ok
    assert server.tenant.records.count("GET /users", acted=False) == 4


def test_what_never_came_in_is_recorded_by_its_operation(client: Client, server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.THROTTLED)
    client.graph("DELETE", "/groups/a/members/b/$ref")
    client.graph("POST", "/users/anna/checkMemberGroups", {})
    client.command("Set-MailUser", Identity="x")
    assert [(each.operation, each.subject) for each in server.tenant.records.last() if each.status == 429] == [
        ("DELETE /groups/{id}/members/{id}/$ref", "a"),
        ("POST /users/{id}/checkMemberGroups", "anna"),
        ("Set-MailUser", ""),
    ]


def test_exchange_has_faults_of_its_own(client: Client, server: SimulatedTenant, name: str) -> None:
    server.tenant.add_mail_users([{"UserPrincipalName": f"{name}@target.example"}])

    def ask() -> requests.Response:
        return client.command("Get-MailUser", Identity=f"{name}@target.example")

    server.tenant.fault(TenantFault.TRANSIENT, api=Api.EXCHANGE, times=1)
    assert kind_of(ask()) == (400, "ServerBusyException")
    server.tenant.fault(TenantFault.THROTTLED, api=Api.EXCHANGE, times=1)
    answer = ask()
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "10")
    server.tenant.fault(TenantFault.UNAVAILABLE, api=Api.EXCHANGE, times=1, status=500)
    assert kind_of(ask()) == (500, "ADTransientException")
    server.tenant.fault(TenantFault.UNAUTHORIZED, api=Api.EXCHANGE, times=1)
    assert (ask().status_code, ask().status_code) == (401, 200)


def test_an_error_hides_that_the_tenant_acted(client: Client, server: SimulatedTenant, name: str) -> None:
    server.tenant.fault(TenantFault.UNAVAILABLE_AFTER_ACTING, times=1, **CREATE)
    assert client.graph("POST", "/users", new_user(name)).status_code == 503
    assert client.graph("GET", f"/users/{name}@target.example").ok


@pytest.mark.parametrize("fault", [TenantFault.SLOW, TenantFault.SLOW_AFTER_ACTING])
def test_a_slow_answer_is_slow(client: Client, server: SimulatedTenant, fault: TenantFault) -> None:
    client.token(GRAPH)
    server.tenant.fault(fault, times=1, seconds=0.2)
    began = time.monotonic()
    assert client.graph("GET", "/users?$top=1").ok
    assert time.monotonic() - began >= 0.2


def test_a_client_that_gives_up_on_a_slow_answer_does_not_undo_it(
    client: Client, server: SimulatedTenant, name: str
) -> None:
    headers = {"Authorization": f"Bearer {client.token(GRAPH)}"}
    server.tenant.fault(TenantFault.SLOW_AFTER_ACTING, times=1, seconds=30, **CREATE)
    with pytest.raises(requests.exceptions.ReadTimeout):
        client.session.post(f"{server.url}/v1.0/users", json=new_user(name), headers=headers, timeout=0.3)
    assert client.graph("GET", f"/users/{name}@target.example").ok


def test_a_next_link_may_lead_elsewhere(client: Client, server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.FOREIGN_NEXT_LINK, times=1, location="https://thief.example")
    assert client.graph("GET", "/users?$top=1").json()["@odata.nextLink"] == "https://thief.example/next"


def test_sign_in_can_fail_too(client: Client, server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.THROTTLED, api=Api.SIGN_IN, times=1)
    answer = client.ask("POST", f"/{TENANT_ID}/oauth2/v2.0/token")
    assert (answer.status_code, answer.json()["error"]) == (429, "temporarily_unavailable")


def test_a_rule_strikes_what_it_is_aimed_at(client: Client, server: SimulatedTenant, name: str) -> None:
    rule = server.tenant.fault(TenantFault.UNAVAILABLE, times=1, skip=1, body=f'"{name}"', **CREATE)
    assert client.graph("GET", "/users?$top=1").ok
    client.create(f"{name}.other")
    client.create(name)
    assert rule.struck == 0
    assert client.graph("POST", "/users", new_user(name)).status_code == 503
    assert rule.spent
    assert server.tenant.faults.rules == []


def test_a_pattern_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        FaultRule(fault=TenantFault.SLOW, path="[")


def test_the_same_seed_strikes_the_same_requests() -> None:
    call = Call("GET", "/v1.0/users", "", {}, b"", "")

    def history(seed: int) -> list[bool]:
        faults = TenantFaults(Random(seed))
        faults.add(FaultRule(fault=TenantFault.SLOW, likelihood=0.3))
        return [faults.draw(call, Api.GRAPH) is not None for _ in range(200)]

    assert history(1) == history(1) != history(2)
    assert 30 < sum(history(1)) < 90
