"""The same wave on the embedded bus and on Service Bus, undisturbed and not: the same outcome, member by member."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.clock import SystemClock
from matoolkit.hosts.all_in_one import AllInOne, Pace
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate
from tests.bus.service_bus_line import broken_sockets_closed
from tests.doubles.service_bus.server import Namespace
from tests.hosts import outcomes
from tests.hosts.pretending import PretendingHand
from tests.hosts.service_bus_crew import ServiceBusCrew

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

PEOPLE = 45
PATIENCE = 60.0


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What comes of it on the bus beside the state."""
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('wave') / 'wave.db'}")
    migrate(database)
    host = AllInOne(
        database,
        Pace(beat_seconds=0.3, look_again_seconds=1),
        worker=lambda bus, place: PretendingHand(bus, place, SystemClock(), outcomes.function),
        environment={},
    )
    outcomes.begin(database, host.announcer, host.clock, PEOPLE)
    host.start()
    assert outcomes.wait_until_over(database, PATIENCE)
    assert host.stop()
    found = outcomes.outcome(database)
    database.close()
    return found


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    namespace = Namespace(SystemClock()).start()
    with broken_sockets_closed():
        yield namespace
    namespace.stop()


@pytest.mark.parametrize("disturbed", [False, True], ids=["undisturbed", "disturbed"])
def test_the_outcome_is_the_same(
    postgres_database: Database, namespace: Namespace, expected: list[Any], disturbed: bool
) -> None:
    crew = ServiceBusCrew(postgres_database, namespace, kill_relays=disturbed)
    if disturbed:
        numbers = count()
        namespace.broker.twice = lambda _: next(numbers) % 10 == 0
    try:
        crew.start(PEOPLE)
        if disturbed:
            assert crew.until_jobs(PEOPLE // 2, PATIENCE)
            namespace.kill()
            namespace.restart()
            assert crew.until_jobs(PEOPLE * 3, PATIENCE)
            namespace.kill()
            namespace.restart()
        over = crew.until_over(PATIENCE)
    finally:
        stopped = crew.stop()
    assert outcomes.outcome(postgres_database) == expected
    assert over
    assert stopped
    with postgres_database.reading() as tx:
        assert check(tx, (*ALWAYS, *AT_REST)) == []
    repeated = sum(times > 1 for times in crew.jobs.values())
    if disturbed:
        assert sum(carrier.deaths for carrier in crew.carriers) == 8
        assert repeated > 0, "a tenth of the jobs came twice"
    else:
        assert repeated == 0
