"""The limits of one reading: how long it may take and how many rows it may give."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from matoolkit.scheduler.sources.errors import RowCapExceeded, SourceError, TimeLimitExceeded
from matoolkit.scheduler.sources.port import Chunk
from matoolkit.scheduler.sources.values import plain_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from matoolkit.scheduler.sources.settings import SourceSettings


class Watch:
    """Keeps one reading within its limits, from the moment it is made."""

    def __init__(self, settings: SourceSettings, place: str) -> None:
        self.place = place
        self._settings = settings
        self._until = settings.monotonic() + settings.time_limit_seconds
        self._rows = 0
        self._rung = False

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self._rung or self._settings.monotonic() >= self._until

    def remaining(self) -> float:
        """How many seconds are left; it is an error when there are none."""
        if self.over:
            raise self.too_long()
        return max(self._until - self._settings.monotonic(), 0.001)

    def grace(self, seconds: float) -> Callable[[], float]:
        """What counts down a little time to end things in, whether or not the time is up."""
        until = self._settings.monotonic() + seconds

        def left() -> float:
            remaining = until - self._settings.monotonic()
            if remaining <= 0:
                raise self.too_long()
            return remaining

        return left

    def count(self, rows: int) -> None:
        """Note rows that came; it is an error when there are too many of them."""
        self._rows += rows
        self.expect(self._rows)

    def expect(self, rows: int, *, cut_off: bool = False) -> None:
        """Say how many rows there will be; it is an error when those are too many, or not all there are."""
        if cut_off or rows > self._settings.row_cap:
            raise RowCapExceeded(
                f"{self.place} returns more than {self._settings.row_cap} rows, the most a query may: have the query"
                " select fewer people"
            )

    def cut(self, columns: Sequence[str], parts: Iterable[list[tuple[Any, ...]]]) -> Generator[Chunk]:
        """Chunks of parts that hold plain values, however large those are; one in any case."""
        named = tuple(columns)
        first = True
        for part in parts:
            self.count(len(part))
            for start in range(0, len(part), self._settings.chunk_rows):
                self.remaining()
                yield Chunk(named, part[start : start + self._settings.chunk_rows])
                first = False
        if first:
            yield Chunk(named, [])

    def chunks(self, columns: Sequence[str], fetch: Callable[[int], Iterable[Iterable[Any]]]) -> Generator[Chunk]:
        """Chunks of what is fetched so many rows at a time, until there are none; the first comes in any case."""
        named = tuple(columns)
        first = True
        while True:
            self.remaining()
            rows = plain_rows(fetch(self._settings.chunk_rows))
            self.count(len(rows))
            if rows or first:
                yield Chunk(named, rows)
            if not rows:
                return
            first = False

    @contextmanager
    def interrupting(self, action: Callable[[], None]) -> Iterator[None]:
        """A block in which the action is done, on another thread, when the time is up: it makes the block fail.

        What fails after that failed because of it.
        """

        def ring() -> None:
            self._rung = True
            # The reading may have ended a moment ago, and what was to be interrupted may be closed.
            with suppress(Exception):
                action()

        call_off = self._settings.alarm(self.remaining(), ring)
        try:
            yield
        except SourceError:
            raise
        except Exception as error:
            if self._rung:
                raise self.too_long() from error
            raise
        finally:
            call_off()

    def too_long(self) -> TimeLimitExceeded:
        """The error that says so."""
        return TimeLimitExceeded(
            f"{self.place} took longer than {self._settings.time_limit_seconds:g} seconds, the time limit of a query:"
            " it is asked again at the next tick"
        )


def first_line(error: object, otherwise: str = "") -> str:
    """What a driver says, without what follows: statements, parameters and advice."""
    lines = (line.strip() for line in str(error).splitlines())
    return next(filter(None, lines), otherwise or type(error).__name__)[:500]
