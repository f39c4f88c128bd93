"""Microsoft's own driver against a server of ours, over a real socket: what arrives there, and what errors become."""

from __future__ import annotations

import logging
import ssl
import struct
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from sqlalchemy import insert, text

from matoolkit.store import audit, batches, creation, leases, roster, runbooks
from matoolkit.store.arriving import Patience
from matoolkit.store.database import GuardFailed, Transaction, open_database
from matoolkit.store.errors import (
    DatabaseFull,
    DatabaseUnavailable,
    RuleBroken,
    SchemaMismatch,
    SignInRefused,
    StoreError,
    TransactionConflict,
)
from matoolkit.store.locking import LOCK_BATCHES, lock_batches
from matoolkit.store.migrate import migrate, require_current
from matoolkit.store.runbooks import PublishedRunbook
from matoolkit.store.schema import leases as leases_table
from matoolkit.store.states import BatchStatus
from tests.doubles.tds import types
from tests.doubles.tds.server import Break, Changed, Failure, Hold, Rows
from tests.doubles.tds.types import Column
from tests.store.azure_sql.server import ASLEEP, TOKEN, AzureSql, one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.store.database import Database

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[AzureSql]:
    server = AzureSql()
    with server.double:
        yield server


@pytest.fixture
def database(server: AzureSql) -> Iterator[Database]:
    database = server.database()
    yield database
    database.close()


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds

    def patience(self, seconds: float = 120.0) -> Patience:
        return Patience(seconds, lambda: self.at, self.sleep)


# Signing in ----------------------------------------------------------------------------------------------------------


def test_every_connection_is_signed_in_with_a_token_of_its_own(server: AzureSql, database: Database) -> None:
    with database.reading() as first, database.reading() as second:
        for tx in (first, second):
            tx.execute(text("SELECT 1")).all()
    assert [login.token for login in server.double.logins] == [TOKEN, TOKEN]
    assert [(login.user, login.password, login.database) for login in server.double.logins] == [("", "", "waves")] * 2
    assert server.scopes == ["https://database.windows.net/.default"] * 2


def test_a_connection_is_kept_and_its_token_not_asked_for_again(server: AzureSql, database: Database) -> None:
    for _ in range(3):
        with database.transaction() as tx:
            tx.execute(text("SELECT 1")).all()
    assert (len(server.double.logins), len(server.scopes)) == (1, 1)


def test_who_is_not_let_in_is_told_so_at_once(server: AzureSql) -> None:
    time, database = Time(), server.database(token="another-token")
    with pytest.raises(SignInRefused, match=r"^the Azure SQL database waves on 127.0.0.1:\d+: Login failed") as caught:
        require_current(database, time.patience())
    assert not caught.value.retryable
    assert "another-token" not in str(caught.value)
    assert time.slept == []


def test_a_user_with_a_password(server: AzureSql) -> None:
    server.double.token = None
    address = f"Server=127.0.0.1,{server.double.port};Database=waves;UID=anna;PWD={{sword;f}}}}ish}};Encrypt=no"
    database = open_database(address)
    require_current(database)
    database.close()
    (login,) = server.double.logins
    assert (login.user, login.password, login.token) == ("anna", "sword;f}ish", None)


def test_a_connection_may_be_encrypted() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    trustme.CA().issue_cert("localhost", "127.0.0.1").configure_cert(context)
    server = AzureSql(tls=context)
    with server.double:
        database = server.database("TrustServerCertificate=yes")
        require_current(database)
        database.close()
    assert [login.token for login in server.double.logins] == [TOKEN]


# A database that sleeps ----------------------------------------------------------------------------------------------


