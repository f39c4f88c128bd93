"""Everything in one process: scheduler, orchestrator, worker and API on one database, by default a file.

What is started is ended in the reverse order. A process that dies leaves nothing that has to be cleared away: the
folder's lock dies with it, and the next start gives back what it had in its hands.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from matoolkit.bus import Names
from matoolkit.bus.embedded import require_topics
from matoolkit.errors import MatoolkitError
from matoolkit.hosts.all_in_one import AllInOne, Pace
from matoolkit.hosts.api import ApiServer, ApiSettings, log_with_request_ids, server, services, sign_in
from matoolkit.hosts.api_parts import previews, publish_rules, releases
from matoolkit.hosts.data_folder import DatabaseFile, DataFolder
from matoolkit.hosts.ending import told_to_end
from matoolkit.hosts.garbage import keep_what_is_there
from matoolkit.hosts.hands import begin_simulated_tenant, no_tenant, real_tenant, simulated_tenant
from matoolkit.hosts.telling import telling, watch_queues, watch_state, watch_worker
from matoolkit.hosts.up_settings import Configuration, configuration
from matoolkit.hosts.worker import registered
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.scheduler import Settings as Scheduling
from matoolkit.store.address import described, in_file, parsed
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate, require_current
from matoolkit.telemetry import SILENT
from matoolkit.worker.concealing import Concealer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from matoolkit.bus import EmbeddedBus, SubscriptionRule
    from matoolkit.hosts.hands import Reach
    from matoolkit.hosts.up_settings import Wishes
    from matoolkit.simulation.tenant import SimulatedTenant
    from matoolkit.store.database import Database
    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

DATABASE_FILE = "matoolkit.db"
_USUAL_PORT = ApiSettings.port.default
TENANT_FOLDER = "simulated-tenant"
_LAST_SECONDS = 5.0
"""Beyond the worker's grace period, for the others to end."""


class NotSignedIn(MatoolkitError):
    """The tenant cannot be reached as who the worker is to be there."""


