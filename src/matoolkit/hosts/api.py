"""The admin API as a process of its own, or as a thread of another: settings, sign-in, a server.

Without Entra ID's settings, who signs in does so with the key in the data folder, and the server speaks to this
machine only. With them, that key is not even read. There is no third way.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import uvicorn

from matoolkit.api import Services, create_app
from matoolkit.api.edge import RequestIdFilter
from matoolkit.api.queues import BusQueues
from matoolkit.api.sign_in import EntraSettings, entra_sign_in, local_sign_in
from matoolkit.batches.announcing import Announcer
from matoolkit.clock import SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.hosts.api_parts import previews, publish_rules, releases
from matoolkit.hosts.ending import told_to_end
from matoolkit.hosts.garbage import keep_what_is_there
from matoolkit.hosts.log_lines import begin_logging, concealing, log_format, log_level
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.service_bus import ServiceBusAddress, connection_string
from matoolkit.hosts.shared import Whereabouts, chosen_database, namespace, shared, workers
from matoolkit.hosts.telling import telling
from matoolkit.local_key import make_local_key
from matoolkit.settings import Secret, Settings, defaulted, guid, https_address, optional, text, whole_number
from matoolkit.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fastapi import FastAPI

    from matoolkit.api.publishing import PublishRules
    from matoolkit.api.sign_in import SignIn
    from matoolkit.bus import Bus, Publisher
    from matoolkit.clock import Clock
    from matoolkit.hosts.shared import Shared
    from matoolkit.store.database import Database
    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

_HANDING_OVER_SECONDS = 0.0005
_LARGEST_HEADERS = 64 * 1024
_LAYOUT = "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"


class CannotListen(MatoolkitError):
    """The API cannot listen at its address."""


class ApiSettings(Settings):
    """What the API is told by its environment."""

    service = "the admin API"

    database = optional("AdminApi__SqlConnectionString", Secret)
    service_bus_namespace = optional("AdminApi__ServiceBusNamespace", namespace)
    service_bus_connection_string = connection_string
    host = optional("AdminApi__Host", text)
    port = defaulted("AdminApi__Port", whole_number(0, 65_535), 8080)
    instance = defaulted("AzureAd__Instance", https_address, "https://login.microsoftonline.com")
    tenant_id = optional("AzureAd__TenantId", guid)
    client_id = optional("AzureAd__ClientId", guid)
    audience = optional("AzureAd__Audience", text)
    worker_ids = optional("Orchestrator__WorkerIds", workers)
    level = log_level
    form = log_format

    @property
    def entra(self) -> EntraSettings | None:
        """Whose tokens are accepted, where that is Entra ID's."""
        if self.tenant_id is None or self.client_id is None:
            return None
        return EntraSettings(self.tenant_id, self.client_id, self.audience, self.instance)

    @property
    def address(self) -> tuple[str, int]:
        """Where to listen: at every address behind Entra ID's sign-in, else at this machine's own."""
        return self.host or ("127.0.0.1" if self.entra is None else "0.0.0.0"), self.port  # noqa: S104 - behind sign-in

    def whereabouts(self, database_url: str | Secret | None) -> Whereabouts:
        """Where it finds what it shares with others."""
        return Whereabouts(
            service=self.service,
            database_url=database_url,
            database_setting=ApiSettings.database.name,
            service_bus=ServiceBusAddress(self.service_bus_namespace, self.service_bus_connection_string),
        )

    def contradictions(self) -> Sequence[str]:
        """Half of Entra ID's settings is none, and without them nobody else is to reach the server."""
        found = []
        given = (self.tenant_id, self.client_id, self.audience)
        if any(given) and self.entra is None:
            missing = [
                name
                for name, value in (("AzureAd__TenantId", self.tenant_id), ("AzureAd__ClientId", self.client_id))
                if value is None
            ]
            found.append(f"{' and '.join(missing)} must be set too, where other settings of AzureAd are")
        elif self.entra is None and not is_loopback(self.address[0]):
            found.append("AdminApi__Host must be an address of this machine's own unless AzureAd__TenantId is set")
        return found