def test_a_database_that_sleeps_is_waited_for(
    server: AzureSql, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    server.double.refusals += [ASLEEP, ASLEEP]
    time = Time()
    with caplog.at_level(logging.WARNING):
        require_current(database, time.patience())
    assert time.slept == [2.0, 3.0]
    assert len(server.double.logins) == 3
    told = [record.getMessage() for record in caplog.records if record.name == "matoolkit.store.arriving"]
    assert len(told) == 2
    assert told[0].startswith("the Azure SQL database waves on 127.0.0.1:")
    assert "it may be waking up: trying again in 2 s, for another 120 s" in told[0]


def test_patience_has_an_end(server: AzureSql, database: Database) -> None:
    server.double.refusals += [ASLEEP] * 50
    time = Time()
    with pytest.raises(DatabaseUnavailable, match="is not currently available"):
        require_current(database, time.patience(30.0))
    assert 30.0 <= sum(time.slept) <= 45.0


def test_a_server_that_is_not_there_is_unavailable(server: AzureSql) -> None:
    server.double.__exit__()
    time, database = Time(), server.database("Encrypt=no;Connection Timeout=1")
    with pytest.raises(DatabaseUnavailable, match=r"^the Azure SQL database waves on 127.0.0.1:\d+: "):
        require_current(database, time.patience(3.0))
    assert time.slept


# What arrives --------------------------------------------------------------------------------------------------------


def test_a_transaction_arrives_as_one(server: AzureSql, database: Database) -> None:
    with database.transaction() as tx:
        assert leases.take(tx, "scheduler", "me", NOW, timedelta(seconds=5))
    begun = [each for each in server.texts() if each != "BEGIN"]
    assert begun[-1] == "COMMIT"
    assert [each.split()[0] for each in begun] == ["UPDATE", "COMMIT"]


def test_a_transaction_that_fails_is_undone(server: AzureSql, database: Database) -> None:
    server.when("^UPDATE leases", Changed(0))
    with pytest.raises(GuardFailed), database.transaction() as tx:
        tx.change(leases.KEEP, 1, named="scheduler", by="me", until=NOW)
    texts = [each for each in server.texts() if each != "BEGIN"]
    assert [each.split()[0] for each in texts] == ["UPDATE", "ROLLBACK"]


def test_locking_reads_arrive_with_their_hints(server: AzureSql, database: Database) -> None:
    with database.transaction() as tx:
        lock_batches(tx, [12, 5])
    call = next(call for call in server.double.calls if "XLOCK" in call.text)
    assert "FROM batches WITH (XLOCK, ROWLOCK, FORCESEEK) JOIN" in call.text
    assert call.values == ("[[5],[12]]",)


@pytest.mark.parametrize("ids", [range(3), range(3000)])
def test_a_set_is_one_parameter_whose_type_does_not_depend_on_how_long_it_is(
    server: AzureSql, database: Database, ids: range
) -> None:
    with database.transaction() as tx:
        lock_batches(tx, ids)
    call = next(call for call in server.double.calls if "XLOCK" in call.text)
    assert call.declared.lower() == "@p1 nvarchar(max)"
    assert call.values[0].count("[") == len(ids) + 1


@pytest.mark.parametrize(("actor", "since"), [(None, None), ("anna", NOW), ("Zoë 🎉" * 20, None)])
def test_missing_values_are_declared_like_those_that_are_there(
    server: AzureSql, database: Database, actor: str | None, since: datetime | None
) -> None:
    from matoolkit.store.audit_lists import LIST

    with database.reading() as tx:
        tx.execute(LIST, before=2**40, actor=actor, since=since, skip=0, size=10).all()
    (call,) = [call for call in server.double.calls if "FROM audit" in call.text]
    declared = [part.split()[-1].lower().removesuffix("(7)") for part in call.declared.replace(" ,", ",").split(",")]
    assert declared[:5] == ["bigint", "nvarchar(4000)", "nvarchar(4000)", "datetime2", "datetime2"]
    assert set(declared[5:]) <= {"int", "integer"}
    at = None if since is None else since.replace(tzinfo=None)
    assert call.values == (2**40, actor, actor, at, at, 0, 10)
    # The driver would have asked the server otherwise, which cannot say what `? IS NULL` stands for.
    assert not any("sp_describe" in each.text for each in server.double.calls)


def test_states_and_moments_arrive_as_they_are(server: AzureSql, database: Database) -> None:
    with database.transaction() as tx:
        tx.change(batches.ACTIVATE, 1, batch=7)
    (call,) = [call for call in server.double.calls if call.text.startswith("UPDATE batches")]
    assert call.values == (str(BatchStatus.ACTIVE), 7)
    assert all(type(value) in {str, int} for value in call.values)


def test_what_comes_back_is_rows_of_values(server: AzureSql, database: Database) -> None:
    columns = [
        Column("id", types.BIGINT),
        Column("batch_start_time", types.DATETIME2),
        Column("is_open", types.INT),
    ]
    server.when("FROM batches JOIN", Rows(columns, [(2**40, NOW.replace(tzinfo=None), 1), (3, None, 0)]))
    with database.reading() as tx:
        found = tx.with_rows(roster.BATCHES_AT, roster.STARTS, [(NOW,)], named="wave").all()
    assert found == [(2**40, NOW, 1), (3, None, 0)]
    assert all(type(row) is tuple for row in found)
    (call,) = [call for call in server.double.calls if "FROM batches JOIN" in call.text]
    assert call.values == ('[["2026-03-01 12:00:00.123456"]]', "wave")


def test_a_plain_insert_arrives(server: AzureSql, database: Database) -> None:
    with database.transaction() as tx:
        tx.connection.execute(insert(leases_table), {"name": "x", "holder": "Zoë", "expires_at": NOW})
    (call,) = [call for call in server.double.calls if call.text.startswith("INSERT")]
    assert call.values == ("x", "Zoë", NOW.replace(tzinfo=None))


# What errors become --------------------------------------------------------------------------------------------------

KEPT = [
    (
        1205,
        (
            "Transaction (Process ID 55) was deadlocked on lock resources with another process and has been chosen as"
            " the deadlock victim. Rerun the transaction."
        ),
        TransactionConflict,
    ),
    (1222, "Lock request time out period exceeded.", TransactionConflict),
    (
        3960,
        (
            "Snapshot isolation transaction aborted due to update conflict. You cannot use snapshot isolation to access"
            " table 'dbo.batches' directly or indirectly."
        ),
        TransactionConflict,
    ),
    (
        2627,
        (
            "Violation of UNIQUE KEY constraint 'uq_batch_members'. Cannot insert duplicate key in object"
            " 'dbo.batch_members'. The duplicate key value is (1, secret@example.test)."
        ),
        TransactionConflict,
    ),
    (
        2601,
        (
            "Cannot insert duplicate key row in object 'dbo.step_executions' with unique index 'ux_place'. The"
            " duplicate key value is (1, secret@example.test)."
        ),
        TransactionConflict,
    ),
    (
        547,
        (
            'The INSERT statement conflicted with the FOREIGN KEY constraint "fk_x". The conflict occurred in database'
            ' "waves", table "dbo.batches", column \'id\'.'
        ),
        TransactionConflict,
    ),
    (
        547,
        (
            'The UPDATE statement conflicted with the CHECK constraint "ck_batches_status". The conflict occurred in'
            ' database "waves", table "dbo.batches", column \'status\'.'
        ),
        RuleBroken,
    ),
    (
        515,
        (
            "Cannot insert the value NULL into column 'data_json', table 'waves.dbo.batch_members'; column does not"
            " allow nulls. INSERT fails."
        ),
        RuleBroken,
    ),
    (
        2628,
        (
            "String or binary data would be truncated in table 'waves.dbo.batches', column 'created_by'. Truncated"
            " value: 'secret@example.test'."
        ),
        RuleBroken,
    ),
    (
        40544,
        (
            "The database 'waves' has reached its size quota. Partition or delete data, drop indexes, or consult the"
            " documentation for possible resolutions."
        ),
        DatabaseFull,
    ),
    (9002, "The transaction log for database 'waves' is full due to 'ACTIVE_TRANSACTION'.", DatabaseFull),
]
GONE = [
    (ASLEEP.number, ASLEEP.text),
    (40197, "The service has encountered an error processing your request. Please try again. Error code 40540."),
    (40501, "The service is currently busy. Retry the request after 10 seconds. Incident ID: {1}. Code: 2."),
    (
        40540,
        (
            "Transaction was aborted as database is moved to read-only mode. This is a temporary situation and please"
            " retry the operation."
        ),
    ),
    (49918, "Cannot process request. Not enough resources to process request. Please retry you request later."),
    (
        49919,
        (
            "Cannot process create or update request. Too many create or update operations in progress for subscription"
            ' "x".'
        ),
    ),
    (49920, 'Cannot process request. Too many operations in progress for subscription "x".'),
    (10928, "Resource ID : 1. The request limit for the database is 75 and has been reached. See 'x' for assistance."),
    (
        10929,
        (
            "Resource ID: 1. The request minimum guarantee is 0, maximum limit is 75 and the current usage for the"
            " database is 80. However, the server is currently too busy to support requests greater than 75 for this"
            " database."
        ),
    ),
    (4060, 'Cannot open database "waves" requested by the login. The login failed.'),
]
NETWORK = [
    (64, "TCP Provider: The specified network name is no longer available."),
    (233, "Shared Memory Provider: No process is on the other end of the pipe."),
    (10053, "TCP Provider: An established connection was aborted by the software in your host machine."),
    (10054, "TCP Provider: An existing connection was forcibly closed by the remote host."),
    (
        10060,
        (
            "TCP Provider: A connection attempt failed because the connected party did not properly respond after a"
            " period of time, or established connection failed because connected host has failed to respond."
        ),
    ),
]


def failing(database: Database, act: Callable[[Transaction], object]) -> StoreError:
    with pytest.raises(StoreError) as caught, database.transaction() as tx:
        act(tx)
    return caught.value


def switch(tx: Transaction) -> None:
    tx.change(batches.ACTIVATE, 1, batch=7)


@pytest.mark.parametrize(("number", "said", "expected"), KEPT, ids=lambda value: str(value)[:20])
def test_what_the_server_says(
    server: AzureSql, database: Database, number: int, said: str, expected: type[StoreError]
) -> None:
    server.once("^UPDATE batches", Failure(number, said))
    error = failing(database, switch)
    assert (type(error), error.retryable) == (expected, expected is not RuleBroken)
    assert "secret@" not in str(error)
    assert "[Microsoft]" not in str(error)
    # The connection is still good, and what was begun on it is undone.
    with database.transaction() as tx:
        switch(tx)
    assert len(server.double.logins) == 1
    # Whom the server chose as a deadlock's victim it has undone itself, and some drivers know that.
    assert "ROLLBACK" in server.texts() or number == 1205


@pytest.mark.parametrize(("number", "said"), [*GONE, *NETWORK], ids=lambda value: str(value)[:20])
def test_a_database_that_goes_away_is_unavailable_and_then_there_again(
    server: AzureSql, database: Database, number: int, said: str
) -> None:
    server.once("^UPDATE batches", Failure(number, said))
    error = failing(database, switch)
    assert (type(error), error.retryable) == (DatabaseUnavailable, True)
    assert str(error).startswith("the Azure SQL database waves on 127.0.0.1:")
    with database.transaction() as tx:
        switch(tx)
    assert len(server.double.logins) == 2


@pytest.mark.parametrize("where", ["^UPDATE batches", "^COMMIT$"])
def test_a_connection_that_breaks_is_made_anew_for_the_next_transaction(
    server: AzureSql, database: Database, where: str
) -> None:
    server.once(where, Break())
    committed: list[str] = []

    def act(tx: Transaction) -> None:
        tx.after_commit(lambda: committed.append("yes"))
        switch(tx)

    error = failing(database, act)
    assert (type(error), error.retryable) == (DatabaseUnavailable, True)
    assert committed == []
    with database.transaction() as tx:
        act(tx)
    assert committed == ["yes"]
    assert len(server.double.logins) == 2


def test_when_one_connection_breaks_no_other_is_believed(server: AzureSql, database: Database) -> None:
    with database.reading() as first, database.reading() as second, database.reading() as third:
        for tx in (first, second, third):
            tx.execute(text("SELECT 1")).all()
    server.once("^UPDATE batches", Break())
    failing(database, switch)
    for _ in range(3):
        with database.transaction() as tx:
            switch(tx)
    assert len(server.double.logins) == 3 + 3


def test_a_statement_that_takes_too_long_is_given_up(server: AzureSql) -> None:
    server.once("^UPDATE batches", Hold(Event()))
    database = server.database("Encrypt=no;Command Timeout=1")
    error = failing(database, switch)
    assert (type(error), error.retryable) == (TransactionConflict, True)
    assert server.double.attention.wait(5)
    with database.transaction() as tx:
        switch(tx)
    database.close()


def test_a_fault_of_the_program_stays_what_it_is(server: AzureSql, database: Database) -> None:
    server.when("^UPDATE batches", Failure(207, "Invalid column name 'colour'."))
    with pytest.raises(Exception, match="Invalid column name 'colour'") as caught, database.transaction() as tx:
        switch(tx)
    assert not isinstance(caught.value, StoreError)


def test_a_table_that_may_not_be_written_is_no_reason_to_wait(server: AzureSql, database: Database) -> None:
    denied = "The UPDATE permission was denied on the object 'batches', database 'waves', schema 'dbo'."
    server.when("^UPDATE batches", Failure(229, denied, severity=14))
    with pytest.raises(Exception, match="permission was denied") as caught, database.transaction() as tx:
        switch(tx)
    assert not getattr(caught.value, "retryable", False)


# Being ready ---------------------------------------------------------------------------------------------------------


def test_a_database_whose_readers_wait_for_writers_is_refused(server: AzureSql, database: Database) -> None:
    server.snapshots = False
    for check in (require_current, migrate):
        with pytest.raises(SchemaMismatch, match="ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON"):
            check(database)


def test_a_database_of_an_old_level_is_refused(server: AzureSql, database: Database) -> None:
    server.level = 120
    with pytest.raises(SchemaMismatch, match="ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 160"):
        require_current(database)


def test_an_old_schema_is_refused(server: AzureSql, database: Database) -> None:
    server.revision = ""
    with pytest.raises(SchemaMismatch, match="has no tables of matoolkit: run `matoolkit migrate`"):
        require_current(database)


def test_the_schema_is_written_in_one_transaction_alone(server: AzureSql, database: Database) -> None:
    server.revision = ""
    report = migrate(database)
    assert report.applied == ["0001"]
    texts = server.texts()
    begin = next(place for place, each in enumerate(texts) if "sp_getapplock" in each)
    rest = texts[begin:]
    assert rest.index("COMMIT") == len(rest) - 1
    created = [each.split()[2] for each in rest if each.strip().startswith("CREATE TABLE")]
    assert {"batches", "batch_members", "step_executions", "outbox", "alembic_version"} <= set(created)
    assert any("INSERT INTO alembic_version" in each for each in rest)
    assert sum("LOCK_ESCALATION = DISABLE" in each for each in rest) == 5
    assert report.database.startswith("the Azure SQL database waves on ")


def test_who_migrates_waits_for_another_one_and_not_for_ever(server: AzureSql, database: Database) -> None:
    server.when("sp_getapplock", *one(-1, types.INT))
    with pytest.raises(TransactionConflict, match="somebody else has been migrating"):
        migrate(database)
    assert not any("CREATE TABLE" in each for each in server.texts())


def test_a_token_as_the_driver_takes_it() -> None:
    from matoolkit.store.azure_sql.sign_in import packed

    assert packed("ab") == struct.pack("<i", 4) + b"a\0b\0"


def test_statements_are_those_of_the_golden_text(server: AzureSql, database: Database) -> None:
    from devtools.golden_statements import compiled, dialects

    with database.transaction() as tx:
        tx.with_rows(LOCK_BATCHES, _ids(), [(1,)]).all()
    golden = compiled(LOCK_BATCHES, dialects()["mssql"])
    (call,) = [call for call in server.double.calls if "XLOCK" in call.text]
    assert " ".join(call.text.replace("@P1", ":given").split()) == " ".join(golden.split())


def _ids() -> Any:
    from matoolkit.store.locking import IDS

    return IDS


# Plain inserts, which go through SQLAlchemy ---------------------------------------------------------------------------


def test_a_batch_gives_its_id(server: AzureSql, database: Database) -> None:
    server.when("^INSERT INTO batches", Rows([Column("id", types.BIGINT)], [(2**33,)]))
    runbook = PublishedRunbook(5, "Wave", 1, "name: wave\n", True, "rerun", False, False)
    with database.transaction() as tx:
        made = creation.create_batch(tx, runbook, name_folded="wave", start_time=None, now=NOW, is_manual=True)
    assert made == 2**33
    (call,) = [call for call in server.double.calls if call.text.startswith("INSERT INTO batches")]
    assert "OUTPUT inserted.id VALUES" in call.text
    assert [str(value) for value in call.values[:4]] == ["5", "wave", "None", "detected"]


def test_several_phases_are_written_at_once(server: AzureSql, database: Database) -> None:
    phases: list[dict[str, Any]] = [
        {"phase_name": name, "offset_minutes": minutes, "due_at": due}
        for name, minutes, due in (("early", 10, NOW), ("später", 0, None))
    ]
    with database.transaction() as tx:
        creation.add_phases(tx, 7, 1, phases)
    written = [call.values for call in server.double.calls if call.text.startswith("INSERT INTO phase_executions")]
    flat = [value for values in written for value in values]
    assert {"early", "später", NOW.replace(tzinfo=None), "pending"} <= {*filter(None, flat)}


def test_a_runbook_is_published_and_its_publishing_noted(server: AzureSql, database: Database) -> None:
    server.when("coalesce\\(max\\(runbooks.version\\)", *one(3, types.INT))
    with database.transaction() as tx:
        assert runbooks.publish(tx, name="Wave", yaml_content="name: wave\n" * 1000, now=NOW, by="Zoë") == 4
        audit.record(tx, NOW, "Zoë", "runbook.published", "Wave", detail={"version": 4})
    texts = [each.split()[0] for each in server.texts() if each != "BEGIN"]
    assert texts == ["SELECT", "UPDATE", "INSERT", "INSERT", "COMMIT"]
    (call,) = [call for call in server.double.calls if call.text.startswith("INSERT INTO runbooks")]
    assert "name: wave\n" * 1000 in call.values
