"""A run of many jobs against a tenant that throttles, in real time: how fast it went, and what was refused."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matoolkit.clock import SystemClock
from matoolkit.simulation.tenant import Api, ThrottleMode
from matoolkit.worker.tenant import Surroundings, TenantAddresses, open_tenant
from tests.worker.hands import Hands, identity

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant


@dataclass(frozen=True)
class Outcome:
    share_of_limit: float
    refused: float
    failures: int


async def run_of_jobs(
    server: SimulatedTenant,
    limit: int,
    mode: ThrottleMode,
    *,
    jobs: int,
    parallelism: int = 32,
    **throttle: Any,
) -> Outcome:
    """Ask about a user, again and again, from several jobs at once; `limit` is in requests a second."""
    person = server.tenant.add_users([{"userPrincipalName": f"busy{time.monotonic_ns()}@target.example"}])[0]["id"]
    surroundings = Surroundings(
        clock=SystemClock(), monotonic=time.monotonic, sleep=asyncio.sleep, chance=random.Random(1).random
    )
    tenant = open_tenant(
        identity(server), surroundings, addresses=TenantAddresses(server.url, server.url), tls=server.client_context()
    )
    hands = Hands(tenant)
    left = iter(range(jobs))
    failures = 0

    async def work() -> None:
        nonlocal failures
        for _ in left:
            result = await hands.run(
                "Test-EntraAttributeMatch", {"UserId": person, "AttributeName": "id", "ExpectedValue": person}
            )
            failures += result.status != "success"

    try:
        await hands.run("Test-EntraAttributeMatch", {"UserId": "warm", "AttributeName": "id", "ExpectedValue": "up"})
        server.tenant.records.clear()
        server.tenant.throttle(Api.GRAPH, limit, mode, **throttle)
        # The first request was made long ago, as far as the pace is concerned.
        began = time.monotonic()
        await asyncio.gather(*(work() for _ in range(parallelism)))
        took = time.monotonic() - began
    finally:
        await tenant.close()
    statuses = server.tenant.records.statuses(Api.GRAPH)
    return Outcome(jobs / took / limit, statuses[429] / sum(statuses.values()), failures)
