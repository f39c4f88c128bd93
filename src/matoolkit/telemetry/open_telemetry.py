"""What is told, in OpenTelemetry's terms. Only `starting` imports this, and only where somebody listens."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, local
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from matoolkit.telemetry.metrics import ALL, SET, Sort
from matoolkit.telemetry.traceparents import Place, derived, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.trace import TracerProvider

    from matoolkit.telemetry.metrics import Metric
    from matoolkit.telemetry.port import Reading

    Labels = Mapping[str, str | int]

log = logging.getLogger(__name__)

MOST_LINKS = 128
"""OpenTelemetry's own limit for a span."""
MOST_TRACES = 32
"""In more traces than these a set of messages is not shown."""
_NAME = "matoolkit"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""From a set that is handled at once to a job that takes all its time."""


class Ids(RandomIdGenerator):
    """Ids at random, but for a trace that begins at an origin."""

    def __init__(self) -> None:
        self._given = local()

    def generate_trace_id(self) -> int:
        """The trace's that begins, else a new one."""
        given: tuple[int, int] | None = getattr(self._given, "ids", None)
        return super().generate_trace_id() if given is None else given[0]

    def generate_span_id(self) -> int:
        """Its first span's, else a new one."""
        given: tuple[int, int] | None = getattr(self._given, "ids", None)
        return super().generate_span_id() if given is None else given[1]

    def begin(self, ids: tuple[int, int], start: Callable[[], trace.Span]) -> trace.Span:
        """Start a span under these ids."""
        self._given.ids = ids
        try:
            return start()
        finally:
            self._given.ids = None


class OpenTelemetry:
    """Tells OpenTelemetry's providers, which were made with an `Ids`."""

    is_on = True

    def __init__(self, tracers: TracerProvider, meter: Meter, ids: Ids, close: Callable[[], None]) -> None:
        self._provider = tracers
        self._tracer = tracers.get_tracer(_NAME)
        self._ids = ids
        self._close = close
        self._levels = Levels(meter)
        self._counters: dict[str, Any] = {
            each.name: meter.create_counter(each.name, each.unit, each.says) for each in ALL if each.sort is Sort.COUNT
        }
        self._times: dict[str, Any] = {
            each.name: meter.create_histogram(
                each.name, each.unit, each.says, explicit_bucket_boundaries_advisory=_SECONDS
            )
            for each in ALL
            if each.sort is Sort.TIMES
        }

    def trace_of(self, origin: str) -> str:
        """The ids follow from the origin; whether the trace is kept follows from its id, as samplers have it."""
        ids = derived(origin)
        decided = self._provider.sampler.should_sample(None, ids[0], "").decision
        return str(Place(*ids, decided is Decision.RECORD_AND_SAMPLE))

    def begin(self, name: str, origin: str, labels: Labels) -> None:
        """A span of no duration, under the ids that follow from its origin."""
        self._ids.begin(
            derived(origin),
            lambda: self._tracer.start_span(name, context=_nowhere(), kind=SpanKind.PRODUCER, attributes=labels),
        ).end()

    def handling(self, name: str, causes: Sequence[str], labels: Labels) -> SetTrail:
        """A span in each trace that one of the causes is in; all in one of their own when there is none."""
        by_trace: dict[int, list[Place]] = {}
        for place in sorted({place for place in map(read, causes) if place is not None}):
            by_trace.setdefault(place.trace, []).append(place)
        spans: dict[int, trace.Span] = {}
        for places in list(by_trace.values())[:MOST_TRACES]:
            first, *others = places
            links = [Link(_context(each)) for each in others[:MOST_LINKS]]
            spans[first.trace] = self._start(name, first, labels, SpanKind.CONSUMER, links)
        if not spans:
            span = self._start(name, None, labels, SpanKind.CONSUMER)
            spans[span.get_span_context().trace_id] = span
        return SetTrail(self, name, spans)

    def span(self, name: str, cause: str | None, labels: Labels) -> OneSpan:
        """A span in the trace of its cause."""
        return OneSpan(self._start(name, read(cause), labels, SpanKind.CONSUMER))

    def count(self, metric: Metric, amount: int = 1, **labels: str | int) -> None:
        """Add to a counter."""
        self._counters[metric.name].add(amount, labels)

    def took(self, metric: Metric, seconds: float, **labels: str | int) -> None:
        """Record into a histogram."""
        self._times[metric.name].record(seconds, labels)

    def watch(self, look: Callable[[], Iterable[tuple[Metric, Reading]]], *metrics: Metric) -> None:
        """Look when the metrics are read."""
        self._levels.add(look, metrics)

    def close(self) -> None:
        """Send what is left."""
        self._close()

    def _start(
        self, name: str, cause: Place | None, labels: Labels, kind: SpanKind, links: Sequence[Link] = ()
    ) -> trace.Span:
        where = _nowhere() if cause is None else trace.set_span_in_context(NonRecordingSpan(_context(cause)))
        return self._tracer.start_span(name, context=where, kind=kind, attributes=labels, links=links)


