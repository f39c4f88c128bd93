"""What a part may tell, in its own words; and `SILENT`, which hears it all and keeps nothing.

Whatever would cost something for each message or job is asked for only where `is_on` says that somebody listens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from matoolkit.telemetry.metrics import Metric

    Labels = Mapping[str, str | int]


class Reading(NamedTuple):
    """How something is now."""

    value: float
    labels: Mapping[str, str | int] = {}


class Span(Protocol):
    """Something that goes on, in a trace."""

    @property
    def traceparent(self) -> str | None:
        """Where it is, in W3C's form, for the messages that follow from it."""

    def enter(self) -> None:
        """What this task tells from now on, and the threads it begins, belongs to it."""

    def end(self, *, labels: Labels | None = None, error: str | None = None) -> None:
        """It is over; with an error, it failed."""


class Trail(Protocol):
    """The handling of a set of messages, in the traces of all of them."""

    def follow(self, caused_by: str | None, origin: str) -> str | None:
        """Where to a message belongs that is sent now: the trace of its cause, else the one that `origin` begins."""

    def end(self, *, error: str | None = None) -> None:
        """It is over; with an error, it failed."""


class Telemetry(Protocol):
    """Listens."""

    @property
    def is_on(self) -> bool:
        """Whether anybody does."""

    def trace_of(self, origin: str) -> str | None:
        """Where the trace of an origin begins. From the same origin follow the same ids, in every process."""

    def begin(self, name: str, origin: str, labels: Labels) -> None:
        """The trace of an origin begins now."""

    def handling(self, name: str, causes: Sequence[str], labels: Labels) -> Trail:
        """A set of messages is being handled; `causes` are where they come from."""

    def span(self, name: str, cause: str | None, labels: Labels) -> Span:
        """Something begins that a message asked for."""

    def count(self, metric: Metric, amount: int = 1, **labels: str | int) -> None:
        """So much more of it."""

    def took(self, metric: Metric, seconds: float, **labels: str | int) -> None:
        """It went on for so long."""

    def watch(self, look: Callable[[], Iterable[tuple[Metric, Reading]]], *metrics: Metric) -> None:
        """Have levels looked at whenever they are wanted: all of these metrics in one look."""

    def close(self) -> None:
        """Send what is left."""


class _Quiet:
    """A span, or a trail, that nobody sees."""

    traceparent = None

    def follow(self, caused_by: str | None, origin: str) -> str | None:  # noqa: ARG002 - the port's signature
        return caused_by

    def enter(self) -> None: ...
    def end(self, *, labels: Labels | None = None, error: str | None = None) -> None: ...


QUIET: Final = _Quiet()


class Silent:
    """Nobody listens."""

    is_on = False

    def trace_of(self, origin: str) -> str | None:
        """No trace."""

    def begin(self, name: str, origin: str, labels: Labels) -> None:
        """Begin nothing."""

    def handling(self, name: str, causes: Sequence[str], labels: Labels) -> Trail:  # noqa: ARG002 - the port's
        """Follow nothing; what messages say is passed on."""
        return QUIET

    def span(self, name: str, cause: str | None, labels: Labels) -> Span:  # noqa: ARG002 - the port's
        """Show nothing."""
        return QUIET

    def count(self, metric: Metric, amount: int = 1, **labels: str | int) -> None:
        """Count nothing."""

    def took(self, metric: Metric, seconds: float, **labels: str | int) -> None:
        """Keep no time."""

    def watch(self, look: Callable[[], Iterable[tuple[Metric, Reading]]], *metrics: Metric) -> None:
        """Never look."""

    def close(self) -> None:
        """Nothing is left."""


SILENT: Final[Telemetry] = Silent()
