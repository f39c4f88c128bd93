"""Prefect: a member is a flow run, a step is a task run in it, beside a server of its own on SQLite."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

from benchmarks.peers.engines.contest import Told, compete, named
from benchmarks.peers.engines.looped import Looped
from benchmarks.peers.engines.serving import Serving, handed_over

if TYPE_CHECKING:
    from collections.abc import Iterator

_ASSIGNMENT = handed_over()
_PAGE = 200


def _settings() -> Iterator[tuple[str, str]]:
    """What has to be in the environment before Prefect is imported, here and in its server."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    yield "PREFECT_HOME", _ASSIGNMENT.folder
    yield "PREFECT_SERVER_DATABASE_CONNECTION_URL", f"sqlite+aiosqlite:///{_ASSIGNMENT.address}"
    yield "PREFECT_API_URL", f"http://127.0.0.1:{port}/api"
    yield "PREFECT_SERVER_API_PORT", str(port)
    yield "PREFECT_SERVER_ANALYTICS_ENABLED", "false"
    yield "PREFECT_LOGGING_LEVEL", "CRITICAL"
    yield "PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL"


os.environ.update(_settings())

from prefect import flow, get_client, task  # noqa: E402 - it reads the environment when imported


@task(name="step")
async def step(member: int, number: int) -> None:
    _ASSIGNMENT.note(member, number)


@flow(name="member", flow_run_name="member-{member}", log_prints=False)
async def move(member: int) -> None:
    for number in range(_ASSIGNMENT.steps):
        await step(member, number)


class Flows(Looped, Serving):
    package = "prefect"

    def start(self) -> None:
        self.serve("prefect", "server", "start", "--host", "127.0.0.1")
        self.wait_until(lambda: self.wait_for(_answers()))

    def submit(self, members: range) -> None:
        self.begin(self._flow_all(members))

    def is_settled(self) -> bool:
        Serving.insist(self)
        Looped.insist(self)
        states = self.wait_for(_states())
        return all(state in ("COMPLETED", "FAILED", "CRASHED") for state in states)

    def told(self) -> Told:
        return self.wait_for(_told())

    async def _flow_all(self, members: range) -> None:
        turns = asyncio.Semaphore(self.options["concurrency"])

        async def one(member: int) -> None:
            async with turns:
                await move(member, return_state=True)

        await asyncio.gather(*(one(member) for member in members))


async def _answers() -> bool:
    async with get_client() as client:
        return await client.api_healthcheck() is None


async def _states() -> list[str]:
    async with get_client() as client:
        return [str(run.state_type.value) for run in await client.read_flow_runs(limit=_PAGE)]


async def _told() -> Told:
    async with get_client() as client:
        flows: list[Any] = await client.read_flow_runs(limit=_PAGE)
        tasks: list[Any] = await client.read_task_runs(limit=_PAGE)
    return Told(
        members=sum(run.parameters.get("member") is not None and run.state.is_final() for run in flows),
        steps=sum(run.state.is_final() for run in tasks),
        times=sum(run.end_time is not None for run in tasks),
        errors=named(run.state.message for run in flows),
    )


if __name__ == "__main__":
    compete(Flows)
