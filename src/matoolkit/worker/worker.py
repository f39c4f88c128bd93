"""The job loop: as many jobs at a time as there are places, taken when a place is free, settled as they end.

Jobs that end together are reported, settled and followed by the next ones in one transaction. It takes what is there
and never waits to fill. Everything but the transactions happens in one thread, that of the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError
from matoolkit.messages import UnreadableMessage, decode_job, salvaged_job
from matoolkit.worker.gauge import Gauge
from matoolkit.worker.post import NO_RESULT, UNREADABLE, DeadJob, Parcel
from matoolkit.worker.running import timed_out, unreadable
from matoolkit.worker.runs import Ending, Held, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from typing import Any

    from matoolkit.bus import Received
    from matoolkit.worker.post import Post
    from matoolkit.worker.running import Runner

log = logging.getLogger(__name__)

LOOK_AGAIN = 30.0
"""Seconds after which it looks for jobs even if nobody told it to."""
BEAT = 0.25
"""Seconds between two looks at the time: of jobs, and of idleness."""
STUBBORN = 5.0
"""Seconds a function is given to end once it was cancelled; then it is reported and keeps its place until it ends."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_LAST_WORDS = 0.5
"""Seconds that cancelled functions get before the worker ends."""
_AT_ONCE = 3.0
"""Seconds for giving everything back when it is told to end at once."""
_LONGEST_MARGIN, _MARGIN = 5.0, 0.3
"""What is kept of the grace period for giving back what has not ended, in seconds at most and as a share of it."""


class Left(StrEnum):
    """Why a worker ended."""

    IDLE = "idle"
    STOPPED = "stopped"


