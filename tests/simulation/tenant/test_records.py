"""What was asked can be looked up, within bounds, and without what nobody may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.simulation.tenant import Api
from matoolkit.simulation.tenant.calls import Call
from matoolkit.simulation.tenant.records import Records, RecordsForgotten
from tests.simulation.tenant.client import PASSWORD, SECRET, new_user

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant
    from tests.simulation.tenant.client import Client


def call(subject: str, operation: str = "POST /users") -> Call:
    return Call("POST", "/v1.0/users", "", {}, b"", "", operation, subject)


def test_created_exactly_once(client: Client, server: SimulatedTenant, name: str) -> None:
    client.create(name)
    client.graph("POST", "/users", new_user(name))
    records = server.tenant.records
    assert records.by_subject("POST /users", status=201) == {f"{name}@target.example": 1}
    assert records.by_subject("POST /users", status=400, acted=False) == {f"{name}@target.example": 1}
    assert {"operation": "POST /users", "status": 201, "count": 1} in records.table()
    assert [each.status for each in records.last() if each.api is Api.GRAPH] == [201, 400]


def test_neither_passwords_nor_secrets_nor_tokens_are_kept(client: Client, server: SimulatedTenant, name: str) -> None:
    client.create(name)
    token = client.token("https://graph.microsoft.com")
    kept = f"{server.tenant.records.last()}{server.tenant.records.table()}{server.tenant.directory.users}"
    assert [each for each in (PASSWORD, SECRET, token) if each in kept] == []


def test_memory_is_bounded_and_counts_are_never_wrong_quietly() -> None:
    records = Records(keep_requests=10, keep_counts=100)
    for number in range(150):
        records.add(Api.GRAPH, call(f"person{number}"), 201, acted=True)
    assert len(records.last(1000)) == 10
    assert records.forgotten == 50
    assert records.statuses() == {201: 150}
    with pytest.raises(RecordsForgotten):
        records.count("POST /users")
    records.clear()
    assert records.count("POST /users") == 0


def test_subjects_compare_without_case() -> None:
    records = Records()
    records.add(Api.GRAPH, call("Anna@target.example"), 201, acted=True)
    records.add(Api.GRAPH, call("anna@TARGET.example"), 400, acted=False)
    assert records.count("POST /users", subject="ANNA@target.example") == 2
    assert records.count("POST /users", subject="anna@target.example", acted=True) == 1
