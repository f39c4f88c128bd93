"""What goes wrong: named, drawn from the seed, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class Fault(StrEnum):
    """The faults there are."""

    KILL_BEFORE_COMMIT = "killed before a commit"
    KILL_AFTER_COMMIT = "killed after a commit"
    REFUSED_AT_BEGIN = "transaction refused as it began"
    REFUSED_AT_COMMIT = "transaction refused at its commit"
    DATABASE_AWAY = "database not reachable"
    DUPLICATED = "message delivered twice"
    DELAYED = "message delayed and overtaken"
    GIVEN_UP = "job given up by the bus"
    LOCK_EXPIRED = "lock expired under a worker"
    WORKER_ERROR = "function failed"
    THROTTLED = "function throttled for good"
    ANSWER_LOST = "function acted, its answer was lost"
    ANSWERED_TWICE = "result sent twice"
    SOURCE_FAILED = "data source failed"
    SOURCE_BROKE_OFF = "data source broke off in the middle"
    SOURCE_EMPTY = "data source returned nothing"
    SOURCE_SLOW = "data source slow, its rows out of date"
    ROWS_TWICE = "row returned twice, with another date"
    ROW_UNREADABLE = "row without a readable time"
    KEY_RESPELLED = "key in other letters"
    MEMBER_MOVED = "member moved to another date"
    MEMBER_JOINED = "member joined late"
    MEMBER_LEFT = "member left"
    MEMBER_RETURNED = "member came back"
    DATA_CHANGED = "member's data changed"
    PUBLISHED = "new version published"
    CANCELLED = "batch cancelled"
    AUTOMATION_SWITCHED = "automation switched"
    RELEASED = "held removals released"
    CLOCK_FORWARD = "scheduler's clock ahead"
    CLOCK_BACK = "scheduler's clock set back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihoods:
    """How likely each fault is, each time it could happen."""

    kill: float = 0.01
    refuse: float = 0.01
    duplicate: float = 0.03
    delay: float = 0.03
    give_up: float = 0.006
    worker_error: float = 0.08
    throttled: float = 0.02
    slow: float = 0.05
    lose_answer: float = 0.03
    answer_twice: float = 0.05
    source_fails: float = 0.06
    source_breaks_off: float = 0.03
    source_empty: float = 0.05
    source_slow: float = 0.05
    rows_twice: float = 0.04
    unreadable: float = 0.05
    respell: float = 0.03
    move: float = 0.10
    join: float = 0.12
    leave: float = 0.16
    come_back: float = 0.35
    change_data: float = 0.10
    publish: float = 0.014
    cancel: float = 0.012
    switch: float = 0.02
    release: float = 0.25
    """Of something held, each time an operator looks."""
    clock_jumps: float = 0.02


CALM = Likelihoods(
    kill=0,
    refuse=0,
    duplicate=0,
    delay=0,
    give_up=0,
    slow=0,
    lose_answer=0,
    answer_twice=0,
    source_fails=0,
    source_breaks_off=0,
    source_empty=0,
    source_slow=0,
    rows_twice=0,
    unreadable=0,
    respell=0,
    move=0,
    join=0,
    leave=0,
    come_back=0,
    change_data=0,
    publish=0,
    cancel=0,
    switch=0,
    release=0,
    clock_jumps=0,
)
"""Nothing goes wrong but what functions themselves report."""


@dataclass(slots=True)
class Faults:
    """Draws faults, and counts those that struck."""

    chance: Random
    likelihoods: Likelihoods
    struck: Counter[Fault] = field(default_factory=Counter)

    def strikes(self, fault: Fault, likelihood: float) -> bool:
        """Whether a fault strikes now."""
        if likelihood <= 0 or self.chance.random() >= likelihood:
            return False
        self.struck[fault] += 1
        return True
