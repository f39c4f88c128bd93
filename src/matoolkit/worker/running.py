"""Runs one job: finds its function, sees to its parameters and secrets, and makes a result of whatever happens."""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, assert_never

import msgspec
from msgspec import UNSET

from matoolkit.bus import BusError, Outgoing, check
from matoolkit.messages import WorkerError, WorkerResult, encode
from matoolkit.telemetry import SILENT
from matoolkit.telemetry.metrics import JOB, JOBS_FAILED
from matoolkit.telemetry.subjects import subject
from matoolkit.worker.concealing import Concealer, Secrets, filled_in, references
from matoolkit.worker.context import FunctionContext, JobLogger
from matoolkit.worker.errors import (
    Expired,
    FunctionError,
    FunctionNotAllowed,
    OutcomeUnknown,
    TimedOut,
    ValidationError,
)
from matoolkit.worker.outcomes import shaped
from matoolkit.worker.ports import NoExchange, NoGraph, NoSecrets
from matoolkit.worker.runs import Ending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Executor

    from matoolkit.clock import Clock
    from matoolkit.messages import WorkerJob
    from matoolkit.telemetry import Telemetry
    from matoolkit.worker.ports import ExchangeClient, GraphClient, SecretResolver
    from matoolkit.worker.registry import Function, Registry
    from matoolkit.worker.runs import Run

log = logging.getLogger(__name__)

RESULTS = "worker-results"
_LONGEST_MESSAGE: Final = 4000
_LONGEST_NAME: Final = 256
_RETRY: Final = re.compile(r"-retry-(\d{1,9})(?:-|$)")


class ResultRefused(FunctionError):
    """The function was run, and what it returned cannot be sent."""


async def _nowhere() -> str:
    return "no tenant"


@dataclass(frozen=True, slots=True)
class Services:
    """What functions may use."""

    graph: GraphClient = field(default_factory=NoGraph)
    exchange: ExchangeClient = field(default_factory=NoExchange)
    secrets: SecretResolver = field(default_factory=NoSecrets)
    sign_in: Callable[[], Awaitable[str]] = _nowhere
    """Signs in to what functions use, and tells where; a failure is why they could do nothing."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    complaints: Callable[[], Sequence[str]] = tuple
    """What the worker's health is to say about them, when they are not well."""


