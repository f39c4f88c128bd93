"""OpenTelemetry's providers and what sends for them. Only `starting` imports this."""

from __future__ import annotations

import logging
import time
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import get_current
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from matoolkit.telemetry.log_lines import fields_of, told_by
from matoolkit.telemetry.open_telemetry import Ids, OpenTelemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace.export import SpanExporter

_NOT_SENT = ("opentelemetry", "azure", "urllib3", "requests", "msal")
"""Who sends must not send what it says about sending."""
_LAST_SECONDS = 5.0
"""For sending what is left: a process must not hang on somebody who does not listen."""
_SEVERITIES = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
)


class Exporters(NamedTuple):
    """What sends to one place."""

    spans: SpanExporter
    metrics: MetricExporter
    lines: LogRecordExporter


def azure_monitor(connection_string: str) -> Exporters:
    """To Application Insights. Nothing is kept on disk, where it would lie open and a container has no place for it."""
    from azure.monitor.opentelemetry.exporter import (
        AzureMonitorLogExporter,
        AzureMonitorMetricExporter,
        AzureMonitorTraceExporter,
    )

    how: dict[str, Any] = {"connection_string": connection_string, "disable_offline_storage": True}
    return Exporters(
        AzureMonitorTraceExporter(**how), AzureMonitorMetricExporter(**how), AzureMonitorLogExporter(**how)
    )


def otlp(endpoint: str) -> Exporters:
    """By OTLP over HTTP; headers, certificates and time limits are as OpenTelemetry's own variables say."""
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if not endpoint.startswith(("http://", "https://")):
        raise ValueError("it must begin with http:// or https://")
    base = endpoint.rstrip("/")
    return Exporters(
        OTLPSpanExporter(endpoint=f"{base}/v1/traces"),
        OTLPMetricExporter(endpoint=f"{base}/v1/metrics"),
        OTLPLogExporter(endpoint=f"{base}/v1/logs"),
    )


def begin(
    exporters: Sequence[Exporters], about: Mapping[str, Any], conceal: Callable[[str], str], *, with_log: bool
) -> OpenTelemetry:
    """Make the providers, and have the log told as well."""
    resource, ids = Resource.create(about), Ids()
    tracers = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    for each in exporters:
        tracers.add_span_processor(BatchSpanProcessor(each.spans))
    readers = [PeriodicExportingMetricReader(each.metrics) for each in exporters]
    meters = MeterProvider(readers, resource, shutdown_on_exit=False)
    lines = LoggerProvider(resource, shutdown_on_exit=False)
    for each in exporters:
        lines.add_log_record_processor(BatchLogRecordProcessor(each.lines))
    teller = LineTeller(lines, conceal) if with_log else None
    if teller is not None:
        logging.getLogger().addHandler(teller)

    def close() -> None:
        if teller is not None:
            logging.getLogger().removeHandler(teller)
        ending = [Thread(target=each.shutdown, daemon=True) for each in (tracers, meters, lines)]
        for thread in ending:
            thread.start()
        ends = time.monotonic() + _LAST_SECONDS
        for thread in ending:
            thread.join(max(0.0, ends - time.monotonic()))

    return OpenTelemetry(tracers, meters.get_meter("matoolkit"), ids, close)


class LineTeller(logging.Handler):
    """Tells lines of the log, concealed as on the terminal, in the trace they belong to."""

    def __init__(self, lines: LoggerProvider, conceal: Callable[[str], str]) -> None:
        super().__init__()
        self._logger = lines.get_logger("matoolkit")
        self._conceal = conceal

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one."""
        if record.name.partition(".")[0] in _NOT_SENT:
            return
        try:
            message, exception = told_by(record)
            attributes: dict[str, Any] = {name: self._safe(value) for name, value in fields_of(record).items()}
            attributes["logger"] = record.name
            if exception:
                attributes["exception.stacktrace"] = self._conceal(exception)
            line = LogRecord(
                timestamp=int(record.created * 1e9),
                context=get_current(),
                severity_text=record.levelname,
                severity_number=_severity(record.levelno),
                body=self._conceal(message),
                attributes=attributes,
            )
            self._logger.emit(line)
        except Exception:  # noqa: BLE001 - a line that cannot be told must not stop who wrote it
            self.handleError(record)

    def _safe(self, value: str | int) -> str | int:
        return self._conceal(value) if isinstance(value, str) else value


def _severity(level: int) -> SeverityNumber:
    return next((severity for least, severity in _SEVERITIES if level >= least), SeverityNumber.DEBUG)
