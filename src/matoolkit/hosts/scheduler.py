"""The scheduler as a process of its own; of several one leads, and another follows when that one falls silent."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from matoolkit.bus import Names
from matoolkit.clock import SystemClock
from matoolkit.hosts.durations import duration
from matoolkit.hosts.log_lines import begin_logging, concealing, log_format, log_level
from matoolkit.hosts.parts import SchedulerPart
from matoolkit.hosts.service import health_port, serve
from matoolkit.hosts.service_bus import ServiceBusAddress, connection_string
from matoolkit.hosts.shared import Whereabouts, chosen_database, namespace, topic_name
from matoolkit.hosts.telling import telling
from matoolkit.scheduler import Settings as Rhythm
from matoolkit.settings import Secret, Settings, defaulted, optional

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.hosts.shared import Shared
    from matoolkit.telemetry import Telemetry

TICK, POLL_TICK = timedelta(minutes=5), timedelta(seconds=5)


class SchedulerSettings(Settings):
    """What a scheduler is told by its environment."""

    service = "the scheduler"

    database = optional("Scheduler__SqlConnectionString", Secret)
    service_bus_namespace = optional("Scheduler__ServiceBusNamespace", namespace)
    service_bus_connection_string = connection_string
    topic = defaulted("Scheduler__OrchestratorTopicName", topic_name, Names().events)
    tick = defaulted("Scheduler__Tick", duration, TICK)
    poll_tick = defaulted("Scheduler__PollTick", duration, POLL_TICK)
    health_port = health_port
    level = log_level
    form = log_format

    def whereabouts(self, database_url: str | Secret | None) -> Whereabouts:
        """Where it finds what it shares with others."""
        return Whereabouts(
            service=self.service,
            database_url=database_url,
            database_setting=SchedulerSettings.database.name,
            service_bus=ServiceBusAddress(self.service_bus_namespace, self.service_bus_connection_string),
            names=Names(events=self.topic),
        )


def run(environment: Mapping[str, str], database_url: str | None) -> int:
    """Schedule until told to end; the process's exit code."""
    settings: SchedulerSettings = SchedulerSettings.read(environment)
    begin_logging(settings.level, settings.form, about={"service": "scheduler"}, conceal=concealing(settings))
    where = chosen_database(database_url, environment, settings.database)

    def make(telemetry: Telemetry, found: Shared) -> SchedulerPart:
        return SchedulerPart(
            found.database,
            found.publisher,
            SystemClock(),
            topic=settings.topic,
            environment=environment,
            beat_seconds=settings.poll_tick.total_seconds(),
            settings=Rhythm(tick=settings.tick),
            telemetry=telemetry,
        )

    with telling(environment, "scheduler", conceal=concealing(settings)) as telemetry:
        return serve(settings.whereabouts(where), partial(make, telemetry), telemetry, settings.health_port)
