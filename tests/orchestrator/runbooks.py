"""Runbooks for tests, as YAML text, from as few words as will do.

A step that is given by its name alone runs `Do-<name>` on worker-1 with the member's key as its only parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

Steps = Sequence[str | dict[str, Any]]

RETRY = {"max_retries": 2, "interval": "1m"}
POLL = {"interval": "2m", "timeout": "7m"}


def step(name: str, **more: Any) -> dict[str, Any]:
    """A step of a phase, a rollback or a removal."""
    return {
        "name": name,
        "worker_id": "worker-1",
        "function": f"Do-{name}",
        "params": {"Key": "{{Key}}"},
        **more,
    }


def init_step(name: str, **more: Any) -> dict[str, Any]:
    """A step of init, which has no member."""
    return step(name, **{"params": {"Batch": "{{_batch_id}}"}, **more})


def runbook(
    phases: Mapping[str, Steps],
    *,
    init: Steps = (),
    rollbacks: Mapping[str, Steps] | None = None,
    on_member_removed: Steps = (),
    **more: Any,
) -> str:
    """A runbook named `wave`; the phases are named by name and offset: `"prepare T-1h"`."""
    document: dict[str, Any] = {
        "name": "wave",
        "data_source": {
            "type": "sql",
            "connection": "SQL_WAVES",
            "query": "SELECT * FROM people",
            "primary_key": "Key",
            "batch_time_column": "Start",
        },
        "phases": [
            {"name": named.split()[0], "offset": named.split()[1], "steps": _written_out(steps)}
            for named, steps in phases.items()
        ],
        **more,
    }
    if init:
        document["init"] = [init_step(each) if isinstance(each, str) else each for each in init]
    if rollbacks:
        document["rollbacks"] = {name: _written_out(steps) for name, steps in rollbacks.items()}
    if on_member_removed:
        document["on_member_removed"] = _written_out(on_member_removed)
    return str(yaml.safe_dump(document, sort_keys=False))


def _written_out(steps: Steps) -> list[dict[str, Any]]:
    return [step(each) if isinstance(each, str) else each for each in steps]
