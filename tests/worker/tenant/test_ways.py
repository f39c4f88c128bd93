"""What this machine's settings say about the way to the tenant: proxies, and passwords that are for somebody else."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from matoolkit.simulation.tenant import Api
from matoolkit.worker.tenant.connection import proxy_to
from tests.worker.hands import Hands, clients

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from matoolkit.simulation.tenant import SimulatedTenant

QUESTION = "Test-EntraAttributeMatch", {"UserId": "nobody", "AttributeName": "id", "ExpectedValue": "x"}


@asynccontextmanager
async def proxy(asked: list[str]) -> AsyncIterator[int]:
    """A proxy that passes on what comes, and notes where to and with which password."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing() and (some := await reader.read(65536)):
            writer.write(some)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head)
        host, port = head.split()[1].split(":")
        onwards = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pass_on(reader, onwards[1]), pass_on(onwards[0], writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_a_proxy_is_used_for_everything(server: SimulatedTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def main() -> None:
        async with proxy(asked) as port:
            monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass@127.0.0.1:{port}")
            async with clients(server) as tenant:
                result = await Hands(tenant).run(*QUESTION)
        assert result.error is not None
        assert result.error.type == "Request_ResourceNotFound"

    asyncio.run(main())
    there = f"CONNECT localhost:{server.url.rpartition(':')[2]} "
    # Sign-in and Graph: one connection that is kept, or two.
    assert asked
    assert all(each.startswith(there) and "Proxy-Authorization: Basic dXNlcjpwYXNz" in each for each in asked)
    assert server.tenant.records.statuses(Api.SIGN_IN)[200] == 1


def test_a_host_may_be_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "graph.example,.local")
    assert proxy_to("https://outlook.example/x") == "http://proxy.example:3128"
    assert proxy_to("https://graph.example:443/x") is None
    assert proxy_to("https://a.local/") is None


def test_a_password_in_netrc_is_for_somebody_else(
    server: SimulatedTenant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / ".netrc"
    file.write_text("default login ada password lovelace\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))

    async def main() -> None:
        async with clients(server) as tenant:
            result = await Hands(tenant).run(*QUESTION)
        assert result.error is not None
        assert result.error.type == "Request_ResourceNotFound"

    asyncio.run(main())
