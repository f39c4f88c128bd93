"""Bodies of messages without what may be about people: the frame of a message stays, the rest is blotted out."""

from __future__ import annotations

from typing import Any

import msgspec

_FRAME = {
    "messagetype",
    "schemaversion",
    "runbookname",
    "runbookversion",
    "batchid",
    "batchmemberid",
    "batchstarttime",
    "membercount",
    "phaseexecutionid",
    "phasename",
    "offsetminutes",
    "dueat",
    "generation",
    "kind",
    "executionid",
    "stepexecutionid",
    "initexecutionid",
    "rollbackexecutionid",
    "removalexecutionid",
    "isinitstep",
    "stepname",
    "pollcount",
    "retrycount",
    "jobid",
    "workerid",
    "functionname",
    "status",
    "resulttype",
    "durationms",
    "timestamp",
    "notafter",
    "timeoutseconds",
    "firstdispatchedat",
    "idempotencykey",
    "correlationdata",
    "deploymentid",
    "traceparent",
    "aftermemberid",
}
_BLOT = "***"
_LONGEST = 200


def redacted(body: str) -> Any:
    """What is known to be no more than the frame."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return f"{_BLOT} ({len(body):,} characters that are no JSON)"
    return _blotted(decoded) if isinstance(decoded, dict) else _BLOT


def _blotted(fields: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        known = name.replace("_", "").lower()
        if known not in _FRAME:
            # A name that is not ours may be somebody's.
            kept[name if name.isidentifier() and len(name) < _LONGEST else _BLOT] = _BLOT
        elif known == "correlationdata" and isinstance(value, dict):
            kept[name] = _blotted(value)
        elif isinstance(value, dict | list) or (isinstance(value, str) and len(value) > _LONGEST):
            kept[name] = _BLOT
        else:
            kept[name] = value
    return kept
