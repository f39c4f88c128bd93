"""What the tests of the tenant's clients and of the functions share: clients, jobs, and time that costs nothing."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from matoolkit.clock import SystemClock
from matoolkit.messages import Correlation, WorkerJob, WorkerResult, decode_result
from matoolkit.simulation.tenant import TENANT_ID, Application, SimulatedTenant
from matoolkit.worker.concealing import Concealer
from matoolkit.worker.loading import gather
from matoolkit.worker.running import Runner, Services
from matoolkit.worker.runs import Run
from matoolkit.worker.secrets import EnvironmentSecrets, KeptSecrets
from matoolkit.worker.tenant import Identity, Patience, Surroundings, TenantAddresses, TenantClients, open_tenant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiohttp import web

CLIENT_ID = "0a1b2c3d-0000-4000-8000-00000000abcd"
CLIENT_SECRET = "planted-client-secret-7341"
PLANTED_PASSWORD = "Planted-Passw0rd-9182"


@dataclass
class Haste:
    """Time in which waiting takes no time: it passes only by being waited for, or with the machine's."""

    ahead: float = 0.0
    slept: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ahead += seconds
        await asyncio.sleep(0)


def identity(server: SimulatedTenant, **proof: Any) -> Identity:
    proof = proof or {"client_secret": CLIENT_SECRET}
    return Identity(tenant_id=TENANT_ID, client_id=CLIENT_ID, authority=server.url, **proof)


@asynccontextmanager
async def clients(
    server: SimulatedTenant, haste: Haste | None = None, patience: Patience | None = None, **proof: Any
) -> AsyncIterator[TenantClients]:
    haste = haste or Haste()
    surroundings = Surroundings(
        clock=SystemClock(),
        monotonic=haste.monotonic,
        sleep=haste.sleep,
        chance=random.Random(1).random,
        patience=patience or Patience(),
    )
    opened = open_tenant(
        identity(server, **proof),
        surroundings,
        addresses=TenantAddresses(server.url, server.url),
        tls=server.client_context(),
    )
    try:
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def answering(handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncIterator[Any]:
    """A tenant whose Graph answers whatever the handler does."""
    signing = SimulatedTenant(seed=1)
    signing.tenant.register(Application(client_id=CLIENT_ID, secrets={CLIENT_SECRET}))
    usual = signing._handle

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await (handler(request) if request.path.startswith(("/v1.0", "/beta", "/adminapi")) else usual(request))

    signing._handle = handle  # type: ignore[method-assign]  # the one thing that is to be different
    async with signing, clients(signing) as tenant:
        yield tenant


def job(function: str, parameters: dict[str, Any], **fields: Any) -> WorkerJob:
    given: dict[str, Any] = {
        "job_id": "step-1",
        "idempotency_key": "step-1",
        "batch_id": 1,
        "worker_id": "worker-01",
        "first_dispatched_at": datetime.now(UTC),
        "correlation_data": Correlation(step_execution_id=1),
    }
    return WorkerJob(function_name=function, parameters=parameters, **(given | fields))


class Hands:
    """Runs jobs as the worker does, on real clients."""

    def __init__(self, tenant: TenantClients, secrets: dict[str, str] | None = None, sleep: Any = None) -> None:
        self.tenant = tenant
        self.concealer = Concealer([CLIENT_SECRET])
        registry = gather(None)
        resolver = KeptSecrets(EnvironmentSecrets(secrets or {}), SystemClock())
        services = Services(
            graph=tenant.graph, exchange=tenant.exchange, secrets=resolver, sleep=sleep or Haste().sleep
        )
        self._runner = Runner(registry, SystemClock(), None, services=services, concealer=self.concealer)  # type: ignore[arg-type]  # no function needs a thread

    async def run(
        self, function: str, parameters: dict[str, Any], *, deliveries: int = 1, **fields: Any
    ) -> WorkerResult:
        now = asyncio.get_running_loop().time()
        message: Any = SimpleNamespace(delivery_count=deliveries)
        run = Run(message, job(function, parameters, **fields), now, now + 60)
        await self._runner.run(run)
        assert run.answer is not None
        return decode_result(run.answer.body)


def repeated(**fields: Any) -> dict[str, Any]:
    """The fields of a job that was sent before."""
    return {"job_id": "step-1-retry-1", **fields}
