"""The tenant on the network: HTTPS on loopback, in a thread of its own or in a loop that runs already."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from matoolkit.errors import MatoolkitError
from matoolkit.simulation.tenant.calls import Api, Call
from matoolkit.simulation.tenant.certificates import Authority
from matoolkit.simulation.tenant.faults import TenantFault
from matoolkit.simulation.tenant.steering import TOKEN_HEADER, Steering
from matoolkit.simulation.tenant.tenant import Reply, Tenant

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

_START_SECONDS = 30.0
_LAST_WORDS_SECONDS = 0.1


class TenantNotStarted(MatoolkitError):
    """The simulated tenant could not be started."""


class SimulatedTenant:
    """A tenant behind a real address.

        with SimulatedTenant() as server:            # in a thread of its own
            server.tenant.add_users([...])

        async with SimulatedTenant() as server:      # in the loop that runs
            ...

    `folder` holds the authority that clients trust (`ca.pem`), what steers it (`steering-token`) and, in `tenant.db`,
    everything that is to survive a restart; without a folder nothing does.
    """

    def __init__(
        self,
        *,
        folder: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        tenant: Tenant | None = None,
        **settings: Any,
    ) -> None:
        self._temporary: TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = TemporaryDirectory(prefix="matoolkit-tenant-")
            self.folder = Path(self._temporary.name)
            file = None
        else:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder, file = folder, folder / "tenant.db"
        self.tenant = tenant or Tenant(file=file, **settings)
        self.authority = Authority(self.tenant.archive)
        self.ca_file = self.folder / "ca.pem"
        self.ca_file.write_bytes(self.authority.pem)
        self.steering_token = secrets.token_urlsafe(24)
        """What a request to `/simulation/` has to show in the header `X-Simulation-Token`."""
        if folder is not None:
            _write_secret(self.folder / "steering-token", self.steering_token)
        self._steering = Steering(self.tenant, self.steering_token)
        self._host, self._port = host, port
        self._runner: web.ServerRunner | None = None
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    # Addresses -------------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """Where it listens."""
        if self._runner is None:
            raise TenantNotStarted("the simulated tenant has no port before it is started")
        return int(self._runner.addresses[0][1])

    @property
    def url(self) -> str:
        """Sign-in, Graph and Exchange, all at one address: `https://localhost:PORT`."""
        return f"https://localhost:{self.port}"

    def client_context(self) -> ssl.SSLContext:
        """TLS for clients in this process."""
        return self.authority.client_context()

    # In a loop that runs ---------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Listen, in the loop that runs."""
        server = web.Server(self._handle, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=_LAST_WORDS_SECONDS)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, ssl_context=self.authority.server_context()).start()
        except OSError as error:
            await self.end()
            raise TenantNotStarted(f"the simulated tenant cannot listen on port {self._port}: {error}") from error

    async def end(self) -> None:
        """Listen no longer."""
        runner, self._runner = self._runner, None
        if runner is None or runner.server is None:
            return
        transports = [each.transport for each in runner.server.connections if each.transport is not None]
        await runner.cleanup()
        # Clients that keep connections open would have TLS wait for their goodbye.
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()
        self._close()

    # In a thread of its own ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen, in a thread of its own; returns once it does."""
        ready = Event()
        failures: list[BaseException] = []

        async def serve() -> None:
            self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
            try:
                await self.begin()
            except BaseException as error:
                failures.append(error)
                raise
            finally:
                ready.set()
            await self._stopping.wait()
            await self.end()

        def run() -> None:
            try:
                asyncio.run(serve())
            except TenantNotStarted:
                return

        self._thread = Thread(target=run, name="simulated-tenant", daemon=True)
        self._thread.start()
        if not ready.wait(_START_SECONDS):
            raise TenantNotStarted("the simulated tenant did not start in time")
        if failures:
            self._thread.join()
            raise failures[0]

    def stop(self) -> None:
        """Listen no longer, and end the thread."""
        if self._thread is not None and self._loop is not None and self._stopping is not None:
            if self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(_START_SECONDS)
        self._close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _close(self) -> None:
        self.tenant.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    # Requests --------------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        body = await request.read() if request.can_read_body else b""
        call = Call(request.method, path, query, request.headers, body, f"https://{request.host}")
        if call.api is Api.STEERING:
            answer = self._steering.answer(call)
            return web.Response(status=answer.status, body=answer.body, headers=_headers(answer.headers, answer))
        rule, reply = self.tenant.before_acting(call)
        if reply is None:
            if rule is not None and rule.fault is not TenantFault.SLOW_AFTER_ACTING and rule.seconds:
                await asyncio.sleep(rule.seconds)
            reply = self.tenant.act(call, rule)
            if rule is not None and rule.fault is not TenantFault.SLOW_AFTER_ACTING:
                reply.seconds = 0.0
        return await self._send(request, reply)

    async def _send(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        if reply.seconds:
            await asyncio.sleep(reply.seconds)
        answer = reply.answer
        if answer is None:
            _hang_up(request)
            return web.Response()
        headers = _headers(answer.headers, answer)
        if not reply.halfway:
            return web.Response(status=answer.status, body=answer.body or None, headers=headers)
        partial = web.StreamResponse(status=answer.status, headers=headers)
        partial.content_length = len(answer.body) + 1
        await partial.prepare(request)
        await partial.write(answer.body[: len(answer.body) // 2])
        _hang_up(request)
        return partial


def _write_secret(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)


def _headers(given: dict[str, str], answer: Any) -> dict[str, str]:
    return {"Content-Type": answer.content_type, **given} if answer.body else given


def _hang_up(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


__all__ = ["TOKEN_HEADER", "SimulatedTenant", "TenantNotStarted"]
