"""What data sources are handed by a running scheduler: the machine's time, threads for alarms, and sign-in."""

from __future__ import annotations

import time
from threading import Timer
from typing import TYPE_CHECKING, Any

from matoolkit.scheduler.sources import SourceSettings
from matoolkit.scheduler.sources.tokens import EntraTokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def source_settings(environment: Mapping[str, str], **changes: Any) -> SourceSettings:
    """Settings for the sources of this process; `changes` are other fields of theirs."""
    return SourceSettings(
        **{
            "environment": environment,
            "monotonic": time.monotonic,
            "sleep": time.sleep,
            "alarm": alarm,
            "tokens": EntraTokens(),
            **changes,
        }
    )


def alarm(seconds: float, action: Callable[[], None]) -> Callable[[], None]:
    """Have an action done on a thread of its own once so many seconds have passed, unless it is called off."""
    timer = Timer(seconds, action)
    timer.name = "source-alarm"
    timer.daemon = True
    timer.start()
    return timer.cancel
