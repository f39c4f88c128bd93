"""Which trace what is sent belongs to: that of the message it follows from, of the same phase and for the same member.

A phase and all that follows from it is one trace, named in every message of it. Where the message that caused something
names none (a poll, a member who catches up, what reconciliation finds), the trace of the phase is found by its name.
While nobody listens, what messages name is passed on all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from matoolkit.messages import BatchInit, MemberAdded, MemberRemoved, PhaseDue
from matoolkit.telemetry.port import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matoolkit.messages import Event, Kind, PollCheck, RetryCheck, WorkerResult
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution
    from matoolkit.telemetry import Telemetry, Trail

_Where = tuple[str, int, int]
_Key = tuple["Kind", int]


class Tracing:
    """The traces of one set of messages."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._given: dict[_Where, str] = {}
        self._trail: Trail = QUIET
        self.is_on = telemetry.is_on
        """Whether anything that is sent belongs anywhere."""

    def begin(self, name: str, messages: Sequence[Event | WorkerResult], labels: Mapping[str, str | int]) -> None:
        """The set is being handled."""
        causes = [each.traceparent for each in messages if each.traceparent is not UNSET]
        self.is_on = self._telemetry.is_on or bool(causes)
        if self._telemetry.is_on:
            self._trail = self._telemetry.handling(name, causes, labels)
        if causes:
            for message in messages:
                if message.traceparent is not UNSET:
                    self._note_event(message, message.traceparent)

    def note(
        self,
        executions: Mapping[_Key, Execution],
        message_about: Callable[[_Key], RetryCheck | PollCheck | WorkerResult],
    ) -> None:
        """What the messages said of these executions holds for what follows from them."""
        if self.is_on:
            for key, execution in executions.items():
                traceparent = message_about(key).traceparent
                if traceparent is not UNSET:
                    self._note(execution, traceparent)

    def of(self, execution: Execution, batch: Batch) -> str | UnsetType:
        """What is to stand in the message that sends an execution."""
        if not self.is_on:
            return UNSET
        given = self._given
        phase, member = execution.phase_id or 0, execution.member_id or 0
        if phase:
            cause = given.get(("step", phase, member)) or given.get(("step", phase, 0))
            cause = cause or given.get(("joined", 0, member))
        elif member:
            cause = given.get(("member", 0, member))
        else:
            cause = given.get(("init", 0, batch.id))
        if self._trail is QUIET and self._telemetry.is_on:
            self._trail = self._telemetry.handling("reconcile", (), {})
        return self._trail.follow(cause, batch.origin(execution.phase_id)) or UNSET

    def of_phase(self, phase: int, batch: Batch) -> str | UnsetType:
        """What is to stand in the message that starts the next members of a phase."""
        if not self.is_on:
            return UNSET
        return self._given.get(("step", phase, 0)) or self._telemetry.trace_of(batch.origin(phase)) or UNSET

    def end(self, error: str | None = None) -> None:
        """The set has been handled, or has not."""
        self._trail.end(error=error)

    def _note_event(self, event: Event | WorkerResult, traceparent: str) -> None:
        match event:
            case PhaseDue():
                self._given["step", event.phase_execution_id, 0] = traceparent
            case BatchInit():
                self._given["init", 0, event.batch_id] = traceparent
            case MemberAdded():
                self._given["joined", 0, event.batch_member_id] = traceparent
            case MemberRemoved():
                self._given["member", 0, event.batch_member_id] = traceparent
            case _:
                pass  # what it is about is known once its execution was read

    def _note(self, execution: Execution, traceparent: str) -> None:
        phase, member = execution.phase_id or 0, execution.member_id or 0
        if phase:
            self._given["step", phase, member] = traceparent
            self._given.setdefault(("step", phase, 0), traceparent)
        if member:
            # The undoing of a step, and the leaving behind it, stay in its trace.
            self._given["member", 0, member] = traceparent
        else:
            self._given["init", 0, execution.batch_id] = traceparent
