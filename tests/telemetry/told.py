"""A wave whose every part tells somebody."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from matoolkit.orchestrator import Orchestrator
from tests.orchestrator.driver import Wave

if TYPE_CHECKING:
    from matoolkit.batches.announcing import Announcer
    from matoolkit.store.database import Database
    from tests.telemetry.listening import Listening


class ToldWave(Wave):
    """Scheduler and orchestrators tell; the worker is the test."""

    def __init__(self, database: Database, listening: Listening) -> None:
        self.listening = listening
        super().__init__(database)

    def boot(self, **settings: Any) -> list[Orchestrator]:
        super().boot(**settings)
        self.orchestrators = [
            Orchestrator(self.database, self.bus, self.clock, self.settings, self.listening.telemetry) for _ in range(2)
        ]
        return self.orchestrators

    @property
    def _announcer(self) -> Announcer:
        return replace(super()._announcer, telemetry=self.listening.telemetry)
