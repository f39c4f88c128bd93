"""Begins telling: to Azure Monitor, or to whatever takes OTLP, as the environment says. Without a word of it, nobody.

OpenTelemetry's packages are loaded here and nowhere before; without them a process says what is missing, and works.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, Final

from matoolkit.errors import MatoolkitError
from matoolkit.telemetry.port import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.telemetry.port import Telemetry

log = logging.getLogger(__name__)

AZURE_MONITOR: Final = "APPLICATIONINSIGHTS_CONNECTION_STRING"
OTLP: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_SPANS_WAITING: Final = "20000"
"""A busy worker ends some thousands of spans in the five seconds between two parcels of them."""
_NEVER_ASKED_FOR: Final = (
    "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL",
    "APPLICATIONINSIGHTS_SDKSTATS_DISABLED",
    "APPLICATIONINSIGHTS_CONTROLPLANE_DISABLED",
)
"""What Microsoft's exporter would tell Microsoft of itself, and ask there: a private network has no way for it."""


class TelemetryUnusable(MatoolkitError):
    """What the environment says of telemetry cannot be used."""


def begin_telemetry(
    environment: Mapping[str, str],
    service: str,
    *,
    instance: str,
    version: str,
    conceal: Callable[[str], str] = str,
    with_log: bool = True,
) -> Telemetry:
    """Begin, if anybody is to be told; `with_log` sends the log there too, each line through `conceal`."""
    named = [name for name in (AZURE_MONITOR, OTLP) if environment.get(name, "").strip()]
    if not named:
        return SILENT
    for name in _NEVER_ASKED_FOR:
        os.environ.setdefault(name, "true")
    os.environ.setdefault("OTEL_BSP_MAX_QUEUE_SIZE", _SPANS_WAITING)
    try:
        from matoolkit.telemetry import exporting
    except ModuleNotFoundError as error:
        log.warning(
            "%s is set, and nothing is told there: the Python package %s is missing; install matoolkit[telemetry]",
            " and ".join(named),
            error.name,
        )
        return SILENT
    about: dict[str, Any] = {
        "service.name": environment.get("OTEL_SERVICE_NAME", "").strip() or f"matoolkit-{service}",
        "service.namespace": "matoolkit",
        "service.instance.id": instance,
        "service.version": version,
    }
    exporters = []
    for name in named:
        make = exporting.azure_monitor if name == AZURE_MONITOR else exporting.otlp
        try:
            exporters.append(make(environment[name].strip()))
        except ModuleNotFoundError as error:
            log.warning("%s is set, and %s is missing; install matoolkit[telemetry]", name, error.name)
        except ValueError as error:
            # It holds a key, so it is not quoted; nor is what its reader says of it.
            raise TelemetryUnusable(f"{name} is not right: {_safely(error, environment[name])}") from None
    if not exporters:
        return SILENT
    telemetry = exporting.begin(exporters, about, conceal, with_log=with_log)
    log.info("traces and metrics%s go to %s", ", and the log," if with_log else "", " and ".join(named))
    return telemetry


def _safely(error: ValueError, secret: str) -> str:
    told = str(error)
    parts = [secret, *(part.partition("=")[2] for part in secret.split(";"))]
    return "it cannot be read" if any(part and part in told for part in parts) else told
