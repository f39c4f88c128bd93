"""Steering over HTTP, for whoever runs the tenant in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.simulation.tenant import Api
from tests.simulation.tenant.client import error_of

if TYPE_CHECKING:
    import requests

    from matoolkit.simulation.tenant import SimulatedTenant
    from tests.simulation.tenant.client import Client


class Helm:
    """Steers."""

    def __init__(self, client: Client, server: SimulatedTenant) -> None:
        self.client = client
        self.token = server.steering_token

    def __call__(self, method: str, path: str, body: Any = None) -> requests.Response:
        headers = {"X-Simulation-Token": self.token}
        return self.client.ask(
            method, f"/simulation{path}", headers=headers, **({} if body is None else {"json": body})
        )


@pytest.fixture
def helm(client: Client, server: SimulatedTenant) -> Helm:
    return Helm(client, server)


@pytest.mark.parametrize("token", ["", "x", "ä"])
def test_without_the_token_there_is_nothing(client: Client, helm: Helm, token: str) -> None:
    headers = {"X-Simulation-Token": token.encode(), "Authorization": f"Bearer {helm.token}"}
    answer = client.ask("DELETE", "/simulation/faults", headers=headers)
    assert (answer.status_code, answer.json()) == (404, {"error": "not_found"})


def test_faults_and_limits(client: Client, helm: Helm) -> None:
    assert helm("POST", "/faults", {"fault": "throttled", "api": "graph", "retryAfter": 2, "times": 5}).ok
    [rule] = helm("GET", "/faults").json()
    assert (rule["fault"], rule["times"]) == ("throttled", 5)
    assert error_of(client.graph("GET", "/users")) == (429, "TooManyRequests")
    assert helm("DELETE", "/faults").ok
    assert helm("PUT", "/throttles/graph", {"rate": 0.001, "mode": "token-bucket"}).ok
    assert [client.graph("GET", "/users?$top=1").status_code for _ in range(2)] == [200, 429]
    assert helm("DELETE", "/throttles/graph").ok
    assert client.graph("GET", "/users?$top=1").ok
    assert helm("GET", "/records").json()["faults"]["throttled"] >= 1


def test_what_is_there(client: Client, helm: Helm, name: str) -> None:
    made = helm(
        "POST",
        "/objects",
        {
            "users": [{"userPrincipalName": f"{name}@target.example"}],
            "guests": [{"mail": f"{name}@source.example"}],
            "groups": [{"displayName": name}],
            "mailUsers": [{"UserPrincipalName": f"{name}@target.example"}],
            "distributionGroups": [{"Name": f"List {name}", "Members": [f"{name}@target.example"]}],
        },
    )
    assert made.status_code == 201, made.text
    assert client.graph("GET", f"/users/{made.json()['users'][0]}").ok
    assert helm("GET", "/objects").json()["mailUsers"] >= 1


def test_what_was_asked(client: Client, helm: Helm, name: str) -> None:
    client.create(name)
    assert {"operation": "POST /users", "status": 201, "count": 1} in helm("GET", "/records").json()["counts"]
    assert helm("GET", "/records/subjects?operation=POST /users").json() == {f"{name}@target.example": 1}
    assert helm("GET", "/records/requests?limit=1").json()[0]["subject"] == f"{name}@target.example"
    assert helm("DELETE", "/records").ok
    assert helm("GET", "/records").json()["counts"] == []


def test_keys_settings_and_device_codes(client: Client, helm: Helm, server: SimulatedTenant) -> None:
    assert helm("POST", "/keys/rollover", {"retire": False}).json()["kid"]
    before = server.tenant.tokens.lifetime_seconds
    assert helm("PATCH", "/settings", {"tokenLifetimeSeconds": 5, "consistencyDelaySeconds": 0.5}).ok
    assert (server.tenant.tokens.lifetime_seconds, server.tenant.directory.delay_seconds) == (5, 0.5)
    server.tenant.tokens.lifetime_seconds = before
    for decision, body in (("approve", {"username": "a@target.example"}), ("decline", None), ("expire", None)):
        code = server.tenant.device_codes.begin("x", "y")
        assert code.user_code in helm("GET", "/device-codes").json()
        assert helm("POST", f"/device-codes/{code.user_code}/{decision}", body).ok
        assert code.user_code not in helm("GET", "/device-codes").json()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/faults", {"fault": "earthquake"}),
        ("POST", "/faults", {"fault": "slow", "colour": "x"}),
        ("POST", "/faults", {"fault": "slow", "path": "["}),
        ("PUT", "/throttles/mail", {"rate": 1}),
        ("PUT", "/throttles/graph", {"rate": 0}),
        ("POST", "/objects", {"users": [{}]}),
        ("POST", "/device-codes/XYZ/decline", None),
        ("GET", "/records/subjects", None),
    ],
)
def test_what_makes_no_sense_is_refused(helm: Helm, method: str, path: str, body: Any) -> None:
    answer = helm(method, path, body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_steering_is_neither_recorded_nor_struck(helm: Helm, server: SimulatedTenant) -> None:
    helm("POST", "/faults", {"fault": "cut-before-acting"})
    assert helm("GET", "/faults").ok
    assert server.tenant.records.statuses(Api.STEERING) == {}
