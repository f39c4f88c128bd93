"""How PostgreSQL is to go about our statements: always by index, from the rows that were given.

Everything here looks up what a parameter names, and what it names is little. A planner without statistics, which is
what it is when a wave has just been loaded, takes a table for small and reads it whole for every set; measured, a set
of 500 then took 300 ms instead of 5. Plans that do not depend on statistics do not change their minds at night.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from sqlalchemy import Engine

_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "timezone": "UTC",
}


def _settle(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        for name, value in _SETTINGS.items():
            cursor.execute(f"SET {name} = '{value}'")
    connection.commit()


def settle_plans(engine: Engine) -> None:
    """Have every connection of the engine plan like that; doing it twice changes nothing."""
    if not event.contains(engine, "connect", _settle):
        event.listen(engine, "connect", _settle)
