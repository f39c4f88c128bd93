"""The log of a process: lines of text for people, or of JSON for machines, with the time of everywhere."""

from __future__ import annotations

import logging
import re
import sys
from typing import TYPE_CHECKING, TextIO

from matoolkit.settings import Secret, defaulted, matching
from matoolkit.telemetry.log_lines import JsonLines, TextLines
from matoolkit.worker.concealing import Secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.settings import Settings

_LAYOUT = "%(asctime)s %(levelname)-7s %(message)s"
_TALKATIVE = ("azure", "urllib3", "msal", "aiohttp.access", "alembic", "uvicorn", "opentelemetry")
"""They write addresses and headers of each request, or tell of each step of their own start."""
_CONFIDENTIAL = (
    re.compile(r"://[^:/@]*:([^@]+)@"),
    re.compile(r"(?i)(?:password|pwd|sharedaccesskey|accountkey)=([^;]+)"),
)

log_level = defaulted(
    "MATOOLKIT_LOG_LEVEL", matching(r"(?i)debug|info|warning|error", "debug, info, warning or error"), "info"
)
"""The setting, as every service has it."""
log_format = defaulted("MATOOLKIT_LOG_FORMAT", matching(r"(?i)text|json", "text or json"), "text")
"""Likewise."""


def begin_logging(
    level: str,
    form: str = "text",
    *,
    about: Mapping[str, str] | None = None,
    layout: str = _LAYOUT,
    to: TextIO | None = None,
    conceal: Callable[[str], str] = str,
    letting: logging.Filter | None = None,
) -> None:
    """Have lines from this level on written; `about` is what each line of JSON says of the process."""
    handler = logging.StreamHandler(sys.stderr if to is None else to)
    is_json = form.lower() == "json"
    handler.setFormatter(JsonLines(about or {}, conceal) if is_json else TextLines(layout, conceal))
    if letting is not None:
        handler.addFilter(letting)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def concealing(settings: Settings) -> Callable[[str], str]:
    """Keeps what a service was told in confidence out of its log: what is secret as a whole, and passwords in it."""
    secrets = [value.reveal() for value in settings.values.values() if isinstance(value, Secret)]
    parts = [part for each in secrets for form in _CONFIDENTIAL for part in form.findall(each)]
    return Secrets([*secrets, *parts]).out_of_text
