"""What a history is about: a runbook, the people in it, and how its functions will behave; all drawn from the seed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from random import Random

WORKERS = ("worker-1", "worker-2")
_MINUTES = (30, 20, 10, 10, 0)
_IN_FIRST = 0.75
_IMMEDIATE = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large and how intricate a history may get."""

    members: tuple[int, int] = (5, 20)
    batches: int = 2
    phases: tuple[int, int] = (1, 3)
    steps: tuple[int, int] = (1, 3)


@dataclass(slots=True)
class Scenario:
    """A runbook's versions and the people a source knows."""

    seed: int
    name: str
    versions: list[str]
    """The texts: the first is published at the start, the others while it runs."""
    people: dict[str, int] = field(default_factory=dict)
    """Keys, and in which of the start times each is."""
    starts: tuple[int, ...] = (45,)
    """Minutes from the beginning."""
    immediate: bool = False
    """Whether batches start as soon as people appear."""


def draw(seed: int, chance: Random, shape: Shape) -> Scenario:
    """A scenario from a seed."""
    immediate = chance.random() < _IMMEDIATE
    first = _runbook(chance, shape, 1, immediate=immediate)
    # JSON is YAML, and quicker to write.
    versions = [
        msgspec.json.encode(_changed(chance, shape, first, number, immediate=immediate)).decode()
        for number in (1, 2, 3)
    ]
    starts = tuple(45 + 15 * index for index in range(chance.randint(1, shape.batches)))
    # Most people are in the first batch, so that the second is small enough to lose everybody now and then.
    people = {
        f"User{number}@contoso.example": 0 if chance.random() < _IN_FIRST else chance.randrange(len(starts))
        for number in range(chance.randint(*shape.members))
    }
    return Scenario(seed, "wave", versions, people, starts, immediate)


def _runbook(chance: Random, shape: Shape, number: int, *, immediate: bool) -> dict[str, Any]:
    minutes = sorted(chance.sample(_MINUTES, chance.randint(*shape.phases)), reverse=True)
    runbook: dict[str, Any] = {
        "name": "wave",
        "description": f"version {number}",
        "data_source": {
            "type": "sql",
            "connection": "SQL_SIMULATED",
            "query": "SELECT * FROM people",
            "primary_key": "Key",
            **({"batch_time": "immediate"} if immediate else {"batch_time_column": "Start"}),
        },
        "phases": [
            {
                "name": f"phase-{index}",
                "offset": f"T-{offset}m" if offset else "T-0",
                "steps": [
                    _step(chance, f"step-{place}", rollback=True) for place in range(chance.randint(*shape.steps))
                ],
            }
            for index, offset in enumerate(minutes)
        ],
        "rollbacks": {"undo": [_step(chance, f"undo-{place}", polls=0.4) for place in range(chance.randint(1, 2))]},
    }
    if chance.random() < 0.4:  # noqa: PLR2004 - how many histories have a global retry
        runbook["retry"] = _retry(chance)
    if chance.random() < 0.45:  # noqa: PLR2004 - how many have init
        runbook["init"] = [_init_step(chance, f"init-{place}") for place in range(chance.randint(1, 2))]
        runbook["rollbacks"]["undo-init"] = [
            {
                "name": "undo-init-0",
                "worker_id": WORKERS[0],
                "function": "Undo-Init",
                "params": {"Batch": "{{_batch_id}}"},
            }
        ]
    if chance.random() < 0.75:  # noqa: PLR2004 - how many clean up after leavers
        runbook["on_member_removed"] = [
            _step(chance, f"leave-{place}", polls=0.5) for place in range(chance.randint(1, 2))
        ]
    return runbook


def _changed(chance: Random, shape: Shape, first: dict[str, Any], number: int, *, immediate: bool) -> dict[str, Any]:
    """A later version: the same with a phase more or less, or another one altogether."""
    if number == 1:
        return first
    return _runbook(chance, replace(shape), number, immediate=immediate)


def _step(chance: Random, name: str, *, rollback: bool = False, polls: float = 0.25) -> dict[str, Any]:
    step: dict[str, Any] = {
        "name": name,
        "worker_id": chance.choice(WORKERS),
        "function": chance.choice(("Set-Thing", "New-{{Kind}}")),
        "params": {"Key": "{{Key}}", "Name": "{{Name}}"},
        "output_params": {f"Out_{name.replace('-', '_')}": "Id"},
    }
    if chance.random() < 0.08:  # noqa: PLR2004 - how many steps ask for a column that is unfit for some people
        step["params"]["Nickname"] = "{{Nickname}}"
    if chance.random() < 0.35:  # noqa: PLR2004 - how many steps retry
        step["retry"] = _retry(chance)
    if chance.random() < polls:
        step["poll"] = {"interval": chance.choice(("1m", "2m")), "timeout": chance.choice(("3m", "8m"))}
    if rollback and chance.random() < 0.5:  # noqa: PLR2004 - how many steps name a rollback
        step["on_failure"] = "undo"
    return step


def _init_step(chance: Random, name: str) -> dict[str, Any]:
    step = _step(chance, name, polls=0.4)
    del step["output_params"]
    step |= {"function": "New-BatchThing", "params": {"Batch": "{{_batch_id}}", "Start": "{{_batch_start_time}}"}}
    if chance.random() < 0.5:  # noqa: PLR2004 - how many name a rollback
        step["on_failure"] = "undo-init"
    return step


def _retry(chance: Random) -> dict[str, Any]:
    retries = chance.randint(0, 2)
    return {"max_retries": retries, "interval": chance.choice(("20s", "1m", "3m"))} if retries else {"max_retries": 0}


def fate(seed: int, subject: str) -> float:
    """A number from 0 to 1 that belongs to a subject for good, whatever happens around it."""
    return zlib.crc32(f"{seed}/{subject}".encode()) / 0xFFFFFFFF
