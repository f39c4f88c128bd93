"""Runbooks and lists of people for tests of the API."""

from __future__ import annotations

from typing import Any

import yaml


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "worker_id": "worker-1", "function": f"Do-{name}", "params": {"Who": "{{Key}}"}, **more}


def runbook(name: str = "wave", *, init: bool = False, phases: Any = None, **more: Any) -> str:
    """Two phases, of which the later in time stands first in the text."""
    document: dict[str, Any] = {
        "name": name,
        "data_source": {
            "type": "sql",
            "connection": "SQL_WAVES",
            "query": "SELECT 1",
            "primary_key": "Key",
            "batch_time_column": "Start",
        },
        "phases": phases
        or [
            {"name": "move", "offset": "T-0", "steps": [step("move"), step("tidy")]},
            {"name": "prepare", "offset": "T-1d", "steps": [step("prepare", params={"Mail": "{{Mail}}"})]},
        ],
        **more,
    }
    if init:
        document["init"] = [{**step("open"), "params": {"Batch": "{{_batch_id}}"}}]
    return str(yaml.safe_dump(document, sort_keys=False))


def csv(*keys: str, header: str = "Key,Start,Mail") -> bytes:
    lines = [header, *(f"{key},2030-01-01T00:00:00Z,{key}@example.test" for key in keys)]
    return ("\r\n".join(lines) + "\r\n").encode()
