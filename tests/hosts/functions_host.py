"""What the host of Azure Functions does with a function app: reads its bindings, and calls it.

It follows `host.json` and the bindings and nothing else: Service Bus is received from with the real SDK, messages are
made by the library's own converters, all of a call are completed when it returns and abandoned when it fails; timers
go by their schedule; HTTP is real.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import typing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from azure.functions import meta
from azure.servicebus import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

import matoolkit.hosts.azure_functions as package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import azure.functions as func
    from azure.servicebus import ServiceBusReceivedMessage, ServiceBusReceiver

log = logging.getLogger(__name__)

HOST_JSON = json.loads((Path(package.__file__).parent / "host.json").read_text())
_LOOKS_SECONDS = 0.2


class _Function(NamedTuple):
    name: str
    call: Callable[..., Any]
    binding: dict[str, Any]
    converter: Any


class FunctionsHost:
    """Calls the functions of one app; `timer_scale` makes its timers go faster."""

    def __init__(self, app: func.FunctionApp, settings: Mapping[str, str], *, timer_scale: float = 1.0) -> None:
        self.failures: list[BaseException] = []
        self.calls: dict[str, int] = {}
        self.batches: list[int] = []
        """How many messages each call was handed."""
        self.port = 0
        self._settings, self._timer_scale = settings, timer_scale
        self._ending = Event()
        self._threads: list[Thread] = []
        self._server: ThreadingHTTPServer | None = None
        # To be asked once: the library takes a second time for a second registration.
        for each in app.get_functions():
            self._begin(each)

    def stop(self) -> None:
        """End after the calls under way."""
        self._ending.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), f"{thread.name} does not end"

    def _begin(self, function: Any) -> None:
        (binding,) = (
            each for each in json.loads(function.get_function_json())["bindings"] if "Trigger" in each["type"]
        )
        found = _Function(
            function.get_function_name(), function.get_user_function(), binding, converter(binding["type"])
        )
        hint = typing.get_type_hints(found.call)[binding["name"]]
        assert found.converter.check_input_type_annotation(hint), f"{found.name}: {hint} is not taken"
        serve: dict[str, Callable[[_Function], None]] = {
            "timerTrigger": self._go_by_time,
            "serviceBusTrigger": self._receive,
            "httpTrigger": self._listen,
        }
        if binding["type"] == "httpTrigger":
            self._open(found)
        thread = Thread(target=serve[binding["type"]], args=(found,), name=found.name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _called(self, function: _Function, given: object) -> bool:
        """Whether it returned."""
        self.calls[function.name] = self.calls.get(function.name, 0) + 1
        try:
            function.call(**{function.binding["name"]: given})
        except Exception as error:  # noqa: BLE001 - as the host: told, and called again
            log.warning("%s failed: %r", function.name, error)
            self.failures.append(error)
            return False
        return True

    # Timers ----------------------------------------------------------------------------------------------------------

    def _go_by_time(self, function: _Function) -> None:
        seconds = period(function.binding["schedule"]) * self._timer_scale
        request = function.converter.decode(meta.Datum('{"IsPastDue": false}', "json"), trigger_metadata={})
        while not self._ending.wait(seconds):
            self._called(function, request)

    # Service Bus -----------------------------------------------------------------------------------------------------

    def _receive(self, function: _Function) -> None:
        binding = function.binding
        assert binding["cardinality"] == "MANY"
        most = HOST_JSON["extensions"]["serviceBus"]["maxMessageBatchSize"]
        while not self._ending.is_set():
            try:
                with (
                    self._client(binding) as client,
                    client.get_subscription_receiver(
                        binding["topicName"], binding["subscriptionName"], socket_timeout=0.02
                    ) as receiver,
                ):
                    while not self._ending.is_set():
                        some = receiver.receive_messages(most, _LOOKS_SECONDS)
                        if some:
                            self._hand_over(function, receiver, some)
            except (ServiceBusError, OSError) as error:
                log.info("%s: Service Bus is away: %s", function.name, error)
                self._ending.wait(_LOOKS_SECONDS)

    def _hand_over(
        self, function: _Function, receiver: ServiceBusReceiver, some: list[ServiceBusReceivedMessage]
    ) -> None:
        self.batches.append(len(some))
        data, metadata = as_the_host_sends_it(some)
        messages = function.converter.decode(data, trigger_metadata=metadata)
        assert len(messages) == len(some)
        returned = self._called(function, messages)
        for each in some:
            if returned:
                receiver.complete_message(each)
            else:
                receiver.abandon_message(each)

    def _client(self, binding: dict[str, Any]) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(
            self._settings[binding["connection"]], retry_total=1, retry_backoff_factor=0.05
        )

    # HTTP ------------------------------------------------------------------------------------------------------------

    def _listen(self, _: _Function) -> None:
        assert self._server is not None
        self._server.serve_forever(0.05)

    def _open(self, function: _Function) -> None:
        assert function.binding["route"].strip("/") == "{*route}"
        assert HOST_JSON["extensions"]["http"]["routePrefix"] == ""
        host = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                data = _http(self, self.rfile.read(length), host.port)
                request = function.converter.decode(data, trigger_metadata={})
                context = SimpleNamespace(function_name="api", invocation_id="1", trace_context=None)
                answer = asyncio.run(function.call(**{function.binding["name"]: request, "context": context}))
                value = converter("http").encode(answer, expected_type=None).value
                body = value["body"].value
                self.send_response(int(value["status_code"].value))
                for header, datum in value["headers"].items():
                    if header.lower() != "content-length":
                        self.send_header(header, datum.value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815 - as http.server calls them

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port


def converter(kind: str) -> Any:
    """What the library registers for a kind of binding."""
    return meta._ConverterMeta._bindings[kind]


def period(schedule: str) -> float:
    """The seconds between two calls, of schedules as ours."""
    found = re.fullmatch(r"\*/(\d+) \* \* \* \* \*|0 \*/(\d+) \* \* \* \*", schedule)
    assert found, schedule
    return float(found[1]) if found[1] else float(found[2]) * 60


def as_the_host_sends_it(some: list[ServiceBusReceivedMessage]) -> tuple[meta.Datum, dict[str, meta.Datum]]:
    """Bodies and properties side by side, each kind of property in an array of its own."""

    def together(values: list[Any]) -> meta.Datum:
        return meta.Datum(json.dumps(values), "json")

    properties = [
        {_text(name): _text(value) for name, value in (each.application_properties or {}).items()} for each in some
    ]
    bodies = [b"".join(each.body) if not isinstance(each.body, bytes) else each.body for each in some]
    return meta.Datum(SimpleNamespace(bytes=bodies), "collection_bytes"), {
        "UserPropertiesArray": together(properties),
        "ApplicationPropertiesArray": together(properties),
        "MessageIdArray": together([each.message_id for each in some]),
        "SequenceNumberArray": together([each.sequence_number for each in some]),
        # The SDK of Python counts the deliveries before this one, that of the host this one as well.
        "DeliveryCountArray": together([(each.delivery_count or 0) + 1 for each in some]),
        "EnqueuedTimeUtcArray": together([f"{each.enqueued_time_utc:%Y-%m-%dT%H:%M:%S.%fZ}" for each in some]),
        "LockTokenArray": together([str(each.lock_token) for each in some]),
    }


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _http(handler: BaseHTTPRequestHandler, body: bytes, port: int) -> meta.Datum:
    def text(value: str) -> meta.Datum:
        return meta.Datum(value, "string")

    query = dict(parse_qsl(urlsplit(handler.path).query))
    return meta.Datum(
        {
            "method": text(handler.command),
            "url": text(f"http://127.0.0.1:{port}{handler.path}"),
            "headers": {name.lower(): text(value) for name, value in handler.headers.items()},
            "query": {name: text(value) for name, value in query.items()},
            "params": {"route": text(urlsplit(handler.path).path.lstrip("/"))},
            "body": meta.Datum(body, "bytes"),
        },
        "http",
    )
