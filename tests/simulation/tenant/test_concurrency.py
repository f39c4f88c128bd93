"""Many requests at once, through an asynchronous client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp

from matoolkit.simulation.tenant import Api, TenantFault
from tests.simulation.tenant.client import GRAPH, new_user

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant
    from tests.simulation.tenant.client import Client


def test_of_many_who_want_a_name_one_gets_it(client: Client, server: SimulatedTenant, name: str) -> None:
    """Cut answers and errors that hide success included: the tenant made each person once."""
    headers = {"Authorization": f"Bearer {client.token(GRAPH)}"}
    for fault in (TenantFault.CUT_AFTER_ACTING, TenantFault.CUT_BEFORE_ACTING, TenantFault.UNAVAILABLE_AFTER_ACTING):
        server.tenant.fault(fault, likelihood=0.1, method="POST")

    async def create(session: aiohttp.ClientSession, person: str) -> None:
        try:
            async with session.post(f"{server.url}/v1.0/users", json=new_user(person), headers=headers) as answer:
                await answer.read()
        except aiohttp.ClientError:
            return

    async def main() -> None:
        connector = aiohttp.TCPConnector(ssl=server.client_context(), limit=32)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(create(session, f"{name}.{number % 50}") for number in range(400)))

    asyncio.run(main())
    records = server.tenant.records
    assert records.by_subject("POST /users", acted=True) == {f"{name}.{n}@target.example": 1 for n in range(50)}
    assert sum(records.statuses(Api.GRAPH).values()) >= 400
    assert min(server.tenant.faults.struck.values()) > 0
