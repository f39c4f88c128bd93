"""Somebody at the other end of the wire: takes OTLP over HTTP and Azure Monitor's own form, and keeps what came."""

from __future__ import annotations

import gzip
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

SECONDS = 30


class Collector:
    """Listens on this machine, for as long as the block lasts."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: set[str] = set()
        self.lines: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.envelopes: list[dict[str, Any]] = []
        """Of Azure Monitor."""
        self._came = Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = collector._take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(SECONDS)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what is to come."""
        with self._came:
            assert self._came.wait_for(condition, SECONDS), "it did not come"

    def _take(self, path: str, body: bytes) -> bytes:
        with self._came:
            answer = b""
            if path.endswith("/v1/traces"):
                traces = ExportTraceServiceRequest.FromString(body)
                for resource in traces.resource_spans:
                    self.resources.append(_plain(resource.resource.attributes))
                    self.spans += [span for scope in resource.scope_spans for span in scope.spans]
            elif path.endswith("/v1/metrics"):
                metrics = ExportMetricsServiceRequest.FromString(body)
                for each in metrics.resource_metrics:
                    self.metrics |= {metric.name for scope in each.scope_metrics for metric in scope.metrics}
            elif path.endswith("/v1/logs"):
                logs = ExportLogsServiceRequest.FromString(body)
                for part in logs.resource_logs:
                    self.lines += [line for scope in part.scope_logs for line in scope.log_records]
            else:
                found = json.loads(body)
                self.envelopes += found
                answer = json.dumps({"itemsReceived": len(found), "itemsAccepted": len(found), "errors": []}).encode()
            self._came.notify_all()
            return answer


def labels(told: Any) -> dict[str, Any]:
    """The attributes of a span or a line."""
    return _plain(told.attributes)


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "string_value") for each in attributes}