class ApiServer:
    """A server with the API on it."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        try:
            self._socket = _listening(host, port)
        except OSError as error:
            raise CannotListen(f"the API cannot listen at {host}:{port}: {error.strerror or error}") from error
        self._started = Event()
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=_LARGEST_HEADERS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=10,
        )
        # Its lines would quote queries, which may name people; ours do not.
        logging.getLogger("uvicorn.access").setLevel(logging.CRITICAL)
        self._server = _Server(config, self._started)
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """Where it is reached from this machine."""
        host, port = self._socket.getsockname()[:2]
        shown = "127.0.0.1" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host  # noqa: S104 - only shown
        return f"http://{shown}:{port}"

    def run(self) -> None:
        """Serve until the process is told to end."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serve in a thread; when this returns, requests are answered."""
        # Other threads here may compute all the time, and an answer changes hands some ten times.
        sys.setswitchinterval(_HANDING_OVER_SECONDS)
        self._thread = Thread(target=self.run, name="api", daemon=True)
        self._thread.start()
        if not self._started.wait(30.0):
            raise CannotListen(f"the API at {self.url} did not start")

    def stop(self, timeout: float = 15.0) -> bool:
        """End, after the requests under way; whether it did."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout)
        self._socket.close()
        return self._thread is None or not self._thread.is_alive()


class _Server(uvicorn.Server):
    """Says when it has started."""

    def __init__(self, config: uvicorn.Config, started: Event) -> None:
        super().__init__(config)
        self._has_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self._has_started.set()


def _listening(host: str, port: int) -> socket.socket:
    """A socket whose answers go out at once.

    An answer is written in two parts; the second would wait 40 ms for the first to be acknowledged. asyncio sees to
    that by itself only for sockets that say they are TCP's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=256)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def sign_in(settings: ApiSettings, folder: Path) -> SignIn:
    """Entra ID's where it is set up, else that of this machine; by the real clock, whatever the product's own says."""
    if settings.entra is not None:
        return entra_sign_in(settings.entra, SystemClock())
    return local_sign_in(make_local_key(folder), SystemClock())


def services(
    database: Database,
    bus: Bus,
    clock: Clock,
    signing_in: SignIn,
    rules: PublishRules,
    *,
    publisher: Publisher | None = None,
    telemetry: Telemetry = SILENT,
    **others: Any,
) -> Services:
    """What the API works with; `others` are what it is handed of other parts.

    `publisher` is what it sends through where that is not the bus itself.
    """
    return Services(
        database=database,
        announcer=Announcer(publisher or bus, telemetry=telemetry),
        telemetry=telemetry,
        clock=clock,
        sign_in=signing_in,
        new_id=lambda: uuid4().hex,
        rules=rules,
        queues=BusQueues(bus) if bus.in_database else None,
        **others,
    )


def api_services(
    settings: ApiSettings,
    together: Shared,
    environment: Mapping[str, str],
    folder: Path | None = None,
    telemetry: Telemetry = SILENT,
) -> Services:
    """What the API works with where parts are apart; `folder` has the key of this machine, where that is used."""
    clock = SystemClock()
    return services(
        together.database,
        together.bus,
        clock,
        sign_in(settings, folder or Path()),
        publish_rules(environment, settings.worker_ids),
        publisher=together.publisher,
        telemetry=telemetry,
        preview=previews(environment, clock),
        release=releases(together.database, Announcer(together.publisher)),
    )


def server(found: Services, host: str, port: int) -> ApiServer:
    """A server for these services, which listens already and answers once it is started."""
    return ApiServer(create_app(found, time.perf_counter), host, port)


def run(environment: Mapping[str, str], database_url: str | None, folder: Path) -> int:
    """The API as a process of its own, until it is told to end; its exit code."""
    settings: ApiSettings = ApiSettings.read(environment)
    conceal = concealing(settings)
    log_with_request_ids(settings.level, settings.form, conceal)
    chosen = chosen_database(database_url, environment, settings.database)
    with (
        telling(environment, "api", conceal=conceal) as telemetry,
        told_to_end() as ending,
        shared(settings.whereabouts(chosen)) as together,
    ):
        loops = Loops(telemetry=telemetry)
        found = api_services(settings, together, environment, folder, telemetry)
        serving = server(found, *settings.address)
        together.start(loops)
        serving.start()
        keep_what_is_there()
        log.info("the admin API listens at %s", serving.url)
        log.info("%s: the admin API ends after the requests under way", ending.wait())
        stopped = [serving.stop(), loops.stop()]
    return 0 if all(stopped) else 1


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_with_request_ids(level: str, form: str, conceal: Callable[[str], str], service: str = "api") -> None:
    """Have the log written to standard error, each line with the id of its request."""
    about = {"service": service}
    begin_logging(level, form, about=about, layout=_LAYOUT, conceal=conceal, letting=RequestIdFilter())
