"""What goes wrong on demand: named, aimed at some requests, drawn from a seed, counted."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from matoolkit.simulation.tenant.calls import Api

if TYPE_CHECKING:
    from random import Random

    from matoolkit.simulation.tenant.calls import Call


class TenantFault(StrEnum):
    """The faults there are."""

    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    UNAVAILABLE_AFTER_ACTING = "unavailable-after-acting"
    SLOW = "slow"
    SLOW_AFTER_ACTING = "slow-after-acting"
    CUT_BEFORE_ACTING = "cut-before-acting"
    CUT_AFTER_ACTING = "cut-after-acting"
    CUT_HALFWAY = "cut-halfway"
    UNAUTHORIZED = "unauthorized"
    TRANSIENT = "transient"
    REDIRECTED = "redirected"
    FOREIGN_NEXT_LINK = "foreign-next-link"


@dataclass(slots=True, kw_only=True)
class FaultRule:
    """A fault, and which requests it strikes."""

    fault: TenantFault
    api: Api | None = None
    """None: Graph and Exchange. Sign-in fails only when it is meant."""
    method: str = ""
    path: str = ""
    """A regular expression that is searched for in the path as sent, without the query; empty: any."""
    body: str = ""
    """Text that must be in the body; empty: any."""
    times: int | None = None
    """How often it strikes before it is spent; None: for as long as it is there."""
    skip: int = 0
    """How many matching requests pass first."""
    likelihood: float = 1.0
    status: int = 503
    """Of `unavailable`: any 5xx."""
    retry_after: int | None = None
    """Seconds, of `throttled` (10 unless told) and `unavailable` (no header unless told)."""
    seconds: float = 0.0
    """How long the answer is held up, whatever the fault; of `slow` this is all that happens."""
    location: str = ""
    """The other server's address (`https://host:port`), of `redirected` and `foreign-next-link`."""
    struck: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        try:
            re.compile(self.path)
        except re.error as error:
            raise ValueError(f"the path {self.path!r} is not a regular expression: {error}") from error

    @property
    def spent(self) -> bool:
        """Whether it has struck as often as it may."""
        return self.times is not None and self.struck >= self.times

    def matches(self, call: Call, api: Api) -> bool:
        """Whether the request is one it is aimed at."""
        return (
            (api == self.api or (self.api is None and api != Api.SIGN_IN))
            and (not self.method or self.method.upper() == call.method)
            and (not self.path or re.search(self.path, call.raw_path) is not None)
            and (not self.body or self.body.encode() in call.body)
        )


class TenantFaults:
    """The rules in force: the first that strikes is the one that counts."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.rules: list[FaultRule] = []
        self.struck: Counter[TenantFault] = Counter()

    def add(self, rule: FaultRule) -> FaultRule:
        """Put a rule in force."""
        self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """Nothing goes wrong any more; what struck stays counted."""
        self.rules = []

    def draw(self, call: Call, api: Api) -> FaultRule | None:
        """The fault that strikes this request."""
        for rule in self.rules:
            if rule.spent or not rule.matches(call, api):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            if rule.likelihood < 1 and self._chance.random() >= rule.likelihood:
                continue
            self._strike(rule)
            return rule
        return None

    def _strike(self, rule: FaultRule) -> None:
        rule.struck += 1
        self.struck[rule.fault] += 1
        if rule.spent:
            self.rules = [each for each in self.rules if each is not rule]