class Runner:
    """Makes results of jobs; it never fails, except that a job which is cancelled may have no result."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        threads: Executor,
        *,
        worker_id: str = "",
        services: Services | None = None,
        concealer: Concealer | None = None,
        results_topic: str = RESULTS,
        named_results: bool = False,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._threads = threads
        self._worker_id = worker_id
        self._services = services or Services()
        self._concealer = concealer or Concealer()
        self._topic = results_topic
        # Where sending and settling are not one, a result that is sent twice is told by its name.
        self._named = named_results
        self._telemetry = telemetry

    async def run(self, run: Run) -> None:
        """Run the job of `run` and leave the result there, if there is to be one."""
        if run.ending is not None:
            if run.ending is Ending.TIMED_OUT:
                self.refuse(run, timed_out(run))
            return
        about = subject.set(run)
        if self._telemetry.is_on:
            self._show(run)
        secrets = Secrets()
        try:
            result_type, value = await self._outcome(run, secrets)
        except asyncio.CancelledError:
            self._ended_early(run, FunctionError("the function cancelled itself", type="Cancelled"), secrets)
        except BaseException as error:  # noqa: BLE001 - whatever a function raises is its result, `sys.exit` included
            self._ended_early(run, error, secrets)
        else:
            self._answer(run, secrets, result_type=result_type, value=value)
        finally:
            # A run knows its task, and the task what it is about: left like that, only the collector would find them.
            subject.reset(about)
            if run.span is not None:
                run.span.end(error="not reported by this worker")

    def _show(self, run: Run) -> None:
        """Begin the job's span, in the trace of whoever sent it."""
        job = run.job
        cause = None if job.traceparent is UNSET else job.traceparent
        run.span = self._telemetry.span(f"run {self._known(job.function_name)}", cause, run.log_fields())
        run.span.enter()

    def _ended_early(self, run: Run, error: BaseException, secrets: Secrets) -> None:
        """Without a return: by itself, or because it was to end; then what it raised is only how it did so."""
        match run.ending:
            case None:
                self.refuse(run, error, secrets)
            case Ending.TIMED_OUT:
                self.refuse(run, timed_out(run), secrets)
            case Ending.LOCK_LOST | Ending.GIVEN_BACK:
                pass
            case _:
                assert_never(run.ending)

    def refuse(self, run: Run, error: BaseException, secrets: Secrets | None = None) -> None:
        """Leave a failure as the result."""
        found = secrets or Secrets()
        if isinstance(error, FunctionError):
            kind, throttled, attempts = error.type, error.is_throttled, error.attempts
        else:
            kind, throttled, attempts = type(error).__name__, False, 1
            told = "".join(traceback.format_exception(error))
            log.warning("%s: %s failed: %s", run.job.job_id, run.job.function_name, self._blanked(told, found))
        message = self._blanked(_message(error), found)[:_LONGEST_MESSAGE]
        kind = self._blanked(kind, found)
        self._answer(
            run, found, error=WorkerError(message=message, type=kind, is_throttled=throttled, attempts=attempts)
        )

    async def _outcome(self, run: Run, secrets: Secrets) -> tuple[str, Any]:
        job = run.job
        function = self._registry.find(job.function_name)
        if job.not_after is not None and self._clock.now() > job.not_after:
            raise Expired(f"the job was to be started by {job.not_after.isoformat()} and came later; it was not run")
        if not function.repeatable and is_repeated(run):
            raise OutcomeUnknown(
                f"{function.name} may have been done already, and is not to be done twice; look in the tenant",
                attempts=0,
            )
        given = await self._with_secrets(job.parameters, secrets)
        self._conceal(secrets, function.secret_values(given))
        arguments = function.arguments(given)
        if function.takes_context:
            arguments["ctx"] = self._context(run, function, secrets)
        if function.is_coroutine:
            returned = await function.code(**arguments)
        else:
            returned = await self._in_thread(run, partial(function.code, **arguments))
        return shaped(returned)

    async def _with_secrets(self, given: Mapping[str, Any], secrets: Secrets) -> Mapping[str, Any]:
        names = {name for value in given.values() for name in references(value)}
        if not names:
            return given
        found: dict[str, str] = {}
        for name in sorted(names):
            found[name] = await self._services.secrets.resolve(name)
            self._conceal(secrets, [found[name]])
        filled: Mapping[str, Any] = filled_in(dict(given), found)
        return filled

    async def _in_thread(self, run: Run, call: Callable[[], Any]) -> Any:
        # What is written in the thread is about the job as well.
        run.thread = self._threads.submit(copy_context().run, _caught, call)
        returned, error = await asyncio.wrap_future(run.thread)
        if error is not None:
            raise error
        return returned

    def _context(self, run: Run, function: Function, secrets: Secrets) -> FunctionContext:
        job, services = run.job, self._services
        run.cancelled = Event()
        return FunctionContext(
            graph=services.graph,
            exchange=services.exchange,
            secrets=_Noted(services.secrets, partial(self._conceal, secrets)),
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=self._worker_id or job.worker_id,
            function_name=function.name,
            idempotency_key=job.idempotency_key,
            first_dispatched_at=job.first_dispatched_at,
            attempt=attempt_of(job),
            deliveries=run.message.delivery_count,
            deadline=self._clock.now() + timedelta(seconds=run.deadline - run.started),
            clock=self._clock,
            sleep=services.sleep,
            job_logger=JobLogger(job.job_id, partial(self._blanked, secrets=secrets)),
            conceal=lambda value: self._conceal(secrets, [value]),
            cancelled=run.cancelled,
        )

    def _conceal(self, secrets: Secrets, values: Any) -> None:
        found = list(values)
        if found:
            secrets.add(found)
            self._concealer.add(found)

    def _blanked(self, text: str, secrets: Secrets) -> str:
        return self._concealer.own.out_of_text(secrets.out_of_text(text))

    def _answer(
        self,
        run: Run,
        secrets: Secrets,
        *,
        result_type: str | None = None,
        value: Any = None,
        error: WorkerError | None = None,
    ) -> None:
        job = run.job
        if not isinstance(value, bool) and value is not None:
            for each in (secrets, self._concealer.own):
                if each:
                    value = each.out_of(value)
        result = WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=job.worker_id or self._worker_id,
            function_name=job.function_name[:_LONGEST_NAME],
            status="success" if error is None else "failure",
            result_type=result_type,
            result=value,
            error=error,
            duration_ms=max(0, round((asyncio.get_running_loop().time() - run.started) * 1000)),
            timestamp=self._clock.now(),
            traceparent=job.traceparent if run.span is None else run.span.traceparent or UNSET,
            correlation_data=job.correlation_data,
        )
        try:
            outgoing = self._outgoing(result)
            check(self._topic, outgoing)
        except (BusError, msgspec.MsgspecError, ValueError) as refused:
            if isinstance(error, WorkerError) and error.type == ResultRefused.__name__:
                raise
            self.refuse(run, ResultRefused(f"the function was run, and its result cannot be sent: {refused}"), secrets)
        else:
            run.answer = outgoing
            if self._telemetry.is_on:
                self._tell(run, result)

    def _tell(self, run: Run, result: WorkerResult) -> None:
        """The job, measured; its errors by their type, as what they say may be about people."""
        function, worker = self._known(result.function_name), result.worker_id
        seconds = result.duration_ms / 1000
        self._telemetry.took(JOB, seconds, worker=worker, function=function, status=result.status)
        error = None if result.error is None else result.error.type
        if error is not None:
            self._telemetry.count(JOBS_FAILED, 1, worker=worker, function=function, error=error)
        if run.span is not None:
            run.span.end(labels={"Status": result.status}, error=error)
            run.span = None

    def _known(self, name: str) -> str:
        """A function's name as it is registered: anybody may ask for any other, and each would be counted alone."""
        try:
            return self._registry.find(name).name
        except FunctionNotAllowed:
            return "unknown"

    def _outgoing(self, result: WorkerResult) -> Outgoing:
        return Outgoing(
            body=encode(result),
            properties={
                "WorkerId": result.worker_id,
                "JobId": result.job_id,
                "BatchId": str(result.batch_id),
                "Status": result.status,
            },
            message_id=f"result-{result.job_id}" if self._named else None,
        )


