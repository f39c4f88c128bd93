"""Published runbooks: their versions, which is active, and what went wrong with them last."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import ColumnElement, Integer, bindparam, false, func, insert, null, select, true, update

from matoolkit.store.schema import runbooks
from matoolkit.store.types import UtcDateTime, whether

if TYPE_CHECKING:
    from matoolkit.store.database import Transaction


class RunbookItem(msgspec.Struct, frozen=True):
    """One version of a runbook, as people look at it."""

    id: int
    name: str
    version: int
    yaml_content: str
    data_table_name: str | None
    is_active: bool
    overdue_behavior: str
    rerun_init: bool
    created_at: datetime
    published_by: str | None
    last_error: str | None
    last_error_at: datetime | None


class PublishedRunbook(msgspec.Struct, frozen=True):
    """One version of a runbook, as it was published."""

    id: int
    name: str
    version: int
    yaml_content: str
    is_active: bool
    overdue_behavior: str
    rerun_init: bool
    has_error: bool = False


_r = runbooks.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
_READ = select(
    _r.id,
    _r.name,
    _r.version,
    _r.yaml_content,
    _r.is_active,
    _r.overdue_behavior,
    _r.rerun_init,
    whether(_r.last_error.is_not(None)).label("has_error"),
)
READ_VERSION = _READ.where(_r.name_folded == bindparam("named"), _r.version == bindparam("version"))
READ_ACTIVE = _READ.where(_r.is_active == true()).order_by(_r.name_folded)
_SHOWN = select(
    _r.id,
    _r.name,
    _r.version,
    _r.yaml_content,
    _r.data_table_name,
    _r.is_active,
    _r.overdue_behavior,
    _r.rerun_init,
    _r.created_at,
    _r.published_by,
    _r.last_error,
    _r.last_error_at,
)
SHOW_ACTIVE = (
    _SHOWN.where(_r.is_active == true(), _r.name_folded > bindparam("after"))
    .order_by(_r.name_folded)
    .offset(bindparam("skip", type_=Integer))
    .limit(bindparam("size", type_=Integer))
)
SHOW_VERSIONS = _SHOWN.where(_r.name_folded == bindparam("named")).order_by(_r.version.desc())
SHOW_VERSION = _SHOWN.where(_r.name_folded == bindparam("named"), _r.version == bindparam("version"))
SHOW_ACTIVE_VERSION = _SHOWN.where(_r.name_folded == bindparam("named"), _r.is_active == true())
LATEST_VERSION = select(func.coalesce(func.max(_r.version), 0)).where(_r.name_folded == bindparam("named"))
DEACTIVATE = (
    update(runbooks).where(_r.name_folded == bindparam("named"), _r.is_active == true()).values(is_active=false())
)
REPORT_ERROR = (
    update(runbooks)
    .where(_r.name_folded == bindparam("named"), _r.version == bindparam("runbook_version"))
    .values(last_error=bindparam("message"), last_error_at=_now)
)
CLEAR_ERROR = (
    update(runbooks)
    .where(_r.id == bindparam("runbook"), _r.last_error.is_not(None))
    .values(last_error=null(), last_error_at=null())
)
IGNORE_OVERDUE_APPLIED = update(runbooks).where(_r.id == bindparam("runbook")).values(ignore_overdue_applied=true())


def folded(name: str) -> str:
    """A name or a member's key as it is compared: case does not count."""
    return name.casefold()


def read_version(tx: Transaction, name: str, version: int) -> PublishedRunbook | None:
    """One version, if it was ever published."""
    row = tx.execute(READ_VERSION, named=folded(name), version=version).first()
    return None if row is None else PublishedRunbook(*row)


def active(tx: Transaction) -> list[PublishedRunbook]:
    """The active version of every runbook, by name."""
    return [PublishedRunbook(*row) for row in tx.execute(READ_ACTIVE)]


def active_version(tx: Transaction, name: str) -> RunbookItem | None:
    """The version of a runbook that is in force, if there is one."""
    row = tx.execute(SHOW_ACTIVE_VERSION, named=folded(name)).first()
    return None if row is None else RunbookItem(*row)


def one_version(tx: Transaction, name: str, version: int) -> RunbookItem | None:
    """One version, if it was ever published."""
    row = tx.execute(SHOW_VERSION, named=folded(name), version=version).first()
    return None if row is None else RunbookItem(*row)


def all_versions(tx: Transaction, name: str) -> list[RunbookItem]:
    """Every version of a runbook, the newest first."""
    return [RunbookItem(*row) for row in tx.execute(SHOW_VERSIONS, named=folded(name))]


def active_page(tx: Transaction, *, after: str, skip: int, size: int) -> list[RunbookItem]:
    """The active versions of runbooks by folded name, from the one after `after`."""
    return [RunbookItem(*row) for row in tx.execute(SHOW_ACTIVE, after=after, skip=skip, size=size)]


def deactivate(tx: Transaction, name: str) -> None:
    """No version of the runbook is in force any more; batches go on with the one they run."""
    tx.execute(DEACTIVATE, named=folded(name))


def publish(
    tx: Transaction,
    *,
    name: str,
    yaml_content: str,
    now: datetime,
    by: str,
    overdue_behavior: str = "rerun",
    rerun_init: bool = False,
) -> int:
    """Make a text the next and active version of a runbook; gives the version."""
    version = int(tx.execute(LATEST_VERSION, named=folded(name)).scalar_one()) + 1
    tx.execute(DEACTIVATE, named=folded(name))
    tx.connection.execute(
        insert(runbooks),
        {
            "name": name,
            "name_folded": folded(name),
            "version": version,
            "yaml_content": yaml_content,
            "data_table_name": f"runbook_{_identifier(name)[:200]}_v{version}",
            "is_active": True,
            "overdue_behavior": overdue_behavior,
            "rerun_init": rerun_init,
            "created_at": now,
            "published_by": by,
        },
    )
    return version


def report_error(tx: Transaction, name: str, version: int, message: str, now: datetime) -> None:
    """What went wrong with a runbook, for its operators to see."""
    tx.execute(REPORT_ERROR, named=folded(name), runbook_version=version, message=message, now=now)


def clear_error(tx: Transaction, runbook: int) -> None:
    """It works again."""
    tx.execute(CLEAR_ERROR, runbook=runbook)


def ignore_overdue_applied(tx: Transaction, runbook: int) -> None:
    """A batch went over to a version that ignores what was overdue."""
    tx.execute(IGNORE_OVERDUE_APPLIED, runbook=runbook)


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in folded(name))
