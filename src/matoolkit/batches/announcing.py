"""Events for the orchestrator, published with the rows they speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET

from matoolkit.bus import Outgoing
from matoolkit.messages import Event, PhaseDue, encode, message_type
from matoolkit.telemetry import SILENT, Telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import UnsetType

    from matoolkit.bus import Publisher
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction
    from matoolkit.store.phases import Phase


@dataclass(frozen=True, slots=True)
class Announcer:
    """Where events for the orchestrator go."""

    bus: Publisher
    topic: str = "orchestrator-events"
    telemetry: Telemetry = SILENT

    def send(self, tx: Transaction, events: Sequence[Event]) -> None:
        """Publish events with the rows they speak of."""
        if events:
            outgoing = [Outgoing(body=encode(each), properties={"MessageType": message_type(each)}) for each in events]
            self.bus.publish(tx, self.topic, outgoing)

    def send_due(self, tx: Transaction, phases: Sequence[tuple[Phase, Batch]]) -> None:
        """Say of phases that their time has come. What follows from each is one trace, which begins here."""
        trace_of = self.telemetry.trace_of
        self.send(tx, [phase_due(phase, batch, trace_of(batch.origin(phase.id)) or UNSET) for phase, batch in phases])
        if self.telemetry.is_on:
            tx.after_commit(lambda: self._begin(phases))

    def _begin(self, phases: Sequence[tuple[Phase, Batch]]) -> None:
        for phase, batch in phases:
            labels: dict[str, str | int] = {
                "BatchId": batch.id,
                "PhaseExecutionId": phase.id,
                "PhaseName": phase.phase_name,
                "RunbookName": batch.runbook_name,
                "RunbookVersion": phase.runbook_version,
            }
            self.telemetry.begin(f"phase {phase.phase_name} is due", batch.origin(phase.id), labels)


def phase_due(phase: Phase, batch: Batch, traceparent: str | UnsetType, after_member_id: int = 0) -> PhaseDue:
    """The message that starts a phase, or the chunk of it that comes after a member."""
    return PhaseDue(
        runbook_name=batch.runbook_name,
        runbook_version=phase.runbook_version,
        batch_id=batch.id,
        phase_execution_id=phase.id,
        phase_name=phase.phase_name,
        offset_minutes=phase.offset_minutes,
        due_at=phase.due_at,
        after_member_id=after_member_id,
        traceparent=traceparent,
    )
