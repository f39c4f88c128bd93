"""What a function is told about the job it runs, and what it may use for it."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from matoolkit.clock import SystemClock
from matoolkit.worker.errors import TimedOut
from matoolkit.worker.ports import NoExchange, NoGraph, NoSecrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime
    from typing import Any

    from matoolkit.clock import Clock
    from matoolkit.worker.ports import ExchangeClient, GraphClient, SecretResolver

_LOGGER = logging.getLogger("matoolkit.functions")


def _as_it_is(text: str) -> str:
    return text


def _nothing(_: str) -> None: ...


class JobLogger(logging.LoggerAdapter[logging.Logger]):
    """Puts the job's id before every line, and leaves out of it what is secret."""

    def __init__(self, job_id: str, conceal: Callable[[str], str] = _as_it_is) -> None:
        super().__init__(_LOGGER)
        self._job_id = job_id or "no job"
        self._conceal = conceal

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Put the whole line together first, its exception included, so that nothing gets past."""
        if not self.isEnabledFor(level):
            return
        text = str(msg) % args if args else str(msg)
        exc_info = kwargs.pop("exc_info", None)
        if exc_info:
            error = exc_info if isinstance(exc_info, BaseException) else sys.exc_info()[1]
            if error is not None:
                text = f"{text}\n{''.join(traceback.format_exception(error)).rstrip()}"
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        self.logger.log(level, "%s: %s", self._job_id, self._conceal(text), **kwargs)


@dataclass(slots=True, kw_only=True)
class FunctionContext:
    """The job a function runs for; a test makes one with nothing but what its function uses."""

    graph: GraphClient = field(default_factory=NoGraph)
    """Microsoft Graph in the target tenant."""
    exchange: ExchangeClient = field(default_factory=NoExchange)
    """Exchange Online of the target tenant."""
    secrets: SecretResolver = field(default_factory=NoSecrets)
    """Secrets by name. Those named in parameters are resolved already."""
    job_id: str = ""
    batch_id: int = 0
    worker_id: str = ""
    function_name: str = ""
    idempotency_key: str = ""
    """The same for every attempt at the same step."""
    first_dispatched_at: datetime | None = None
    """When the first attempt was sent: what the tenant made before is somebody else's."""
    attempt: int = 1
    """Which attempt this is, retries by the runbook counted."""
    deliveries: int = 1
    """How often this very job was handed to a worker, this time included."""
    deadline: datetime | None = None
    """When the function is cancelled."""
    clock: Clock = field(default_factory=SystemClock)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds; other jobs go on meanwhile."""
    job_logger: JobLogger | None = None
    """Made when it is first asked for; see `logger`."""
    conceal: Callable[[str], None] = _nothing
    """Have a text blanked out wherever it would be written: for passwords and keys that the function comes by."""
    cancelled: Event = field(default_factory=Event)
    """Set once the result is no longer waited for. A coroutine is cancelled besides; a thread has to look."""

    @property
    def redelivered(self) -> bool:
        """Whether this very job was handed out before, to a worker that never answered."""
        return self.deliveries > 1

    @property
    def repeated(self) -> bool:
        """Whether the same may have been done before: by an earlier attempt, or by a worker that never answered."""
        return self.redelivered or (bool(self.idempotency_key) and self.job_id != self.idempotency_key)

    @property
    def logger(self) -> JobLogger:
        """Where the function writes about the job; secrets of the job are blanked out."""
        if self.job_logger is None:
            self.job_logger = JobLogger(self.job_id)
        return self.job_logger

    def check(self) -> None:
        """Raise `TimedOut` once nobody waits for the result any more: for threads, between two pieces of work."""
        if self.cancelled.is_set():
            raise TimedOut("the job is no longer waited for")
