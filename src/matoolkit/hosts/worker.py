"""The worker as a process: it starts in eight phases, each of which says one line, and ends when it is told to.

The main thread only waits for signals, so that they are heeded whatever functions do to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING

from sqlalchemy.exc import ProgrammingError

from matoolkit.bus import EmbeddedBus, Names, Topology
from matoolkit.bus.embedded import require_topics
from matoolkit.bus.errors import SubscriptionNotFound
from matoolkit.clock import SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.hosts.garbage import keep_what_is_there
from matoolkit.hosts.health_address import HealthAddress
from matoolkit.hosts.log_lines import begin_logging
from matoolkit.hosts.places import insist_on_own_place
from matoolkit.hosts.service_bus import ServiceBusAddress
from matoolkit.hosts.telling import telling, watch_worker
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.store.address import described, parsed
from matoolkit.store.database import open_database
from matoolkit.worker.concealing import Concealer
from matoolkit.worker.configuration import FunctionSettings, WorkerSettings
from matoolkit.worker.credentials import local_credential, vault_certificate
from matoolkit.worker.errors import WorkerFailure
from matoolkit.worker.loading import gather

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    from matoolkit.bus import Bus, SubscriptionRule
    from matoolkit.clock import Clock
    from matoolkit.hosts.worker_host import Tenant
    from matoolkit.telemetry import Telemetry
    from matoolkit.worker.credentials import Credential
    from matoolkit.worker.registry import Registry

log = logging.getLogger("matoolkit.worker")

_PHASES = 8
_MARGIN, _LONGEST_MARGIN = 0.05, 0.5
_LOOK_UP = 0.25
"""Seconds: a signal that comes just as a wait begins is noticed when that wait ends."""
_CUSTOM_FUNCTIONS = "custom_functions"


class StartFailed(WorkerFailure):
    """The worker could not be started."""


class Boot:
    """Counts the phases of the start, and says for each how it went."""

    def __init__(self) -> None:
        self._phase = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[Callable[[str], None]]:
        """One phase: what it is given to say is its line; a failure says which phase it was."""
        self._phase += 1
        said = ["done"]
        try:
            yield lambda line: said.__setitem__(0, line)
        except MatoolkitError as error:
            raise StartFailed(
                f"the worker does not start: {name} (phase {self._phase} of {_PHASES}): {error}"
            ) from error
        log.info("[%d/%d] %s: %s", self._phase, _PHASES, name, said[0])


def run(
    environment: Mapping[str, str],
    tenant: Callable[[WorkerSettings, Credential, Concealer, object], Tenant] | None = None,
) -> int:
    """Start a worker and work; the process's exit code."""
    clock, boot, concealer = SystemClock(), Boot(), Concealer()
    settings = _settings(environment)
    concealer.add_own(settings.own_secrets())
    _begin_logging(settings, concealer)
    with boot.phase("configuration") as say:
        say(f"worker {settings.worker_id}, up to {settings.max_parallelism} jobs at a time")
    with boot.phase("logging") as say:
        say(f"lines go to standard output, from level {settings.log_level.lower()}")
    with boot.phase("sign-in identity") as say:
        identity = _identity(settings)
        say("not needed: nothing of Azure is used" if identity is None else "the managed identity of this host")
    with boot.phase("certificate") as say:
        credential = _credential(settings, identity, clock)
        say(credential.described(clock.now()))
    with ExitStack() as closing:
        telemetry = closing.enter_context(
            telling(environment, "worker", instance=settings.worker_id, conceal=concealer.out_of_text)
        )
        with boot.phase("bus") as say:
            bus, rule, where = _bus(settings, closing)
            say(f"jobs for {settings.worker_id} come from {where}")
        with boot.phase("tenant clients") as say:
            opener = partial(tenant or partial(_tenant, telemetry), settings, credential, concealer, identity)
            say(f"signed in to {settings.target_tenant_id} for {asyncio.run(_signed_in(opener))}")
        with boot.phase("functions") as say:
            registry = registered(settings)
            say(f"{len(registry)} functions")
        with boot.phase("job loop") as say:
            manner = Manner(
                worker_id=settings.worker_id,
                parallelism=settings.max_parallelism,
                idle_seconds=settings.idle_timeout_seconds,
                grace_seconds=settings.shutdown_grace_seconds,
            )
            host = WorkerHost(
                bus, rule, registry, clock, manner=manner, tenant=opener, concealer=concealer, telemetry=telemetry
            )
            watch_worker(telemetry, host)
            address = HealthAddress(settings.health_check_port, host.health_report)
            closing.callback(address.close)
            say(f"health is told on port {address.port}")
        keep_what_is_there()
        return supervised(host)


