"""The log of a process: lines on standard error, with the time of everywhere."""

from __future__ import annotations

import logging
import time

from matoolkit.settings import defaulted, matching

_LAYOUT = "%(asctime)s %(levelname)-7s %(message)s"

log_level = defaulted(
    "MATOOLKIT_LOG_LEVEL", matching(r"(?i)debug|info|warning|error", "debug, info, warning or error"), "info"
)
"""The setting, as every service has it."""


def begin_logging(level: str) -> None:
    """Have lines from this level on written."""
    formatter = logging.Formatter(_LAYOUT)
    formatter.converter = time.gmtime
    formatter.default_time_format, formatter.default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # They write addresses and headers of each request.
    for name in ("azure", "urllib3", "msal", "aiohttp.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
