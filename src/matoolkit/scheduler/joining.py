"""One place at a time: who may join a batch now, and who has to wait until another one has let them go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches.places import taken

if TYPE_CHECKING:
    from collections.abc import Collection

    from matoolkit.store.database import Transaction


def not_free(tx: Transaction, runbook_name: str, keys: Collection[str], batch: int | None) -> set[str]:
    """Of these folded keys those that must not join a batch yet."""
    return set(taken(tx, runbook_name, keys, batch))