class OneSpan:
    """A span under way."""

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        """Where it is."""
        return _written(self._span.get_span_context())

    def enter(self) -> None:
        """Make it what the current task is about; tasks have a context of their own, so nobody has to leave."""
        context.attach(trace.set_span_in_context(self._span))

    def end(self, *, labels: Labels | None = None, error: str | None = None) -> None:
        """It is over."""
        if labels:
            self._span.set_attributes(labels)
        if error is not None:
            self._span.set_status(Status(StatusCode.ERROR, error))
        self._span.end()


class SetTrail:
    """The handling of a set: one span for each trace."""

    def __init__(self, telemetry: OpenTelemetry, name: str, spans: Mapping[int, trace.Span]) -> None:
        self._telemetry, self._name, self._began = telemetry, name, time.perf_counter()
        self._spans = spans
        self._places = {each: _written(span.get_span_context()) for each, span in spans.items()}
        self._derived: dict[str, str] = {}

    def follow(self, caused_by: str | None, origin: str) -> str | None:
        """Behind the span in the right trace, where there is one; else where that trace was last seen, or begins."""
        if caused_by is None:
            known = self._derived.get(origin)
            if known is None:
                known = self._derived[origin] = self._telemetry.trace_of(origin)
            caused_by = known
        place = read(caused_by)
        return caused_by if place is None else self._places.get(place.trace, caused_by)

    def end(self, *, error: str | None = None) -> None:
        """It is over."""
        self._telemetry.took(SET, time.perf_counter() - self._began, set=self._name)
        for span in self._spans.values():
            if error is not None:
                span.set_status(Status(StatusCode.ERROR, error))
            span.end()


@dataclass(slots=True)
class _Look:
    """One look, and for which metrics its last readings have not been asked for yet."""

    look: Callable[[], Iterable[tuple[Metric, Reading]]]
    metrics: Sequence[Metric]
    owed: set[Metric] = field(default_factory=set)
    readings: list[tuple[Metric, Reading]] = field(default_factory=list)

    def of(self, metric: Metric) -> Iterable[Observation]:
        if metric not in self.owed:
            self.owed = set(self.metrics)
            self.readings = []
            try:
                self.readings = list(self.look())
            except Exception as error:  # noqa: BLE001 - the database may be away, or anything else; it is looked again
                log.warning("levels could not be looked at: %s", error)
        self.owed.discard(metric)
        return [Observation(each.value, dict(each.labels)) for told, each in self.readings if told is metric]


class Levels:
    """OpenTelemetry asks for each level alone; looked at are those together that are read together."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._lock = Lock()
        self._looks: list[_Look] = []
        self._made: set[Metric] = set()

    def add(self, look: Callable[[], Iterable[tuple[Metric, Reading]]], metrics: Sequence[Metric]) -> None:
        """Take up a look, and make the instruments that there are not yet."""
        with self._lock:
            self._looks.append(_Look(look, metrics))
            new = [each for each in metrics if each not in self._made]
            self._made.update(new)
        for each in new:
            self._meter.create_observable_gauge(each.name, [partial(self._read, each)], each.unit, each.says)

    def _read(self, metric: Metric, _: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            return [found for each in self._looks if metric in each.metrics for found in each.of(metric)]


def _nowhere() -> Context:
    """A context that nothing of this thread is in."""
    return trace.set_span_in_context(trace.INVALID_SPAN)


def _context(place: Place) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if place.is_kept else TraceFlags.DEFAULT)
    return SpanContext(place.trace, place.span, is_remote=True, trace_flags=flags)


def _written(span: SpanContext) -> str:
    return str(Place(span.trace_id, span.span_id, span.trace_flags.sampled))