class Worker:
    """Runs jobs until it is told to stop, or has been idle for long enough."""

    def __init__(
        self,
        post: Post,
        runner: Runner,
        clerk: Executor,
        *,
        parallelism: int = 2,
        idle_seconds: float = 0,
        grace_seconds: float = 30,
        look_again_seconds: float = LOOK_AGAIN,
    ) -> None:
        self.held = Held()
        self.gauge = Gauge(parallelism)
        self._post = post
        self._runner = runner
        self._clerk = clerk
        """Threads for the transactions and the waiting: two."""
        self._parallelism = parallelism
        self._idle_seconds = idle_seconds
        self._grace_seconds = grace_seconds
        self._look_again = look_again_seconds
        self._places: set[Run] = set()
        """Runs whose functions have not ended, reported or not."""
        self._parcel = Parcel()
        self._under_way: set[int] = set()
        """Messages that are being settled, by sequence."""
        self._turn = asyncio.Event()
        """Something has happened that the loop may have to act on."""
        self._left: Left | None = None
        self._until = self._at_last = float("inf")
        """By when jobs have to have ended, and by when everything has."""
        self._active_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[Left] | None = None
        self._stops = 0

    # From other threads ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take no more jobs, and end when those that run have ended; told again, end at once. From any thread."""
        self._stops += 1
        self._tell(self._stop)

    def lost(self, messages: Sequence[Received]) -> None:
        """The locks of these are lost. From any thread."""
        self._tell(self._drop, messages)

    def _tell(self, action: Callable[..., object], *arguments: object) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and nothing is to be told any more
                loop.call_soon_threadsafe(action, *arguments)

    # The loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> Left:
        """Work; why it ended."""
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.create_task(self._live())
        self._active_at = self._time()
        if self._stops:
            self._stop()
        beat = asyncio.create_task(self._beats())
        try:
            return await self._main
        except asyncio.CancelledError:
            if self._left is None:
                raise
            log.warning("the worker ends before everything is settled; what is left comes back when its locks expire")
            return self._left
        finally:
            beat.cancel()
            self._loop = None

    async def _live(self) -> Left:
        await self._work()
        await self._wind_up()
        return self._left or Left.STOPPED

    async def _work(self) -> None:
        more = True
        waiting: asyncio.Future[bool] | None = None
        while self._left is None:
            free = self._parallelism - len(self._places)
            if self._parcel or (free > 0 and more):
                received = await self._exchange(max(0, free))
                more = received is None or len(received) >= free
                continue
            if free > 0 and waiting is None:
                waiting = self._in_clerk(self._post.wait, self._look_again)
                waiting.add_done_callback(self._notice)
            await self._turn.wait()
            self._turn.clear()
            if waiting is not None and waiting.done():
                _quietly(waiting)
                waiting, more = None, True
        while waiting is not None and not waiting.done():
            # It may not have begun to wait when it was woken.
            self._post.wake()
            await asyncio.wait({waiting}, timeout=_SHORTEST_PAUSE)
        if waiting is not None:
            _quietly(waiting)

    async def _wind_up(self) -> None:
        """Wait for what runs, while there is time; then give the rest back."""
        while self._parcel or (self._places_held() and self._time() < self._until):
            if self._parcel:
                await self._exchange(0)
            else:
                await self._turn.wait()
                self._turn.clear()
        unfinished = self._places_held()
        for run in unfinished:
            run.end(Ending.GIVEN_BACK)
        if tasks := {run.task for run in unfinished if run.task is not None and not run.lingers}:
            await asyncio.wait(tasks, timeout=_LAST_WORDS)
        given_back = [run.message for run in unfinished if not run.reported and self.held.find(run.message) is run]
        self._parcel.given_back += given_back
        while self._parcel:
            await self._exchange(0)
        if given_back:
            log.info("%d jobs had not ended in time and were given back", len(given_back))

    async def _exchange(self, limit: int) -> Sequence[Received] | None:
        """Settle what has ended and take what comes next; None when that could not be done."""
        parcel, self._parcel = self._parcel, Parcel()
        self._under_way = {each.sequence for each in parcel.messages()}
        received: Sequence[Received]
        try:
            received = await self._in_clerk(self._post.exchange, parcel, limit)
        except Exception as error:
            self._parcel = parcel.followed_by(self._parcel)
            failures = self.gauge.bus_failed(str(error), self._time())
            pause = min(_SHORTEST_PAUSE * 2 ** min(failures - 1, 10), _LONGEST_PAUSE)
            if isinstance(error, MatoolkitError) and error.retryable:
                log.warning("the bus cannot be reached: %s; trying again in %.2f s", error, pause)
            else:
                log.exception("jobs could not be settled or taken; trying again in %.2f s", pause)
            await asyncio.sleep(pause)
            return None
        finally:
            self._under_way = set()
        self.gauge.bus_answered()
        if settled := parcel.messages():
            self.held.discard(settled)
        if settled or received:
            self._active_at = self._time()
        self._start(received)
        return received

    # Jobs --------------------------------------------------------------------------------------------------------

    def _start(self, received: Sequence[Received]) -> None:
        now, runs = self._time(), []
        for message in received:
            try:
                job = decode_job(message.body)
            except UnreadableMessage as error:
                self._refuse(message, str(error), now)
            else:
                runs.append(Run(message, job, now, now + max(0, job.timeout_seconds)))
        self.held.add(runs)
        self._places.update(runs)
        for run in runs:
            run.task = asyncio.create_task(self._perform(run))

    def _refuse(self, message: Received, why: str, now: float) -> None:
        """Answer a job that cannot be read, or set it aside when it does not even say where the answer belongs."""
        self._turn.set()
        job = salvaged_job(message.body, message.message_id)
        if job is None:
            self._parcel.dead.append(DeadJob(message, UNREADABLE, why))
            return
        run = Run(message, job, now, now)
        try:
            self._runner.refuse(run, unreadable(why))
        except Exception:
            # What it says of itself cannot be sent on. `_report` sets the job aside.
            log.exception("%.200s: no result could be made", job.job_id)
        self.held.add([run])
        self._report(run)

    async def _perform(self, run: Run) -> None:
        run.begun = True
        try:
            await self._runner.run(run)
        except BaseException:
            # No result is better than no worker: `_report` sets the job aside.
            log.exception("%.200s: no result could be made", run.job.job_id)
        self._report(run)
        if run.lingers and run.thread is not None:
            run.thread.add_done_callback(lambda _: self._tell(self._leave, run))
        else:
            self._leave(run)

    def _leave(self, run: Run) -> None:
        """Its place is free."""
        self._places.discard(run)
        self._turn.set()

    def _report(self, run: Run) -> None:
        """Have the result sent, once, unless it is another's to send."""
        if run.reported or run.ending is Ending.LOCK_LOST or (run.answer is None and run.ending is Ending.GIVEN_BACK):
            return
        run.reported = True
        if run.answer is None:
            self._parcel.dead.append(DeadJob(run.message, NO_RESULT, "no result could be made"))
        else:
            self.gauge.reported(run.answer)
            self._parcel.answered.append((run.message, run.answer))
        self._turn.set()

    def _drop(self, messages: Sequence[Received]) -> None:
        """Somebody else runs these now, or will: what comes of them here is nobody's business.

        What is being settled cannot be renewed once it has been; whether it was lost before, who settles it will hear.
        """
        messages = [each for each in messages if each.sequence not in self._under_way]
        for message in messages:
            run = self.held.find(message)
            if run is not None:
                log.warning("%s: its lock is lost; it is run again elsewhere and not reported here", run.job.job_id)
                run.end(Ending.LOCK_LOST)
        self.held.discard(messages)
        self._parcel = self._parcel.without(messages)

    def _places_held(self) -> list[Run]:
        """Runs that have reported nothing and are still this worker's."""
        return [run for run in self._places if not run.reported and run.ending is not Ending.LOCK_LOST]

    # Time --------------------------------------------------------------------------------------------------------

    async def _beats(self) -> None:
        while True:
            now = self._time()
            for run in self._places:
                if now >= run.deadline:
                    self._time_over(run, now)
            self.gauge.beat(now, len(self._places), sum(1 for run in self._places if run.reported))
            idle = not self._places and not self._parcel and not self.gauge.bus_failures
            if self._left is None and idle and 0 < self._idle_seconds <= now - self._active_at:
                self._left = Left.IDLE
                self._at_last = now + self._grace_seconds
            if self._left is not None:
                self._turn.set()
                if now >= self._at_last and self._main is not None:
                    self._main.cancel()
            await asyncio.sleep(BEAT)

    def _time_over(self, run: Run, now: float) -> None:
        run.end(Ending.TIMED_OUT)
        if not run.reported and run.ending is Ending.TIMED_OUT and now >= run.deadline + STUBBORN:
            # It does not let itself be cancelled. It keeps its place, as it goes on doing whatever it does.
            self._runner.refuse(run, timed_out(run))
            self._report(run)

    def _stop(self) -> None:
        now = self._time()
        self._left = self._left or Left.STOPPED
        if self._stops == 1:
            self._at_last = now + self._grace_seconds
            self._until = self._at_last - min(_LONGEST_MARGIN, self._grace_seconds * _MARGIN)
        else:
            self._until, self._at_last = now, min(self._at_last, now + _AT_ONCE)
        self.gauge.stopping = True
        self._turn.set()
        asyncio.get_running_loop().call_at(self._until, self._turn.set)

    def _time(self) -> float:
        return asyncio.get_running_loop().time() if self._loop is None else self._loop.time()

    def _notice(self, _: object) -> None:
        self._turn.set()

    def _in_clerk(self, call: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._clerk, call, *arguments)


def _quietly(waiting: asyncio.Future[bool]) -> None:
    """What went wrong with waiting goes wrong with taking as well, and is told there."""
    if (error := waiting.exception()) is not None:
        log.debug("waiting for jobs failed: %s", error)
