"""`matoolkit up`, killed again and again in mid-wave: everybody ends in one state, and nothing runs too often."""

from __future__ import annotations

import signal
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from tests.hosts import waves
from tests.hosts.counting import counted, lines
from tests.hosts.processes import SECONDS
from tests.hosts.ups import OVER, UpProcess, members

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matoolkit.cli.client import ApiClient

PEOPLE = 60
MAX_RETRIES = 2
AT_START_EVERY = 6
"""So often the kill comes before it is ready."""
_STEPS = text("SELECT 'step-' || id, retry_count, poll_count FROM step_executions WHERE dispatched_at IS NOT NULL")


def test_killed_again_and_again_it_loses_nothing(tmp_path: Path) -> None:
    Killing(tmp_path, seed=7).go_on(6)


@pytest.fixture(scope="module")
def folder_of_fifty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killing]:
    """One data folder for all of them."""
    killing = Killing(tmp_path_factory.mktemp("fifty"), seed=50)
    yield killing
    assert len(killing.kills) == 50


@pytest.mark.soak
@pytest.mark.parametrize("part", range(5))
def test_killed_fifty_times_it_loses_nothing(folder_of_fifty: Killing, part: int) -> None:
    """In parts, since a test that lasts longer than four minutes counts as hung."""
    assert len(folder_of_fifty.kills) == part * 10
    folder_of_fifty.go_on(10)


class Killing:
    """Lives, each of which ends by SIGKILL, and a last one that may end its waves."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, Random(seed)
        self.counted = folder / "counted"
        self.kills: dict[int, float] = {}
        self.waves = 0

    def go_on(self, kills: int) -> None:
        self._another_wave()
        for number in range(kills):
            self._life(number)
        self._last_life()

    def _another_wave(self) -> None:
        waves.people(self.folder / "people.db", PEOPLE, self.waves * PEOPLE)
        self.waves += 1

    def _life(self, number: int) -> None:
        process = UpProcess(self.folder)
        try:
            if number % AT_START_EVERY == AT_START_EVERY - 1:
                process.says("never said", within=self.chance.uniform(0.3, 3.0))
                return
            with process.ready() as client:
                if not client.runbooks()["runbooks"]:
                    client.publish_runbook("wave", waves.RUNBOOK)
                if self._open(client) == 0:
                    self._another_wave()
                self._until_lines(lines(self.counted) + self.chance.randint(1, 120), client)
        finally:
            # Noted before: what it still does is within the time that a kill takes.
            self.kills[process.process.pid] = time.monotonic()
            process.kill()

    def _open(self, client: ApiClient) -> int:
        batches = client.batches(limit=100)["batches"]
        return sum(each["status"] not in OVER for each in batches) + self.waves - len(batches)

    def _until_lines(self, count: int, client: ApiClient) -> None:
        """Until functions have come so far, or this wave has ended before."""
        ends, looked = time.monotonic() + SECONDS, time.monotonic()
        while lines(self.counted) < count:
            assert time.monotonic() < ends, "nothing is done any more"
            time.sleep(0.005)
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                if self._open(client) == 0:
                    self._another_wave()

    def _last_life(self) -> None:
        process = UpProcess(self.folder)
        try:
            with process.ready() as client:
                ends = time.monotonic() + SECONDS * 2
                while self._open(client):
                    assert time.monotonic() < ends, client.batches()
                    time.sleep(0.2)
                self._assert_final(client)
                self._assert_sound()
            process.signal(signal.SIGTERM)
            assert process.exit_code() == 0, process.said
        finally:
            process.kill()

    def _assert_final(self, client: ApiClient) -> None:
        batches = client.batches(limit=100)["batches"]
        everybody: list[Any] = [each for batch in batches for each in members(client, batch["id"])]
        states = {int(each["memberKey"]): each["status"] for each in everybody}
        assert len(everybody) == len(states) == self.waves * PEOPLE
        wrong = {
            number: status
            for number, status in states.items()
            if status != ("failed" if number % 10 == 0 else "completed")
        }
        assert wrong == {}
        assert Counter(each["status"] for each in batches) == {"completed": self.waves}

    def _assert_sound(self) -> None:
        database = open_database(in_file(self.folder / "data" / "matoolkit.db"))
        ends = time.monotonic() + SECONDS
        while True:
            with database.reading() as tx:
                violations = check(tx, (*ALWAYS, *AT_REST))
                steps = {row[0]: row for row in tx.execute(_STEPS)}
            if not violations or time.monotonic() > ends:
                break
            # Rollbacks go on when the batch is over.
            time.sleep(0.2)
        database.close()
        assert violations == []
        found = counted(self.counted)
        assert found.unexcused(self.kills) == []
        for step, (_, retries, polls) in steps.items():
            # One job for the step itself, and one for each retry and poll that its row knows of: no more.
            assert len(found.by_step[step]) == 1 + retries + polls, step
            assert retries <= MAX_RETRIES
        # Otherwise no kill came in the middle of anything.
        assert found.repeated > 0
        hit = sum(len(runs) > 1 for runs in found.by_job.values())
        print(
            f"{len(self.kills)} kills, {self.waves} waves of {PEOPLE}, {len(steps)} steps, {len(found.by_job)} jobs,"
            f" {found.runs} runs: {hit} jobs were hit by a kill and run again, none without"
        )
