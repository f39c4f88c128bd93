"""The stack of Azure: the Service Bus double, the function apps and who calls them, workers as processes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.bus import Names, Topology
from matoolkit.clock import SystemClock
from matoolkit.hosts.azure_functions.functions import Functions
from tests.doubles.service_bus.server import Namespace
from tests.hosts.functions_host import FunctionsHost
from tests.stacks.wave import WORKERS
from tests.worker.processes import WorkerProcess

if TYPE_CHECKING:
    from pathlib import Path

_LOCK = timedelta(seconds=5)
_NAMES = Names()
_TOPOLOGY = Topology(
    topics=_NAMES.topology().topics,
    subscriptions=(*_NAMES.topology(_LOCK).subscriptions, *(_NAMES.worker(each, _LOCK) for each in WORKERS)),
)
_FASTER = 0.2
"""Timers need not be waited for as long as on Azure."""


def namespace_of_a_wave() -> Namespace:
    """The double, with what infrastructure makes."""
    namespace = Namespace(SystemClock()).start()
    namespace.declare(_TOPOLOGY)
    return namespace


class Azure:
    """All of it on one database."""

    def __init__(self, url: str, folder: Path, wave_settings: dict[str, str]) -> None:
        self.namespace = namespace_of_a_wave()
        bus = {"SERVICE_BUS_CONNECTION_STRING": self.namespace.connection_string}
        settings = {
            **wave_settings,
            **bus,
            "ServiceBusConnection": self.namespace.connection_string,
            "MATOOLKIT_DATABASE_URL": url,
            "Orchestrator__WorkerIds": ",".join(WORKERS),
            "Scheduler__Tick": "1s",
            "Scheduler__PollTick": "1s",
        }
        self.workers = [
            WorkerProcess("", folder, {**wave_settings, **bus, "WORKER_ID": each, "MAX_PARALLELISM": "16"})
            for each in WORKERS
        ]
        # Two instances of the orchestrator, as Azure would start them under load.
        self._apps = [Functions({**settings, "MATOOLKIT_PARTS": part}) for part in _APPS]
        self.hosts = [FunctionsHost(each.app, settings, timer_scale=_FASTER) for each in self._apps]

    def stop(self) -> None:
        """End all of it."""
        for host in self.hosts:
            host.stop()
        for app in self._apps:
            app.close()
        for worker in self.workers:
            worker.kill()
        self.namespace.stop()

    def told(self) -> object:
        """What there is to say when nothing moves."""
        return [(each.calls, each.failures[-3:]) for each in self.hosts], [each.lines[-5:] for each in self.workers]


_APPS = ("scheduler", "orchestrator", "orchestrator")
