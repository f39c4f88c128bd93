"""Where the demonstration plays: `matoolkit up` with a clock that runs fast, asked through its API.

Only the tenant is prepared from behind, as no operator could, and the invariants are checked on the database.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.cli.client import ApiClient, all_pages
from matoolkit.cli.demonstration.people import People
from matoolkit.cli.demonstration.tenant import licence, prepare, throttled
from matoolkit.cli.watch.following import Following
from matoolkit.clock import FastClock
from matoolkit.errors import MatoolkitError
from matoolkit.hosts.all_in_one import Pace
from matoolkit.hosts.up import Up
from matoolkit.hosts.up_settings import Wishes, configuration
from matoolkit.local_key import load_local_key
from matoolkit.scheduler import Settings as Scheduling
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matoolkit.cli.watch.changes import Change
    from matoolkit.cli.watch.following import Teller
    from matoolkit.cli.watch.looking import Look
    from matoolkit.simulation.tenant import Tenant

RUNBOOK = "demo-wave"
_LEAD = timedelta(minutes=36)
_TICK = timedelta(minutes=2)
_LEASE_SECONDS = 30.0
_BEAT, _LOOK_AGAIN, _LOOK_AT_BATCH = 0.1, 0.2, 0.5
_PARALLELISM = 16
_PATIENCE, _PATIENCE_A_MEMBER = 120.0, 0.3
_SETTLING = 20.0
_CHANGES_IN = "mail-flow"


class TookTooLong(MatoolkitError):
    """The wave has not ended in the time it may take."""


@dataclass(slots=True)
class Ended:
    """What came of it."""

    expected: dict[str, str]
    """How each must have ended, by key."""
    members: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    """Steps that failed for good."""
    steps: int
    retries: int
    polls: int
    throttled: int
    batch: dict[str, Any]
    seconds: float
    surprises: list[str] = field(default_factory=list)

    @property
    def as_expected(self) -> bool:
        """Whether everybody is where they must be, and nothing is that must not."""
        return not self.surprises


class Stage:
    """One demonstration, from an empty folder to its end."""

    def __init__(self, folder: Path, members: int, speed: float) -> None:
        self.clock = FastClock(speed)
        self._speed = speed
        self._patience = _PATIENCE + _LEAD.total_seconds() / speed + members * _PATIENCE_A_MEMBER
        self._people = People(members, folder / "people.db")
        self._data = folder / "data"
        (folder / "functions").mkdir()
        environment = {
            "SQL_DEMO": self._people.url,
            "MAX_PARALLELISM": str(_PARALLELISM),
            "CUSTOM_FUNCTIONS_PATH": str(folder / "functions"),
        }
        wishes = Wishes(folder=self._data, port=0, simulated_tenant=True)
        pace = Pace(
            clock=self.clock,
            speed=speed,
            beat_seconds=_BEAT,
            look_again_seconds=_LOOK_AGAIN,
            scheduling=Scheduling(tick=_TICK, lease=timedelta(seconds=_LEASE_SECONDS * speed)),
        )
        self._up = Up(configuration(wishes, environment), pace)

    def play(self, teller: Teller) -> Ended:
        """Begin, follow the wave to its end, look at what came of it."""
        began = time.monotonic()
        with self._up as up:
            assert up.tenant is not None  # noqa: S101 - it was wished for
            runbook = prepare(up.tenant.tenant, self._people, self._speed)
            self._people.write(self.clock.now() + _LEAD)
            up.start()
            try:
                with ApiClient(up.url, self._token) as client:
                    client.publish_runbook(RUNBOOK, runbook)
                    batch_id = self._batch(client)
                    outside = _Outside(teller, self._people, up.tenant.tenant, began + self._patience)
                    self._follow(client, batch_id, outside)
                    seconds = time.monotonic() - began
                    violations = self._settled()
                    ended = self._ended(client, batch_id, seconds)
                    ended.surprises.extend(violations)
            finally:
                stopped = up.stop()
            if not stopped:
                ended.surprises.append("a part did not end when it was told to")
        return ended

    def _token(self) -> str:
        """As the command line signs in on this machine."""
        return load_local_key(self._data).token("demo", ["Admin"], datetime.now(UTC), timedelta(minutes=5))

    def _batch(self, client: ApiClient) -> int:
        """The batch, as soon as the scheduler has found it."""
        ends = time.monotonic() + self._patience
        while not (found := client.batches(runbook=RUNBOOK)["batches"]):
            if time.monotonic() > ends:
                raise TookTooLong("the scheduler has found nobody")
            time.sleep(_BEAT)
        return int(found[0]["id"])

    def _follow(self, client: ApiClient, batch_id: int, teller: Teller) -> None:
        Following(client, batch_id, teller, self.clock, time.sleep, time.monotonic, _LOOK_AT_BATCH).to_the_end()

    def _ended(self, client: ApiClient, batch_id: int, seconds: float) -> Ended:
        members = _all(client.members, batch_id, "members")
        steps = _all(client.steps, batch_id, "steps")
        tenant = self._up.tenant
        ended = Ended(
            expected=self._people.expected(),
            members=members,
            failures=[each for each in steps if each["status"] in ("failed", "poll_timeout")],
            steps=len(steps),
            retries=sum(each["retryCount"] for each in steps),
            polls=sum(each["pollCount"] for each in steps),
            throttled=0 if tenant is None else throttled(tenant.tenant),
            batch=client.batch(batch_id)["batch"],
            seconds=seconds,
        )
        ended.surprises.extend(surprises(ended))
        return ended

    def _settled(self) -> list[str]:
        """What is still being undone may end; then what is left that must not be."""
        ends = time.monotonic() + _SETTLING
        while True:
            with self._up.database.reading() as tx:
                found = [str(each) for each in check(tx, (*ALWAYS, *AT_REST))]
            if not found or time.monotonic() > ends:
                return found
            time.sleep(_BEAT)


@dataclass(slots=True)
class _Outside:
    """Tells what happens, and has the world go on meanwhile: people come and go, others give out licences."""

    teller: Teller
    people: People
    tenant: Tenant
    ends: float
    changed: bool = False
    waited_for: bool = False

    def change(self, change: Change, now: datetime) -> None:
        """Pass it on."""
        self.teller.change(change, now)

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        """Pass it on, unless it takes too long."""
        if time.monotonic() > self.ends:
            raise TookTooLong("the wave has not ended in the time it may take")
        if look is not None:
            if not self.changed and _has_begun(look, _CHANGES_IN):
                self.people.change()
                self.changed = True
            self.waited_for = self.waited_for or bool(look.steps.get("polling"))
            if self.waited_for:
                licence(self.tenant)
        self.teller.draw(look, per_minute, now)


def _has_begun(look: Look, phase: str) -> bool:
    return any(each["phaseName"] == phase and each["status"] != "pending" for each in look.phases)


def _all(ask: Callable[..., dict[str, Any]], batch_id: int, name: str) -> list[dict[str, Any]]:
    pages = all_pages(lambda **page: ask(batch_id, **page), limit=1000)
    return [each for page in pages for each in page[name]]


def surprises(ended: Ended) -> list[str]:
    """What is not as it must be."""
    found = {each["memberKey"]: each["status"] for each in ended.members}
    wrong = [
        f"{key} is {found.get(key, 'nowhere')}, and should be {status}"
        for key, status in ended.expected.items()
        if found.get(key) != status
    ]
    wrong += [f"{key} should not be there" for key in found if key not in ended.expected]
    astray = [
        each["memberKey"]
        for each in ended.members
        if each["status"] == "completed"
        and not (each["workerData"].get("AccountIsRight") and each["workerData"].get("AddressIsRight"))
    ]
    wrong += [f"{key} completed, and is not as they should be in the tenant" for key in astray]
    wrong += [
        f"{each['memberKey']}: {each['stepName']} failed, and its rollback is {each['rollbackStatus']}"
        for each in ended.failures
        if each["rollbackStatus"] != "succeeded"
    ]
    if ended.batch["status"] != "completed":
        wrong.append(f"the batch is {ended.batch['status']}")
    if not ended.polls:
        wrong.append("nothing was polled")
    return wrong
