"""Members of batches: who takes part, with what data, and how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Integer,
    Select,
    String,
    bindparam,
    false,
    func,
    select,
    true,
    update,
)

from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS, for_update
from matoolkit.store.rows import Rows
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.states import BatchStatus, MemberStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from matoolkit.store.database import Transaction


class Member(msgspec.Struct, frozen=True):
    """A member of a batch, as it was read."""

    id: int
    batch_id: int
    member_key: str
    status: str
    generation: int
    data_json: str
    worker_data_json: str | None
    catch_up_due: bool
    removal_due: bool

    @property
    def is_active(self) -> bool:
        """Whether the member takes part."""
        return self.status == MemberStatus.ACTIVE


_m = batch_members.c
_COLUMNS = (
    _m.id,
    _m.batch_id,
    _m.member_key,
    _m.status,
    _m.generation,
    _m.data_json,
    _m.worker_data_json,
    _m.catch_up_due,
    _m.removal_due,
)
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)

OUTPUTS = Rows(Column("id", BigInteger), Column("worker_data_json", String))
GENERATIONS = Rows(Column("id", BigInteger), Column("generation", Integer))

READ = select(*_COLUMNS).join(IDS.table, IDS.c.id == _m.id)
READ_CHUNK: Select[Any] = for_update(
    select(*_COLUMNS)
    .where(
        _m.batch_id == bindparam("batch"),
        _m.status == MemberStatus.ACTIVE,
        _m.id > bindparam("after"),
    )
    .order_by(_m.id)
    .limit(bindparam("size", type_=Integer)),
    batch_members,
    seek="INDEX(ix_batch_members_status), FORCESEEK",
)
"""The next members of a batch, locked: those who are to catch up as well, since somebody may just be at that."""

FAIL = (
    update(batch_members)
    .where(_m.id == IDS.c.id, checked(_m.status) == MemberStatus.ACTIVE)
    .values(status=MemberStatus.FAILED, failed_at=_now)
)
COMPLETE = (
    update(batch_members)
    .where(_m.id == IDS.c.id, checked(_m.status) == MemberStatus.ACTIVE)
    .values(status=MemberStatus.COMPLETED, completed_at=_now)
)
COMPLETE_BATCH = (
    update(batch_members)
    .where(_m.batch_id == bindparam("batch"), _m.status == MemberStatus.ACTIVE)
    .values(status=MemberStatus.COMPLETED, completed_at=_now)
)
REMEMBER_OUTPUTS = (
    update(batch_members).where(_m.id == OUTPUTS.c.id).values(worker_data_json=OUTPUTS.c.worker_data_json)
)
CAUGHT_UP = (
    update(batch_members)
    .where(_m.id == GENERATIONS.c.id, _m.generation == GENERATIONS.c.generation, checked(_m.catch_up_due) == true())
    .values(catch_up_due=false())
)
REMOVAL_STARTED = (
    update(batch_members)
    .where(_m.id == GENERATIONS.c.id, _m.generation == GENERATIONS.c.generation, checked(_m.removal_due) == true())
    .values(removal_due=false())
)
COMPLETED = (
    select(_m.member_key_folded, _m.id)
    .where(_m.batch_id == bindparam("batch"), _m.status == MemberStatus.COMPLETED)
    .order_by(_m.id)
)
REACTIVATE_COMPLETED = (
    update(batch_members)
    .where(_m.id == IDS.c.id, checked(_m.status) == MemberStatus.COMPLETED)
    .values(status=MemberStatus.ACTIVE, completed_at=None)
)
OWED_CATCH_UP = (
    select(*_COLUMNS)
    .join(batches, batches.c.id == _m.batch_id)
    .where(_m.catch_up_due == true(), batches.c.status == BatchStatus.ACTIVE)
    .order_by(_m.id)
    .limit(bindparam("size", type_=Integer))
)
CLEAR_CATCH_UP = (
    update(batch_members)
    .where(_m.batch_id == bindparam("batch"), _m.catch_up_due == true(), _m.generation == 1)
    .values(catch_up_due=false())
)
"""Who joined before any phase started, and never left, has missed nothing."""
OWED_REMOVAL = select(*_COLUMNS).where(_m.removal_due == true()).order_by(_m.id).limit(bindparam("size", type_=Integer))
COUNT_BY_STATUS = (
    select(_m.status, func.count()).where(_m.batch_id == bindparam("batch")).group_by(_m.status).order_by(_m.status)
)


def read(tx: Transaction, ids: Iterable[int]) -> dict[int, Member]:
    """Members by their ids."""
    wanted = [(each,) for each in sorted(set(ids))]
    return {row[0]: Member(*row) for row in tx.with_rows(READ, IDS, wanted)} if wanted else {}


def lock_chunk(tx: Transaction, batch_id: int, after: int, size: int) -> dict[int, Member]:
    """The next active members of a batch by id, locked."""
    rows = tx.execute(READ_CHUNK, batch=batch_id, after=after, size=size)
    return {row[0]: Member(*row) for row in rows}


def fail(tx: Transaction, ids: Iterable[int], now: datetime) -> None:
    """Active members whose step failed for good; those who have left meanwhile stay as they are."""
    _each(tx, FAIL, ids, now)


def complete(tx: Transaction, ids: Iterable[int], now: datetime) -> None:
    """Active members who are through."""
    _each(tx, COMPLETE, ids, now)


def completed(tx: Transaction, batch: int) -> dict[str, int]:
    """Who is through with a batch, by folded key."""
    return dict(tx.execute(COMPLETED, batch=batch).all())


def reactivate_completed(tx: Transaction, ids: Iterable[int]) -> None:
    """Who was through has something to do again."""
    wanted = [(each,) for each in ids]
    if wanted:
        tx.with_rows(REACTIVATE_COMPLETED, IDS, wanted)


def remember(tx: Transaction, outputs: Mapping[int, str]) -> None:
    """What workers reported of members, merged by the caller, who holds their locks."""
    if outputs:
        tx.change_rows(REMEMBER_OUTPUTS, OUTPUTS, list(outputs.items()))


def caught_up(tx: Transaction, members: Sequence[Member]) -> None:
    """The steps of the phases they missed are written."""
    if members:
        tx.with_rows(CAUGHT_UP, GENERATIONS, [(each.id, each.generation) for each in members])


def removal_started(tx: Transaction, members: Sequence[Member]) -> None:
    """Their steps are cancelled and those of their removal written."""
    if members:
        tx.with_rows(REMOVAL_STARTED, GENERATIONS, [(each.id, each.generation) for each in members])


def owed_catch_up(tx: Transaction, size: int) -> list[Member]:
    """Members who have not been started on the phases they missed."""
    return [Member(*row) for row in tx.execute(OWED_CATCH_UP, size=size)]


def owed_removal(tx: Transaction, size: int) -> list[Member]:
    """Members who left and whose leaving nobody has handled."""
    return [Member(*row) for row in tx.execute(OWED_REMOVAL, size=size)]


def _each(tx: Transaction, statement: Any, ids: Iterable[int], now: datetime) -> None:
    wanted = [(each,) for each in ids]
    if wanted:
        tx.with_rows(statement, IDS, wanted, now=now)
