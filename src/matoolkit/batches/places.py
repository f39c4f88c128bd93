"""One place at a time: who of some people is in another batch of the runbook, or is not through with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import places, roster
from matoolkit.store.sequences import busy_members

if TYPE_CHECKING:
    from collections.abc import Collection

    from matoolkit.store.database import Transaction


def taken(tx: Transaction, runbook_name: str, keys: Collection[str], besides: int | None = None) -> dict[str, int]:
    """Of these folded keys those that must not join a batch yet, each with the batch that has them.

    They are active in another batch of the runbook name, which includes everybody whose removal is held and everybody
    in a cancelled batch that is not wound up; or they left one, or failed there, and a job, a rollback or the steps of
    leaving are not over, even where that batch has ended meanwhile. Until the commit nobody else gives out places.
    """
    if not keys:
        return {}
    places.hold(tx, runbook_name)
    others = [each for each in roster.elsewhere(tx, runbook_name, keys) if each.batch_id != besides]
    busy = busy_members(tx, [each.id for each in others if not each.is_active], removals_too=True)
    return {
        each.member_key_folded: each.batch_id
        for each in others
        if each.is_active or each.removal_due or each.id in busy
    }
