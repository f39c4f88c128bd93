"""The orchestrator when Service Bus or a timer calls it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.bus import Subscription
from matoolkit.clock import SystemClock
from matoolkit.hosts.azure_functions.opening import Opening, patiently
from matoolkit.hosts.azure_functions.received import received
from matoolkit.hosts.azure_functions.settings import every, insist
from matoolkit.hosts.orchestrator import OrchestratorSettings
from matoolkit.hosts.parts import OrchestratorPart
from matoolkit.hosts.shared import chosen_database, shared
from matoolkit.hosts.telling import telling, watch_shared
from matoolkit.orchestrator import Orchestrator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import ExitStack

    from azure.functions import ServiceBusMessage

    from matoolkit.bus import Received
    from matoolkit.hosts.shared import Shared

_UPKEEP = timedelta(seconds=30)


class Orchestrating:
    """One orchestrator; any number of instances share the database and the messages."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._settings: OrchestratorSettings = OrchestratorSettings.read(environment)
        self._where = self._settings.whereabouts(chosen_database(None, environment, self._settings.database))
        insist(self._where.service_bus, OrchestratorSettings.service_bus_namespace.name)
        manner = self._settings.manner
        self.events = Subscription(manner.events_topic, manner.events_subscription)
        self.results = Subscription(manner.results_topic, manner.results_subscription)
        self.schedule = every(_UPKEEP, "the upkeep")
        self._opened = Opening(self._open)

    def take_events(self, messages: Sequence[ServiceBusMessage]) -> None:
        """Handle events; when this fails, all of them are to be delivered again."""
        self._take([received(each, self.events) for each in messages], Orchestrator.given_events)

    def take_results(self, messages: Sequence[ServiceBusMessage]) -> None:
        """Handle results; likewise."""
        self._take([received(each, self.results) for each in messages], Orchestrator.given_results)

    def keep_up(self) -> None:
        """Find what is stuck, what the bus gave up, and what was written and never sent."""
        found, part = self._opened()
        try:
            part.tidy()
        finally:
            found.relay()

    def close(self) -> None:
        """Leave what was opened."""
        self._opened.close()

    def _take(self, messages: Sequence[Received], handle: Callable[[Orchestrator, Sequence[Received]], None]) -> None:
        def work() -> Shared:
            found, part = self._opened()
            handle(part.orchestrator, messages)
            return found

        patiently(work).relay()

    def _open(self, closing: ExitStack) -> tuple[Shared, OrchestratorPart]:
        # The log goes its own way here: the host sends it.
        telemetry = closing.enter_context(telling(self._environment, "orchestrator", with_log=False))
        found = closing.enter_context(shared(self._where))
        watch_shared(telemetry, found, self._where.names)
        return found, OrchestratorPart(found.database, found.bus, SystemClock(), self._settings.manner, telemetry)