def is_repeated(run: Run) -> bool:
    """Whether the same may have been done before: by an earlier attempt, or by a worker that never answered."""
    job = run.job
    return run.message.delivery_count > 1 or (bool(job.idempotency_key) and job.idempotency_key != job.job_id)


def attempt_of(job: WorkerJob) -> int:
    """Which attempt a job is, by its id."""
    found = _RETRY.search(job.job_id)
    return int(found[1]) + 1 if found else 1


class _Noted:
    """Looks up secrets for a function, and has each of them concealed."""

    def __init__(self, secrets: SecretResolver, conceal: Callable[[list[str]], None]) -> None:
        self._secrets = secrets
        self._conceal = conceal

    async def resolve(self, name: str) -> str:
        value = await self._secrets.resolve(name)
        self._conceal([value])
        return value


def _caught(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Not every exception can be handed from a thread to a coroutine: `StopIteration` cannot."""
    try:
        return call(), None
    except BaseException as error:  # noqa: BLE001 - whatever a function raises is its result
        if isinstance(error, StopIteration | StopAsyncIteration):
            return None, FunctionError("the function stopped an iteration that nobody began", type=type(error).__name__)
        return None, error


def _message(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - a customer's exception may fail at saying what it is
        return type(error).__name__


def timed_out(run: Run) -> TimedOut:
    """What is answered to a job whose time is over."""
    seconds = run.deadline - run.started
    return TimedOut(f"the function was still running after {seconds:g} seconds, which is all the time it has")


def unreadable(reason: str) -> ValidationError:
    """What is answered to a job that cannot be read."""
    return ValidationError(f"the job cannot be read: {reason}")
