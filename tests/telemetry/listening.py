"""Somebody who listens: OpenTelemetry's own providers, which keep in memory what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from matoolkit.telemetry.open_telemetry import Ids, OpenTelemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.sampling import Sampler

    from matoolkit.telemetry import Metric


class Listening:
    """What was told, to be asked for."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        ids = Ids()
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider(sampler=sampler, id_generator=ids, shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.telemetry = OpenTelemetry(tracers, self._meters.get_meter("matoolkit"), ids, lambda: None)

    def spans(self, name: str = "", **labels: Any) -> list[ReadableSpan]:
        """Those that have ended, whose names begin like this and that bear these labels."""
        return [
            each
            for each in self._spans.get_finished_spans()
            if each.name.startswith(name) and labels.items() <= dict(each.attributes or {}).items()
        ]

    def readings(self, metric: Metric) -> dict[tuple[Any, ...], Any]:
        """What a metric came to, by the values of its labels, in the order of their names."""
        data = self._reader.get_metrics_data()
        found: dict[tuple[Any, ...], Any] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for each in scope.metrics:
                    if each.name == metric.name:
                        for point in each.data.data_points:
                            labels = tuple(value for _, value in sorted(dict(point.attributes or {}).items()))
                            found[labels] = point.value if hasattr(point, "value") else point.count
        return found


def trace_of(span: ReadableSpan) -> int:
    """Which trace it is in."""
    return int(span.context.trace_id)


def traceparent_of(span: ReadableSpan) -> str:
    """Where it is, as a message says it."""
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
