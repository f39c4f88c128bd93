"""The loop: look, tell what has changed, wait, until the batch ends; a server that is away is waited for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from matoolkit.cli.client import ClientError, DoesNotFit, Refused
from matoolkit.cli.watch.changes import changes
from matoolkit.cli.watch.looking import Observer
from matoolkit.cli.watch.pace import Pace, done

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from matoolkit.cli.client import ApiClient
    from matoolkit.cli.watch.changes import Change
    from matoolkit.cli.watch.looking import Look
    from matoolkit.clock import Clock

_LONGEST_PAUSE = 15.0
_TIMES_AS_LONG = 4.0
"""A look that takes long is followed by a pause that is longer still: following a batch must not slow it down."""
_BEAT = 1.0
_ADVANCES_REFUSED = 30


class Teller(Protocol):
    """Shows what happens to whoever follows the batch."""

    def change(self, change: Change, now: datetime) -> None:
        """Something is different."""
        ...

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        """This is how it is."""
        ...


@dataclass
class Following:
    """Follows one batch, and takes it on where that is wanted."""

    client: ApiClient
    batch_id: int
    teller: Teller
    clock: Clock
    sleep: Callable[[float], None]
    seconds: Callable[[], float]
    every: float
    advancing: bool = False
    _pace: Pace = field(default_factory=Pace)
    _look: Look | None = None
    _away: int = 0
    _refused: int = 0

    def to_the_end(self) -> Look:
        """Until the batch has ended; what is wrong at the first look is an error, later it is waited for."""
        observer = Observer(self.client, self.batch_id)
        while True:
            began = self.seconds()
            try:
                look = observer.look()
                self._back()
                self._take_in(look)
                if look.is_over:
                    return look
                if self.advancing:
                    self._advance(look)
            except ClientError as error:
                if self._look is None or not error.retryable:
                    raise
                self._gone(error)
            self._pause(max(self.every, (self.seconds() - began) * _TIMES_AS_LONG))

    def _take_in(self, look: Look) -> None:
        self._pace.note(self.seconds(), done(look.steps))
        for change in changes(self._look, look):
            if change["event"] == "steps":
                change["perMinute"] = None if self._pace.per_minute is None else round(self._pace.per_minute, 1)
            self._tell(change)
        self._look = look
        self._draw()

    def _advance(self, look: Look) -> None:
        if not look.batch["isManual"]:
            raise DoesNotFit(409, f"batch {self.batch_id} was not made by hand: it goes on by itself, `batch watch` it")
        if not look.is_waiting_for_an_advance:
            return
        try:
            answer = self.client.advance_batch(self.batch_id)
        except Refused as error:
            # Things have moved on since the look, or the last steps are just being written.
            self._refused += 1
            if error.status not in {400, 409} or self._refused > _ADVANCES_REFUSED:
                raise
            return
        self._refused = 0
        self._tell({"event": "advanced", "answer": answer})

    def _gone(self, error: ClientError) -> None:
        if not self._away:
            self._tell({"event": "server-away", "error": error.brief})
        self._away += 1
        self._draw()

    def _back(self) -> None:
        if self._away:
            self._away = 0
            self._tell({"event": "server-back"})

    def _pause(self, seconds: float) -> None:
        remaining = min(seconds, _LONGEST_PAUSE)
        while remaining > 0:
            self.sleep(min(_BEAT, remaining))
            remaining -= _BEAT
            self._draw()

    def _tell(self, change: Change) -> None:
        self.teller.change({"at": self.clock.now().isoformat().replace("+00:00", "Z"), **change}, self.clock.now())

    def _draw(self) -> None:
        # How fast it was says nothing about a server that cannot be asked.
        self.teller.draw(self._look, None if self._away else self._pace.per_minute, self.clock.now())
