"""How batches, phases, steps and members stand in tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from matoolkit.cli.showing.tables import Column, field
from matoolkit.cli.showing.times import moment

if TYPE_CHECKING:
    from collections.abc import Mapping


def _start(row: Mapping[str, Any]) -> str:
    return moment(row["batchStartTime"]) or ("by hand" if row["isManual"] else "")


BATCHES = (
    field("ID", "id", right=True),
    field("Runbook", "runbookName", folds=True),
    field("V", "runbookVersion", rank=3, right=True),
    field("Status", "status"),
    Column("Starts", _start, rank=1),
    field("Phase", "currentPhase", rank=2, folds=True),
    field("Members", "memberCount", right=True, rank=1),
    Column("Made", lambda row: moment(row["detectedAt"]), rank=5),
    field("By", "createdBy", rank=4, folds=True),
)


def phase_columns(*, versions: bool) -> list[Column]:
    """Of phases; the version only where there are several."""
    return [
        *([field("V", "runbookVersion", right=True)] if versions else []),
        field("Phase", "phaseName", folds=True),
        Column("Offset", lambda row: offset(row["offsetMinutes"]), rank=3, right=True),
        Column("Due", lambda row: moment(row["dueAt"]), rank=1),
        field("Status", "status"),
        field("Why", "skipReason", rank=4),
        Column("Steps", lambda row: counted(row.get("stepsByStatus") or {}), rank=1, folds=True),
        Column("Ended", lambda row: moment(row["completedAt"]), rank=5),
        field("Waits for", "waitingFor", rank=2, folds=True),
    ]


STEPS = (
    field("ID", "id", right=True, rank=6),
    field("Member", "memberKey", folds=True),
    field("Phase", "phaseName", rank=4, folds=True),
    field("Step", "stepName", folds=True),
    field("Status", "status"),
    Column("Tries", lambda row: row["retryCount"] + 1 if row["retryCount"] else "", rank=7, right=True),
    Column("Polls", lambda row: row["pollCount"] or "", rank=8, right=True),
    field("Error", "errorMessage", rank=1, folds=True),
    field("Rollback", "rollbackStatus", rank=3),
    field("Waits for", "waitingFor", rank=2, folds=True),
    Column("Ended", lambda row: moment(row["completedAt"]), rank=5),
)

INIT_STEPS = tuple(each for each in STEPS if each.title not in {"Member", "Phase"})


def member_columns(*, data: bool) -> list[Column]:
    """Of members; with what is known of them on request."""
    columns = [
        field("ID", "id", right=True),
        field("Member", "memberKey", folds=True),
        field("Status", "status"),
        Column("Joined", lambda row: moment(row["addedAt"]), rank=4),
        Column("Ended", lambda row: moment(row["completedAt"] or row["failedAt"] or row["removedAt"]), rank=3),
        field("Removed by", "removedBy", rank=5, folds=True),
        Column("Stay", lambda row: row["generation"] if row["generation"] > 1 else "", rank=6, right=True),
        field("Waits for", "waitingFor", rank=2, folds=True),
    ]
    if data:
        columns += [
            Column("Data", lambda row: pairs(row["data"]), rank=1, folds=True),
            Column("From workers", lambda row: pairs(row["workerData"]), rank=1, folds=True),
        ]
    return columns


def offset(minutes: int) -> str:
    """As a runbook writes it."""
    for size, unit in ((1440, "d"), (60, "h"), (1, "m")):
        if minutes and minutes % size == 0:
            return f"T-{minutes // size}{unit}"
    return "T-0"


def counted(by_status: Mapping[str, int]) -> str:
    """`3 succeeded, 1 failed`."""
    return ", ".join(f"{number:,} {status}" for status, number in by_status.items() if number)


def pairs(held: Mapping[str, Any] | None) -> str:
    """`Mail=anna@contoso.example, Groups=["a"]`."""
    return ", ".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in (held or {}).items()
    )
