"""Keeps secrets out of everything that is written: results, errors, log lines.

What is known to be secret is blanked out wherever it stands: as it is, and as it looks inside JSON, inside an address,
or quoted by Python.
"""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

BLANK: Final = "***"
_SHORTEST = 4
"""Shorter ones are blanked only where they stand alone: `no` or `12` are everywhere."""
_REMEMBERED = 2000
"""How many values of past jobs are kept for what is written late."""

_REFERENCE: Final = re.compile(r"\{\{\s*secret:([A-Za-z0-9_-]{1,127})\s*\}\}", re.IGNORECASE)


def references(value: Any) -> Iterator[str]:
    """The names in `{{secret:NAME}}`, wherever in the value they stand."""
    if isinstance(value, str):
        if "{{" in value:
            yield from _REFERENCE.findall(value)
    elif isinstance(value, dict):
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def filled_in(value: Any, secrets: Mapping[str, str]) -> Any:
    """The value with every reference replaced by what it stands for."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: secrets[found[1]], value) if "{{" in value else value
    if isinstance(value, dict):
        return {key: filled_in(each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, secrets) for each in value]
    return value


class Secrets:
    """Texts that are to be seen nowhere."""

    __slots__ = ("_alone", "_within")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._alone: frozenset[str] = frozenset()
        self._within: frozenset[str] = frozenset()
        self.add(values)

    def __bool__(self) -> bool:
        return bool(self._alone)

    def add(self, values: Iterable[str]) -> None:
        """Conceal these as well. Others may be looking through a text meanwhile, so nothing is changed in place."""
        several = [value for value in values if value]
        self._alone |= frozenset(several)
        self._within |= frozenset(
            spelling for value in several if len(value) >= _SHORTEST for spelling in _spellings(value)
        )

    def out_of_text(self, text: str) -> str:
        """The text with every secret blanked out."""
        return BLANK if text in self._alone else _blanked(text, self._within)

    def out_of(self, value: Any) -> Any:
        """The value with every secret in it blanked out, in keys as well."""
        if isinstance(value, str):
            return self.out_of_text(value)
        if isinstance(value, dict):
            return {self.out_of_text(key): self.out_of(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.out_of(each) for each in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._alone:
            return BLANK
        return value


class Concealer:
    """What this process knows to be secret: its own credentials for ever, those of jobs for a good while."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._lock = Lock()
        self._own = Secrets(own)
        self._of_jobs: OrderedDict[str, frozenset[str]] = OrderedDict()
        """Each with the ways it may be spelt within a text: found out once, as jobs with new ones come all the time."""

    def add_own(self, values: Iterable[str]) -> None:
        """Conceal these as long as the process lives."""
        with self._lock:
            self._own.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Conceal these until many others have come."""
        with self._lock:
            for value in values:
                if value in self._of_jobs:
                    self._of_jobs.move_to_end(value)
                elif value:
                    self._of_jobs[value] = frozenset(_spellings(value) if len(value) >= _SHORTEST else ())
            while len(self._of_jobs) > _REMEMBERED:
                self._of_jobs.popitem(last=False)

    @property
    def own(self) -> Secrets:
        """The credentials of the process."""
        return self._own

    def out_of_text(self, text: str) -> str:
        """The text with everything blanked out that is known to be secret."""
        text = self._own.out_of_text(text)
        with self._lock:
            if text in self._of_jobs:
                return BLANK
            spellings = list(self._of_jobs.values())
        return _blanked(text, chain.from_iterable(spellings))


class ConcealingFormatter(logging.Formatter):
    """Writes log lines, exceptions included, without what is secret."""

    def __init__(self, concealer: Concealer, layout: str | None = None) -> None:
        super().__init__(layout)
        self._concealer = concealer

    def format(self, record: logging.LogRecord) -> str:
        """As any formatter, and then blanked."""
        return self._concealer.out_of_text(super().format(record))


def _blanked(text: str, spellings: Iterable[str]) -> str:
    """The text without any of these; the longest goes first, since one may hold another."""
    found = [each for each in spellings if each in text]
    for each in sorted(found, key=len, reverse=True):
        text = text.replace(each, BLANK)
    return text


def _spellings(value: str) -> Iterator[str]:
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
