"""Following a batch: what is told, in which order, to the end, through a restart of the server."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from matoolkit.cli.client import ApiClient, DoesNotFit, NotThere, Refused, ServerAway, SignInRefused
from matoolkit.cli.watch.changes import changes
from matoolkit.cli.watch.following import Following
from matoolkit.cli.watch.looking import Look, Observer
from matoolkit.cli.watch.pace import Pace
from matoolkit.cli.watch.screen import Screen, picture
from matoolkit.cli.watch.words import line_of, next_up
from matoolkit.clock import ManualClock
from matoolkit.hosts import api as host
from tests.api.people import step
from tests.cli.conftest import bad, good
from tests.cli.test_batch_commands import failing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.api.live import Live
    from tests.cli.conftest import Run

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.changes: list[dict[str, Any]] = []
        self.drawn: list[Look | None] = []

    def change(self, change: dict[str, Any], now: datetime) -> None:
        self.changes.append(change)

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        self.drawn.append(look)

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.changes if each["event"] == event]

    @property
    def events(self) -> list[str]:
        return [each["event"] for each in self.changes]


@pytest.fixture
def client(live: Live) -> Iterator[ApiClient]:
    with ApiClient(live.server.url, lambda: live.token("Admin"), sleep=lambda _: None) as client:
        yield client


@pytest.fixture
def function(live: Live) -> Iterator[Live]:
    """The server; what its worker does is as before afterwards."""
    yield live
    live.function = None


def following(client: ApiClient, batch: int, told: Told, meanwhile: Callable[[], Any], **more: Any) -> Following:
    """Bounded: what has not ended after a hundred pauses never will."""
    beats = itertools.count()

    def sleep(_seconds: float) -> None:
        assert next(beats) < 100, told.events
        meanwhile()

    return Following(client, batch, told, ManualClock(NOW), sleep, lambda: 0.0, 0.5, **more)


def init_and_phases(live: Live, *keys: str, **more: Any) -> int:
    return live.batch(*(keys or ("anna", "ben")), init=True, **more)


# To the end ----------------------------------------------------------------------------------------------------------


def test_taken_through_init_and_every_phase(live: Live, client: ApiClient) -> None:
    batch, told = init_and_phases(live), Told()
    last = following(client, batch, told, live.settle, advancing=True).to_the_end()
    assert last.batch["status"] == "completed"
    assert [each["answer"]["action"] for each in told.of("advanced")] == [
        "init_dispatched",
        "phase_dispatched",
        "phase_dispatched",
    ]
    phases = [(each["phase"]["phaseName"], each["phase"]["status"]) for each in told.of("phase")]
    assert phases[:2] == [("prepare", "pending"), ("move", "pending")]
    assert ("prepare", "completed") in phases
    assert phases[-1] == ("move", "completed")
    assert [each["batch"]["status"] for each in told.of("batch")][-1] == "completed"
    assert told.of("members")[-1]["membersByStatus"] == {"completed": 2}
    assert told.of("steps")[-1]["stepsByStatus"] == {"succeeded": 6}
    assert all(each["at"] == "2026-03-01T12:00:00Z" for each in told.changes)


def test_failures_are_told_once_with_who_where_and_why(function: Live, client: ApiClient) -> None:
    live, told = function, Told()
    live.function = failing("move")
    phases = [{"name": "go", "offset": "T-0", "steps": [step("move", on_failure="undo")]}]
    batch = live.batch("anna", "ben", phases=phases, rollbacks={"undo": [step("back")]})
    following(client, batch, told, live.settle, advancing=True).to_the_end()
    failures = told.of("failure")
    assert {each["step"]["memberKey"] for each in failures} == {"ben"}
    assert failures[-1]["step"]["rollbackStatus"] == "succeeded"
    assert line_of(failures[-1], NOW) == "failed: ben: go/move: NotFound: no such mailbox; rollback succeeded"
    assert len(failures) == len({each["step"]["rollbackStatus"] for each in failures})


def test_a_batch_whose_init_fails(function: Live, client: ApiClient) -> None:
    live, told = function, Told()
    live.function = failing("open")
    batch = init_and_phases(live)
    last = following(client, batch, told, live.settle, advancing=True).to_the_end()
    assert last.batch["status"] == "failed"
    [failure] = told.of("failure")
    assert line_of(failure, NOW).startswith("failed: init/open: ")


def test_a_batch_that_is_cancelled_meanwhile(live: Live, client: ApiClient) -> None:
    batch, told = init_and_phases(live), Told()
    acts = one_after_another([live.settle, lambda: client.cancel_batch(batch)], nothing)
    last = following(client, batch, told, acts).to_the_end()
    assert last.batch["status"] == "cancelled"


def test_who_only_watches_advances_nothing(live: Live, client: ApiClient) -> None:
    batch, told = init_and_phases(live), Told()
    acts = one_after_another([*[nothing] * 5, lambda: client.cancel_batch(batch)], nothing)
    following(client, batch, told, acts).to_the_end()
    assert told.of("advanced") == []
    assert told.of("waiting")[0]["waitingFor"] == "an operator, to advance it"


def test_an_advance_that_somebody_else_made_is_no_error(live: Live, client: ApiClient) -> None:
    batch, told = init_and_phases(live), Told()
    real = client.advance_batch
    refused: list[int] = []

    def advance(batch_id: int) -> dict[str, Any]:
        # Somebody is faster, each time.
        answer = real(batch_id)
        try:
            return real(batch_id)
        except Refused as error:
            refused.append(error.status)
            del answer
            raise

    client.advance_batch = advance  # type: ignore[method-assign]
    last = following(client, batch, told, live.settle, advancing=True).to_the_end()
    assert last.batch["status"] == "completed"
    assert refused


def test_a_batch_that_is_not_by_hand_is_not_advanced(live: Live, client: ApiClient) -> None:
    look = Observer(client, live.batch()).look()
    automatic = Look({**look.batch, "isManual": False}, look.phases, look.init_steps)
    told = Told()
    with pytest.raises(DoesNotFit, match="was not made by hand"):
        following(client, 1, told, lambda: None, advancing=True)._advance(automatic)


class Failing:
    """Answers as an API in whose batch more and more fails; counts how often it is asked for failures."""

    def __init__(self) -> None:
        self.failed, self.status, self.asked = 2500, "active", 0

    def batch(self, _batch_id: int) -> dict[str, Any]:
        return {"batch": {**look().batch, "status": self.status}, "initSteps": []}

    def phases(self, _batch_id: int, *, counts: bool) -> dict[str, Any]:
        assert counts
        return {"phases": [phase("move", "dispatched", stepsByStatus={"failed": self.failed})]}

    def steps(self, _batch_id: int, *, cursor: str | None = None, limit: int, **_: Any) -> dict[str, Any]:
        self.asked += 1
        first = int(cursor or 0)
        last = min(first + limit, self.failed)
        steps = [{"id": number, "phaseExecutionId": 1, "rollbackStatus": None} for number in range(first, last)]
        return {"steps": steps, "nextCursor": str(last) if last < self.failed else None}


def test_thousands_of_failures_are_told_once_and_asked_for_the_less_often() -> None:
    server: Any = Failing()
    observer = Observer(server, 7)
    told = [len(observer.look().failures)]
    for _ in range(9):
        server.failed += 100
        told.append(len(observer.look().failures))
    assert server.asked < 15
    server.status = "completed"
    told.append(len(observer.look().failures))
    assert sum(told) == server.failed == 3400
    before = server.asked
    server.status = "active"
    assert observer.look().failures == []
    assert server.asked == before


# Servers that go away ------------------------------------------------------------------------------------------------


def restarted(live: Live, url: str) -> None:
    """Another server at the same address."""
    live.server = host.server(live.services, "127.0.0.1", int(url.rpartition(":")[2]))
    live.server.start()


def one_after_another(acts: Sequence[Callable[[], Any]], then: Callable[[], Any]) -> Callable[[], Any]:
    """Does the first thing when it is called first, and so on."""
    left = iter(acts)

    def act() -> None:
        next(left, then)()

    return act


def nothing() -> None:
    """Happens."""


def test_a_restart_in_the_middle(live: Live, client: ApiClient) -> None:
    batch, told = init_and_phases(live), Told()
    url = live.server.url
    acts: list[Callable[[], Any]] = [live.settle, live.server.stop, nothing, nothing, lambda: restarted(live, url)]
    last = following(client, batch, told, one_after_another(acts, live.settle), advancing=True).to_the_end()
    assert last.batch["status"] == "completed"
    assert told.events.count("server-away") == 1
    assert told.events.count("server-back") == 1
    [away] = told.of("server-away")
    assert away["error"] == f"the server at {url} cannot be reached: Connection refused"
    assert line_of(away, NOW).startswith("trying again: the server at ")
    assert told.events.index("server-back") == told.events.index("server-away") + 1


def test_nobody_there_at_first_is_an_error(live: Live) -> None:
    with ApiClient("http://127.0.0.1:1", "t") as client, pytest.raises(ServerAway):
        following(client, 1, Told(), lambda: None).to_the_end()


def test_what_waiting_does_not_mend_is_an_error(live: Live, client: ApiClient) -> None:
    with pytest.raises(NotThere):
        following(client, 999999, Told(), lambda: None).to_the_end()
    batch, tokens = live.batch(), iter([live.token("Admin")] * 2)
    expiring = ApiClient(live.server.url, lambda: next(tokens, "no token"), sleep=lambda _: None)
    with expiring, pytest.raises(SignInRefused):
        following(expiring, batch, Told(), lambda: None).to_the_end()


# The commands --------------------------------------------------------------------------------------------------------


def process(live: Live, live_folder: Path, *arguments: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "MATOOLKIT_API_URL": live.server.url, "MATOOLKIT_DATA": str(live_folder)}
    command = [sys.executable, "-m", "matoolkit", "batch", *(str(each) for each in arguments), "--every", "0.2"]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


@pytest.mark.usefixtures("nothing_set")
def test_watched_by_a_program_while_it_runs(live: Live, live_folder: Path, client: ApiClient) -> None:
    batch = init_and_phases(live)
    with process(live, live_folder, "watch", batch, "--output", "json") as watching_it:
        assert watching_it.stdout is not None
        seen: list[dict[str, Any]] = []
        for line in watching_it.stdout:
            seen.append(json.loads(line))
            if seen[-1]["event"] == "waiting":
                client.advance_batch(batch)
                live.settle()
        assert watching_it.wait(30) == 0
    assert seen[0]["event"] == "batch"
    assert seen[0]["batch"].keys() == client.batch(batch)["batch"].keys()
    assert {"phase", "members", "steps", "waiting"} <= {each["event"] for each in seen}
    assert [each["batch"]["status"] for each in seen if each["event"] == "batch"][-1] == "completed"


@pytest.mark.usefixtures("nothing_set")
def test_advanced_to_the_end_as_text(function: Live, live_folder: Path) -> None:
    live = function
    live.function = failing("move")
    batch = init_and_phases(live, "anna", "ben", "carl")
    with process(live, live_folder, "advance", batch, "--auto") as advancing:
        assert advancing.stdout is not None
        lines = []
        for line in advancing.stdout:
            lines.append(line)
            live.settle()
        assert advancing.wait(30) == 0
    text = "".join(lines)
    assert "advanced: init begins\n" in text
    assert "advanced: phase 'prepare' begins for 3 members\n" in text
    assert "failed: ben: move/move: NotFound: no such mailbox\n" in text
    assert f"Batch {batch} is completed: 2 completed, 1 failed.\n" in text
    assert f"`matoolkit batch steps {batch} --status failed` lists what failed.\n" in text
    assert "\x1b" not in text


def test_a_batch_that_has_ended_is_told_at_once(run: Run, live: Live, client: ApiClient) -> None:
    batch = live.batch()
    client.cancel_batch(batch)
    result = run("batch", "watch", batch)
    assert result.exit_code == 1
    assert result.stdout.endswith(f"Batch {batch} is cancelled: 2 removed.\n")
    assert result.stderr == ""
    assert "cancelled" in bad(run("batch", "advance", batch))
    events = [json.loads(line) for line in run("batch", "watch", batch, "--output", "json").stdout.splitlines()]
    assert events[0]["batch"]["status"] == "cancelled"


def test_who_stops_watching_stops_nothing_else(run: Run, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = live.batch()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("matoolkit.cli.watch.following.Following.to_the_end", interrupted)
    result = run("batch", "watch", batch)
    assert result.exit_code == 1
    assert f"The batch goes on; `matoolkit batch watch {batch}` follows it again." in result.stderr
    assert "detected" in good(run("batch", "get", batch))


# What is told --------------------------------------------------------------------------------------------------------


def look(status: str = "active", phases: Any = None, *, manual: bool = False, **more: Any) -> Look:
    batch = {
        "id": 7,
        "runbookName": "wave \x1b[31m",
        "runbookVersion": 3,
        "status": status,
        "isManual": manual,
        "initDispatchedAt": None,
        "memberCount": 4,
        "membersByStatus": {"active": 3, "failed": 1},
        "heldRemovals": 0,
        "waitingFor": None,
        **more,
    }
    return Look(batch, phases if phases is not None else [phase("prepare", "completed"), phase("move", "pending")], [])


def phase(name: str, status: str, due: str | None = "2026-03-01T12:05:00Z", **more: Any) -> dict[str, Any]:
    return {
        "id": hash(name),
        "phaseName": name,
        "status": status,
        "dueAt": due,
        "skipReason": None,
        "stepsByStatus": {"succeeded": 2},
        **more,
    }


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (look(), "phase 'move', due 2026-03-01 12:05:00Z (in 5 min)"),
        (look("completed"), "nothing: the batch has ended"),
        (
            look(phases=[phase("a", "dispatched"), phase("b", "pending")]),
            "'a' goes on until every member is through; then phase 'b', due 2026-03-01 12:05:00Z (in 5 min)",
        ),
        (look(phases=[phase("a", "dispatched")]), "'a' goes on until every member is through; then the batch ends"),
        (
            look(phases=[phase("a", "dispatched"), phase("b", "pending", None)], manual=True),
            "'a' goes on until every member is through; then phase 'b', once the batch is advanced",
        ),
        (look("detected", waitingFor="init"), "it waits for init"),
        (look(phases=[phase("a", "completed")]), "the last members end their steps; then the batch ends"),
    ],
)
def test_what_happens_next(seen: Look, expected: str) -> None:
    assert next_up(seen, NOW) == expected


def test_only_what_is_different_is_told() -> None:
    before = look()
    assert list(changes(before, look())) == []
    after = look(phases=[phase("prepare", "completed"), phase("move", "dispatched")], heldRemovals=2, waitingFor="x")
    assert [each["event"] for each in changes(before, after)] == ["phase", "held-removals", "waiting"]
    ended = look("failed", membersByStatus={"failed": 4})
    assert [each["event"] for each in changes(before, ended)] == ["batch", "members"]


def test_every_event_is_described() -> None:
    root = Path(__file__).parents[2]
    files = (root / "src/matoolkit/cli/watch").glob("*.py")
    told = {name for file in files for name in re.findall(r'"event": "([a-z-]+)"', file.read_text())}
    page = (root / "docs/commands.md").read_text()
    rows = page.partition("| event | with |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert {name for row in rows for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])} == told
    assert len(told) >= 9


def test_pace_is_of_the_last_minute() -> None:
    pace = Pace()
    assert pace.per_minute is None
    for second in range(0, 300, 10):
        pace.note(second, second * (1 if second <= 200 else 2))
    assert pace.per_minute == 120


def test_a_pace_that_would_run_backwards_is_none() -> None:
    pace = Pace()
    pace.note(0, 5)
    pace.note(10, 4)
    assert pace.per_minute is None


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_picture_fits_and_harms_nobody(width: int) -> None:
    seen = look(
        phases=[
            phase(
                "pre-stage of everything there is",
                "completed",
                stepsByStatus={"succeeded": 4000, "failed": 12, "dispatched": 7},
            ),
            phase("cutover", "pending", "2026-03-03T12:05:00Z", stepsByStatus={}),
        ],
        heldRemovals=3,
        waitingFor="worker 'w\x1b[2J', which is silent",
    )
    seen.init_steps.append({"status": "succeeded"})
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    for each in picture(seen, 120.0, NOW):
        console.print(each)
    found = console.file
    assert isinstance(found, io.StringIO)
    text = found.getvalue()
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    for word in ("wave", "prepare"[:3], "cutover", "release-removals", "4,012", "120", "silent", "12"):
        assert word in text


def test_a_screen_keeps_what_failed_above(capsys: pytest.CaptureFixture[str]) -> None:
    failed: dict[str, Any] = {"phaseName": "go", "stepName": "move", "memberKey": "b\x1b[2J", "status": "failed"}
    failed |= {"errorMessage": "no", "rollbackStatus": None}
    with Screen() as screen:
        screen.draw(look(), None, NOW)
        screen.change({"event": "failure", "step": failed}, NOW)
        screen.change({"event": "server-away", "error": "nobody \x1b[2J there"}, NOW)
        screen.draw(look(), None, NOW)
        screen.change({"event": "server-back"}, NOW)
        screen.draw(look("completed"), None, NOW)
    out = capsys.readouterr().out
    assert r"12:00:00Z  failed: b\x1b[2J: go/move: no" in out
    assert "\x1b[2J" not in out