class Up:
    """All of it, from `start` to `stop`."""

    def __init__(
        self,
        configured: Configuration,
        pace: Pace | None = None,
        concealer: Concealer | None = None,
        telemetry: Telemetry = SILENT,
    ) -> None:
        """Open everything; nothing works yet. `pace` is for those whose time is another than the machine's."""
        self._configured = configured
        wishes, environment = configured.wishes, configured.environment
        self.pace = pace or Pace(beat_seconds=wishes.poll_tick.total_seconds(), scheduling=Scheduling(tick=wishes.tick))
        self._concealer = concealer or Concealer()
        self._telemetry = telemetry
        self.tenant: SimulatedTenant | None = None
        """The simulated one, where there is one."""
        self._closing = ExitStack()
        try:
            self._folder = self._closing.enter_context(DataFolder(wishes.folder))
            self._registry = registered(configured.worker)
            self.database = self._open_database()
            self._reach = self._reached()
            self._engine = AllInOne(
                self.database,
                self.pace,
                worker=self._worker,
                worker_id=configured.worker.worker_id,
                environment=environment,
                telemetry=telemetry,
            )
            self._closing.callback(self._engine.bus.close)
            watch_state(telemetry, self.database, self.pace.clock)
            watch_queues(telemetry, self._engine.bus, Names(), self.pace.clock)
            watch_worker(telemetry, self._host)
            self._api = self._open_api()
            # It listens from now on, whether it is ever started or not.
            self._closing.callback(self._api.stop)
        except BaseException:
            self._closing.close()
            raise

    @property
    def url(self) -> str:
        """Where the API is."""
        return self._api.url

    def start(self) -> None:
        """Have everything work."""
        if self.database.dialect == "sqlite":
            # The folder is ours alone, so whoever had something in their hands is dead.
            given_back = self._engine.bury()
            if given_back:
                log.info(
                    "%d messages were in the hands of a process that has ended, and are given out again", given_back
                )
        self._folder.note(f"process {os.getpid()}, {self.url}")
        # Who cannot sign in would fail every job that waits.
        asyncio.run(self._signed_in())
        self._engine.start()
        self._api.start()

    def stop(self) -> bool:
        """End, within the worker's grace period; whether everything did."""
        grace = self._configured.worker.shutdown_grace_seconds
        api_ended = self._api.stop()
        engine_ended = self._engine.stop(grace + _LAST_SECONDS)
        if not engine_ended:
            self._host.give_up()
        return api_ended and engine_ended

    def close(self) -> None:
        """Let go of everything."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def introduction(self) -> list[tuple[str, str]]:
        """What somebody who started it has to know."""
        configured, folder = self._configured, self._configured.wishes.folder
        worker_id = configured.worker.worker_id
        standard = sum(1 for each in self._registry if self._registry.origin(each.name) == "standard")
        own = len(self._registry) - standard
        if configured.api.entra is None:
            exports = [f"MATOOLKIT_DATA={shlex.quote(str(folder.absolute()))}"]
            if not self.url.endswith(f":{_USUAL_PORT}"):
                exports.append(f"MATOOLKIT_API_URL={self.url}")
            how = (
                "`matoolkit` on this machine signs in by itself, with the key in the data folder (role Admin);"
                f" from another folder: export {' '.join(exports)}"
            )
        else:
            how = f"`matoolkit auth login`, with an account of the tenant {configured.api.tenant_id}"
        return [
            ("API", f"{self.url}, described at {self.url}/docs"),
            ("sign-in", how),
            ("data", described(self.database.engine.url)),
            ("worker", f"{worker_id or 'every worker id'}; {standard} standard functions, {own} of your own"),
            ("tenant", self._reach.described),
        ]

    async def _signed_in(self) -> None:
        async with self._reach.open() as services:
            try:
                said = await services.sign_in()
            except MatoolkitError as error:
                raise NotSignedIn(f"the tenant ({self._reach.described}) cannot be signed in to: {error}") from error
        log.info("the worker reaches %s", said)

    # Parts -----------------------------------------------------------------------------------------------------------

    def _open_database(self) -> Database:
        url = self._configured.database_url
        address = in_file(self._configured.wishes.folder / DATABASE_FILE) if url is None else parsed(url)
        require_topics(address)
        if url is not None and address.get_backend_name() == "sqlite" and address.database:
            self._closing.enter_context(DatabaseFile(Path(address.database).absolute()))
        database = open_database(address)
        self._closing.callback(database.close)
        if database.dialect == "sqlite":
            migrate(database)
        else:
            require_current(database)
        return database

    def _reached(self) -> Reach:
        wishes, environment = self._configured.wishes, self._configured.environment
        if wishes.simulated_tenant:
            self.tenant = begin_simulated_tenant(wishes.folder / TENANT_FOLDER, self.pace.clock)
            self._closing.callback(self.tenant.stop)
            return simulated_tenant(self.tenant, environment, self._concealer, self._telemetry)
        if self._configured.tenant is not None:
            return real_tenant(self._configured.tenant, environment, self._concealer, self._telemetry)
        return no_tenant(environment, self._concealer)

    def _worker(self, bus: EmbeddedBus, place: SubscriptionRule) -> WorkerHost:
        told = self._configured.worker
        manner = Manner(
            worker_id=told.worker_id or "",
            parallelism=told.max_parallelism,
            grace_seconds=told.shutdown_grace_seconds,
        )
        self._host = WorkerHost(
            bus,
            place,
            self._registry,
            self.pace.clock,
            manner=manner,
            tenant=self._reach.open,
            concealer=self._concealer,
            telemetry=self._telemetry,
        )
        return self._host

    def _open_api(self) -> ApiServer:
        environment, told = self._configured.environment, self._configured.api
        found = services(
            self.database,
            self._engine.bus,
            self.pace.clock,
            sign_in(told, self._configured.wishes.folder),
            publish_rules(environment, told.worker_ids),
            telemetry=self._telemetry,
            preview=previews(environment, self.pace.clock),
            release=releases(self.database, self._engine.announcer),
        )
        return server(found, *self._configured.address)


def run(wishes: Wishes, environment: Mapping[str, str], say: Callable[[list[tuple[str, str]]], None]) -> int:
    """Everything, until it is told to end; the process's exit code."""
    configured = configuration(wishes, environment)
    concealer = Concealer()
    log_with_request_ids(configured.worker.log_level, configured.worker.log_format, concealer.out_of_text, "up")
    # What is kept here is about people.
    os.umask(0o077)
    with (
        telling(environment, "up", conceal=concealer.out_of_text) as telemetry,
        told_to_end() as ending,
        Up(configured, concealer=concealer, telemetry=telemetry) as up,
    ):
        up.start()
        keep_what_is_there()
        say(up.introduction())
        log.info("ready: everything works, at %s", up.url)
        grace = configured.worker.shutdown_grace_seconds
        log.info("%s: ending; jobs that run have %g seconds, and a second signal ends at once", ending.wait(), grace)
        ended = up.stop()
    if not ended:
        log.critical("a part did not end in its time; what it had in its hands is given out again at the next start")
        return 1
    log.info("ended")
    return 0
