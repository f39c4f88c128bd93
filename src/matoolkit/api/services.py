"""What the API works with, handed in by whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio import CapacityLimiter

from matoolkit.api.errors import Unavailable
from matoolkit.api.publishing import PublishRules
from matoolkit.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from matoolkit.api.queues import Queues
    from matoolkit.api.sign_in import SignIn
    from matoolkit.batches.announcing import Announcer
    from matoolkit.clock import Clock
    from matoolkit.runbooks import Runbook
    from matoolkit.store.database import Database, Transaction
    from matoolkit.telemetry import Telemetry

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class BatchGroup:
    """Members of a query's answer who would be a batch."""

    batch_time: datetime
    member_count: int


@dataclass(frozen=True, slots=True)
class QueryPreview:
    """What a runbook's query gives now."""

    row_count: int
    columns: Sequence[str]
    sample: Sequence[Mapping[str, Any]]
    """The first rows, as the members' data would be."""
    batch_groups: Sequence[BatchGroup]
    warnings: Sequence[str] = ()


class Preview(Protocol):
    """Runs a runbook's query, within a time limit of its own."""

    def __call__(self, runbook: Runbook) -> QueryPreview:
        """What it gives; an error of ours when it fails."""


class Release(Protocol):
    """Lets go the members whose removal is held: some at a time, each set in the audit; twice does no harm."""

    def __call__(self, batch_id: int, now: datetime, *, by: str) -> int:
        """How many there were."""


@dataclass(frozen=True)
class Services:
    """Everything that requests need."""

    database: Database
    announcer: Announcer
    clock: Clock
    sign_in: SignIn
    new_id: Callable[[], str]
    """Gives an id that never occurred, for requests that bring none."""
    rules: PublishRules = field(default_factory=PublishRules)
    telemetry: Telemetry = SILENT
    queues: Queues | None = None
    preview: Preview | None = None
    release: Release | None = None
    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(12))
    sign_in_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(4))
    preview_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(4))
    preview_seconds: float = 180.0
    """When to give up on a source that has not even kept its own time limit."""

    async def run(self, work: Callable[[], Given], *, slowly: bool = False) -> Given:
        """Do what blocks, in a thread; what may take long does not take the threads of the others."""
        if not slowly:
            return await anyio.to_thread.run_sync(work, limiter=self.threads)
        try:
            with anyio.fail_after(self.preview_seconds):
                # The thread that hangs is left behind, and its place goes to the next one.
                return await anyio.to_thread.run_sync(work, limiter=self.preview_threads, abandon_on_cancel=True)
        except TimeoutError:
            raise Unavailable(f"the data source has not answered for {self.preview_seconds:g} seconds") from None

    async def read(self, look: Callable[[Transaction], Given]) -> Given:
        """Look something up."""

        def within() -> Given:
            with self.database.reading() as tx:
                return look(tx)

        return await self.run(within)
