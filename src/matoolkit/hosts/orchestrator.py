"""The orchestrator as a process of its own; any number may share a database and its messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from matoolkit.bus import Names
from matoolkit.clock import SystemClock
from matoolkit.hosts.log_lines import begin_logging, concealing, log_format, log_level
from matoolkit.hosts.parts import OrchestratorPart
from matoolkit.hosts.service import health_port, serve
from matoolkit.hosts.service_bus import ServiceBusAddress, connection_string
from matoolkit.hosts.shared import Whereabouts, chosen_database, namespace, topic_name, workers
from matoolkit.hosts.telling import telling
from matoolkit.orchestrator import Settings as Manner
from matoolkit.settings import Secret, Settings, defaulted, optional

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.hosts.shared import Shared
    from matoolkit.telemetry import Telemetry

_NAMES = Names()


class OrchestratorSettings(Settings):
    """What an orchestrator is told by its environment."""

    service = "the orchestrator"

    database = optional("Orchestrator__SqlConnectionString", Secret)
    service_bus_namespace = optional("Orchestrator__ServiceBusNamespace", namespace)
    service_bus_connection_string = connection_string
    events_topic = defaulted("Orchestrator__OrchestratorEventsTopicName", topic_name, _NAMES.events)
    events_subscription = defaulted("Orchestrator__OrchestratorSubscriptionName", topic_name, _NAMES.orchestrator)
    jobs_topic = defaulted("Orchestrator__WorkerJobsTopicName", topic_name, _NAMES.jobs)
    results_topic = defaulted("Orchestrator__WorkerResultsTopicName", topic_name, _NAMES.results)
    results_subscription = defaulted(
        "Orchestrator__WorkerResultsSubscriptionName", topic_name, _NAMES.orchestrator_results
    )
    worker_ids = optional("Orchestrator__WorkerIds", workers)
    health_port = health_port
    level = log_level
    form = log_format

    @property
    def manner(self) -> Manner:
        """How it works."""
        return Manner(
            events_topic=self.events_topic,
            jobs_topic=self.jobs_topic,
            results_topic=self.results_topic,
            events_subscription=self.events_subscription,
            results_subscription=self.results_subscription,
        )

    def whereabouts(self, database_url: str | Secret | None) -> Whereabouts:
        """Where it finds what it shares with others."""
        return Whereabouts(
            service=self.service,
            database_url=database_url,
            database_setting=OrchestratorSettings.database.name,
            service_bus=ServiceBusAddress(self.service_bus_namespace, self.service_bus_connection_string),
            names=Names(
                events=self.events_topic,
                jobs=self.jobs_topic,
                results=self.results_topic,
                orchestrator=self.events_subscription,
                orchestrator_results=self.results_subscription,
            ),
            worker_ids=self.worker_ids or (),
            declares=True,
        )


def run(environment: Mapping[str, str], database_url: str | None) -> int:
    """Orchestrate until told to end; the process's exit code."""
    settings: OrchestratorSettings = OrchestratorSettings.read(environment)
    begin_logging(settings.level, settings.form, about={"service": "orchestrator"}, conceal=concealing(settings))
    where = chosen_database(database_url, environment, settings.database)

    def make(telemetry: Telemetry, found: Shared) -> OrchestratorPart:
        return OrchestratorPart(found.database, found.bus, SystemClock(), settings.manner, telemetry)

    with telling(environment, "orchestrator", conceal=concealing(settings)) as telemetry:
        return serve(settings.whereabouts(where), partial(make, telemetry), telemetry, settings.health_port)
