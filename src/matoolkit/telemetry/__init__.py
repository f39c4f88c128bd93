"""What the parts tell about themselves: counts, times and traces, to whoever listens; usually to nobody.

Parts know `Telemetry` and the names in `metrics`, and nothing of OpenTelemetry, which `starting.begin_telemetry` loads
where the environment names somebody who wants to know.
"""

from __future__ import annotations

from matoolkit.telemetry.metrics import ALL, Metric, Sort
from matoolkit.telemetry.port import SILENT, Reading, Span, Telemetry, Trail

__all__ = ["ALL", "SILENT", "Metric", "Reading", "Sort", "Span", "Telemetry", "Trail"]