def supervised(host: WorkerHost) -> int:
    """Run a worker in a thread, and end it when a signal says so: in its grace period, or at a second one at once."""
    news: SimpleQueue[BaseException | str] = SimpleQueue()

    def on_signal(number: int, _: FrameType | None) -> None:
        news.put(signal.Signals(number).name)

    opened = Event()

    def ready() -> None:
        opened.set()
        log.info("ready: %s takes jobs", host.manner.worker_id)

    def work() -> None:
        try:
            left = host.run(ready)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            news.put(error)
        else:
            log.info("ended: %s", left)
            news.put("")

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, on_signal)
    thread = Thread(target=work, name="worker", daemon=True)
    thread.start()
    end_by: float | None = None
    while True:
        left = _LOOK_UP if end_by is None else max(0.0, end_by - time.monotonic())
        try:
            said = news.get(timeout=min(left, _LOOK_UP))
        except Empty:
            if left >= _LOOK_UP:
                continue
            log.critical("the worker does not end by itself: its jobs are given back, and the process ends")
            host.give_up()
            _flush()
            os._exit(1)
        if isinstance(said, MatoolkitError) and not opened.is_set():
            raise StartFailed(f"the worker does not start: tenant clients: {said}") from said
        if isinstance(said, BaseException):
            raise said
        if not said:
            return 0
        if end_by is None:
            log.info("%s: no more jobs are taken; those that run have %g seconds", said, host.manner.grace_seconds)
            grace = host.manner.grace_seconds
            end_by = time.monotonic() + grace - min(_LONGEST_MARGIN, grace * _MARGIN)
        else:
            log.info("%s again: ending at once", said)
            end_by = min(end_by, time.monotonic() + _LONGEST_MARGIN * 4)
        host.stop()


def registered(settings: FunctionSettings) -> Registry:
    """The functions that a worker with these settings has."""
    named = settings.custom_functions_path
    return gather(named or Path(_CUSTOM_FUNCTIONS), insist=named is not None)


# Phases --------------------------------------------------------------------------------------------------------------


def _settings(environment: Mapping[str, str]) -> WorkerSettings:
    settings: WorkerSettings = WorkerSettings.read(environment)
    return settings


def _begin_logging(settings: WorkerSettings, concealer: Concealer) -> None:
    about = {"service": "worker", "workerId": settings.worker_id}
    begin_logging(settings.log_level, settings.log_format, about=about, to=sys.stdout, conceal=concealer.out_of_text)


def _identity(settings: WorkerSettings) -> object | None:
    if settings.service_bus_namespace is None and settings.key_vault_name is None:
        return None
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential(exclude_interactive_browser_credential=True)


def _credential(settings: WorkerSettings, identity: object | None, clock: Clock) -> Credential:
    credential = local_credential(settings, clock.now())
    if credential is not None:
        return credential
    return vault_certificate(settings.key_vault_name or "", settings.cert_name or "", identity, clock.now())


def _bus(settings: WorkerSettings, closing: ExitStack) -> tuple[Bus, SubscriptionRule, str]:
    """The bus, this worker's place at it, and what it is called."""
    names = Names()
    rule = names.worker(settings.worker_id)
    if settings.uses_service_bus:
        return _service_bus(settings, names, rule, closing), rule, "Azure Service Bus"
    address = parsed("" if settings.database_url is None else settings.database_url.reveal())
    if address.get_backend_name() == "sqlite":
        raise StartFailed("SQLite serves a single process; a worker of its own needs PostgreSQL")
    require_topics(address)
    database = open_database(address)
    closing.callback(database.close)
    bus = EmbeddedBus(database)
    closing.callback(bus.close)
    try:
        insist_on_own_place(bus, names, settings.worker_id)
        _declare(bus, names, rule)
    except ProgrammingError as error:
        raise StartFailed(
            f"{described(address)} has no bus that this role may use: run `matoolkit migrate` there, and let the role"
            " read and write the tables whose names begin with bus_, and use their sequences"
        ) from error
    return bus, rule, described(address)


def _service_bus(settings: WorkerSettings, names: Names, rule: SubscriptionRule, closing: ExitStack) -> Bus:
    """The bus, looked at: a worker without a subscription would wait for ever."""
    address = ServiceBusAddress(settings.service_bus_namespace, settings.service_bus_connection_string)
    bus = address.open(SystemClock(), names, (settings.worker_id,))
    closing.callback(bus.disconnect)
    _declare(bus, names, rule)
    try:
        bus.wait([rule.subscription], 0)
    except SubscriptionNotFound as error:
        raise StartFailed(
            f"{error}: deploy infra/automation/cloud-worker for {settings.worker_id}, which makes it"
        ) from error
    return bus


def _declare(bus: Bus, names: Names, rule: SubscriptionRule) -> None:
    with bus.transaction() as tx:
        bus.declare(tx, names.topology())
        bus.declare(tx, Topology(subscriptions=(rule,)))


def _tenant(
    telemetry: Telemetry, settings: WorkerSettings, credential: Credential, concealer: Concealer, _: object
) -> Tenant:
    from matoolkit.hosts.tenant import tenant_services

    return tenant_services(settings, credential, concealer, telemetry=telemetry)


async def _signed_in(opener: Callable[[], Tenant]) -> str:
    """Who cannot sign in does not start: it would fail every job that waits."""
    async with opener() as services:
        return await services.sign_in()


def _flush() -> None:
    for handler in logging.getLogger().handlers:
        handler.flush()
