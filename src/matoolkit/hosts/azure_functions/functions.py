"""The functions of a function app: timers, triggers of Service Bus, and the API.

A trigger that returns has all its messages completed by the host, and one that fails has all of them delivered again.
So whatever is wrong with one message is no failure: it is put aside. Only a database that stays away is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, List  # noqa: UP035 - below, the host's worker accepts no other spelling

import azure.functions as func

from matoolkit.hosts.azure_functions.orchestrating import Orchestrating
from matoolkit.hosts.azure_functions.scheduling import Scheduling
from matoolkit.hosts.azure_functions.serving import Serving
from matoolkit.hosts.azure_functions.settings import FunctionsSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECTION = "ServiceBusConnection"
"""The settings by which the host itself reaches Service Bus begin with it."""


class Functions:
    """What a function app offers its host."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        settings: FunctionsSettings = FunctionsSettings.read(environment)
        # They write addresses and headers of each request.
        for name in ("azure", "urllib3", "msal"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self.app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
        self._parts: list[Scheduling | Orchestrating | Serving] = []
        if "scheduler" in settings.parts:
            self._schedule(Scheduling(environment))
        if "orchestrator" in settings.parts:
            self._orchestrate(Orchestrating(environment))
        if "admin-api" in settings.parts:
            self._serve(Serving(environment))

    def close(self) -> None:
        """Leave everything that was opened; the host never asks for it and ends the process instead."""
        for each in self._parts:
            each.close()

    def _schedule(self, part: Scheduling) -> None:
        self._parts.append(part)

        @self.app.function_name("scheduler")
        @self.app.timer_trigger("timer", part.schedule, run_on_startup=False, use_monitor=False)
        def scheduler(timer: func.TimerRequest) -> None:  # noqa: ARG001 - when it was due does not matter
            part.run()

    def _orchestrate(self, part: Orchestrating) -> None:
        self._parts.append(part)
        events, results = part.events, part.results

        @self.app.function_name("orchestrator_events")
        @self.app.service_bus_topic_trigger(
            "messages", CONNECTION, events.topic, events.name, cardinality=func.Cardinality.MANY
        )
        def orchestrator_events(messages: List[func.ServiceBusMessage]) -> None:  # noqa: UP006 - as said above
            part.take_events(messages)

        @self.app.function_name("orchestrator_results")
        @self.app.service_bus_topic_trigger(
            "messages", CONNECTION, results.topic, results.name, cardinality=func.Cardinality.MANY
        )
        def orchestrator_results(messages: List[func.ServiceBusMessage]) -> None:  # noqa: UP006 - as said above
            part.take_results(messages)

        @self.app.function_name("orchestrator_upkeep")
        @self.app.timer_trigger("timer", part.schedule, run_on_startup=False, use_monitor=False)
        def orchestrator_upkeep(timer: func.TimerRequest) -> None:  # noqa: ARG001 - when it was due does not matter
            part.keep_up()

    def _serve(self, part: Serving) -> None:
        self._parts.append(part)

        # Who may do what is decided by the API itself, from the token.
        @self.app.function_name("admin_api")
        @self.app.route("/{*route}", methods=list(func.HttpMethod), auth_level=func.AuthLevel.ANONYMOUS)
        async def admin_api(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
            return await part.answer(req, context)
