"""Dataverse as a source: the real client against a TDS server of our own, over a real socket."""

from __future__ import annotations

import socket
import ssl
import tracemalloc
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from matoolkit.scheduler.sources import (
    BadConnection,
    NothingToRead,
    QueryRefused,
    RowCapExceeded,
    SignInRefused,
    SourceUnavailable,
    TimeLimitExceeded,
    open_source,
)
from matoolkit.scheduler.sources.connection_string import parse_connection_string
from tests.doubles.tds import types
from tests.doubles.tds.server import Break, Failure, Hold, Rows, Step, Stop, TdsDouble
from tests.doubles.tds.types import Column
from tests.scheduler.sources.reading import chunks, described, settings, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.scheduler.sources import SourceSettings

TOKEN = "a-good-token"
QUERY = "SELECT id, n FROM contact WHERE name LIKE 'a%'"
ASKING = described("dataverse", "DATAVERSE_ORG", QUERY)
PEOPLE = [Column("id", types.NVARCHAR), Column("n", types.INT)]


class Tokens:
    """Who signs in, and what for."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token
        self.asked: list[tuple[str, str | None]] = []

    def __call__(self, scope: str, client_id: str | None = None) -> str:
        self.asked.append((scope, client_id))
        return self.token


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return str(file)


def certificate(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    authority.issue_cert(*names).configure_cert(context)
    return context


def on(double: TdsDouble, value: str = "Server=localhost,{port};Database=org", **changes: Any) -> SourceSettings:
    environment = {"DATAVERSE_ORG": value.format(port=double.port)}
    return settings(environment, **{"tokens": Tokens(), "plain_loopback": True, **changes})


def answering(*steps: Step, **changes: Any) -> TdsDouble:
    return TdsDouble(answers={QUERY: list(steps)}, **changes)


# Results -------------------------------------------------------------------------------------------------------------

VALUES: list[tuple[str, types.Type, Any, Any]] = [
    ("text", types.NVARCHAR, "Zoë 🎉 0042", "Zoë 🎉 0042"),
    ("long", types.NVARCHAR_MAX, "é" * 100_000, "é" * 100_000),
    ("empty", types.NVARCHAR, "", ""),
    ("i", types.INT, -7, -7),
    ("l", types.BIGINT, 9007199254740993, 9007199254740993),
    ("yes", types.BIT, True, True),
    ("no", types.BIT, False, False),
    ("f", types.FLOAT, 2.5, 2.5),
    ("d", types.decimal(18, 2), Decimal("-1.50"), Decimal("-1.50")),
    ("m", types.MONEY, Decimal("12.3400"), Decimal("12.3400")),
    ("id", types.GUID, "6f9619ff-8b86-d011-b42d-00c04fc964ff", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
    ("day", types.DATE, date(2026, 3, 1), date(2026, 3, 1)),
    ("at", types.TIME, time(23, 59, 1, 5), time(23, 59, 1, 5)),
    ("local", types.DATETIME2, datetime(2026, 3, 1, 8, 0, 0, 123456), datetime(2026, 3, 1, 8, 0, 0, 123456)),  # noqa: DTZ001
    ("old", types.DATETIME, datetime(2026, 3, 1, 8), datetime(2026, 3, 1, 8)),  # noqa: DTZ001 - they have no zone
    (
        "zoned",
        types.DATETIMEOFFSET,
        datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 3, 1, 6, tzinfo=UTC),
    ),
    ("bytes", types.VARBINARY, b"\x00\xff", "00ff"),
    ("many", types.VARBINARY_MAX, b"\x01" * 9000, "01" * 9000),
]


@pytest.mark.parametrize("compressed", [False, True])
def test_values_keep_their_types(compressed: bool) -> None:
    columns = [Column(name, kind) for name, kind, _, _ in VALUES]
    rows = [[value for _, _, value, _ in VALUES], [None] * len(VALUES)]
    with answering(Rows(columns, rows, compressed)) as double:
        names, found = table(ASKING, on(double))
    assert names == tuple(name for name, _, _, _ in VALUES)
    assert found == [tuple(value for _, _, _, value in VALUES), (None,) * len(VALUES)]
    assert [type(value) for value in found[0]] == [type(value) for _, _, _, value in VALUES]
    zoned = found[0][names.index("zoned")]
    assert zoned.utcoffset() == timedelta(hours=2)


def test_columns_of_the_same_name_stay() -> None:
    with answering(Rows([Column("a", types.INT)] * 10, [list(range(10))])) as double:
        assert table(ASKING, on(double)) == (("a",) * 10, [tuple(range(10))])


def test_an_empty_result_has_columns() -> None:
    with answering(Rows(PEOPLE)) as double:
        assert [(chunk.columns, list(chunk.rows)) for chunk in chunks(ASKING, on(double))] == [(("id", "n"), [])]


def test_no_columns_are_nothing_to_read() -> None:
    with answering() as double, pytest.raises(NothingToRead):
        chunks(ASKING, on(double))


@pytest.mark.parametrize("packet_size", [512, 4096, 32_767])
def test_rows_come_in_chunks_whatever_the_packets_are(packet_size: int) -> None:
    rows = [(f"user{n}@example.com", n) for n in range(2500)]
    with answering(Rows(PEOPLE, rows), packet_size=packet_size) as double:
        found = chunks(ASKING, on(double))
    assert [len(chunk.rows) for chunk in found] == [1000, 1000, 500]
    assert [row for chunk in found for row in chunk.rows] == rows


def test_packets_that_are_not_full_are_read_as_well() -> None:
    """Servers may send what they have, in the middle of a value too."""
    columns = [Column(name, kind) for name, kind, _, _ in VALUES]
    rows = [[value for _, _, value, _ in VALUES]] * 20
    with answering(Rows(columns, rows), ragged=True) as double:
        assert table(ASKING, on(double))[1] == [tuple(value for _, _, _, value in VALUES)] * 20


def test_rows_do_not_add_up() -> None:
    with answering(Rows(PEOPLE, (("x" * 500, n) for n in range(10_000)))) as double:
        tracemalloc.start()
        try:
            with closing(open_source(ASKING, on(double)).read()) as found:
                assert sum(len(chunk.rows) for chunk in found) == 10_000
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
        finally:
            tracemalloc.stop()


# Signing in ----------------------------------------------------------------------------------------------------------


def test_who_signs_in_and_what_for() -> None:
    tokens = Tokens()
    with answering(Rows(PEOPLE)) as double:
        chunks(ASKING, on(double, tokens=tokens))
        (login,) = double.logins
        assert double.queries == [QUERY]
    assert tokens.asked == [("https://localhost/.default", None)]
    assert (login.token, login.database, login.server) == (TOKEN, "org", "localhost")
    assert (login.user, login.password, login.application, login.read_only) == ("", "", "matoolkit", True)


def test_a_wrong_token_is_refused_and_not_told() -> None:
    with answering(Rows(PEOPLE)) as double, pytest.raises(SignInRefused, match="Login failed") as caught:
        chunks(ASKING, on(double, tokens=Tokens("a-bad-token")))
    assert "a-bad-token" not in str(caught.value)
    assert not caught.value.retryable


def test_it_speaks_tls(authority: trustme.CA, ca_file: str) -> None:
    with answering(Rows(PEOPLE, [("a", 1)]), tls=certificate(authority, "localhost")) as double:
        assert table(ASKING, on(double, plain_loopback=False, ca_file=ca_file))[1] == [("a", 1)]


def test_large_results_pass_through_tls(authority: trustme.CA, ca_file: str) -> None:
    rows = [("x" * 1000, n) for n in range(3000)]
    with answering(Rows(PEOPLE, rows), tls=certificate(authority, "localhost")) as double:
        assert table(ASKING, on(double, plain_loopback=False, ca_file=ca_file))[1] == rows


@pytest.mark.parametrize("name", ["example.com", "localhost.example.com", "*.localhost", "ocalhost"])
def test_a_certificate_for_another_host_is_refused(authority: trustme.CA, ca_file: str, name: str) -> None:
    with answering(Rows(PEOPLE), tls=certificate(authority, name)) as double:
        with pytest.raises(SourceUnavailable, match="Certificate does not match"):
            chunks(ASKING, on(double, plain_loopback=False, ca_file=ca_file))
        assert double.logins == []


def test_a_certificate_of_nobody_known_is_refused(authority: trustme.CA) -> None:
    with answering(Rows(PEOPLE), tls=certificate(authority, "localhost")) as double:
        with pytest.raises(SourceUnavailable, match="no certificate that this machine trusts"):
            chunks(ASKING, on(double, plain_loopback=False))
        assert double.logins == []


@pytest.mark.parametrize("encryption", [0, 2])
def test_a_server_without_encryption_gets_no_token(encryption: int, ca_file: str) -> None:
    with answering(Rows(PEOPLE), encryption=encryption) as double:
        with pytest.raises(SourceUnavailable):
            chunks(ASKING, on(double, plain_loopback=False, ca_file=ca_file))
        assert double.logins == []


def test_who_is_sent_elsewhere_goes_there() -> None:
    with answering(Rows(PEOPLE, [("a", 1)])) as target, answering(routes=[("localhost", target.port)]) as double:
        assert table(ASKING, on(double))[1] == [("a", 1)]
        assert double.queries == []


# What goes wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "kind", "retryable"),
    [
        (Failure(208, "Invalid object name 'contact'."), QueryRefused, False),
        (Failure(40000, "Update is not allowed here\nsecond line"), QueryRefused, False),
        (Failure(40501, "The service is busy."), SourceUnavailable, True),
        (Failure(1205, "You were the deadlock's victim."), SourceUnavailable, True),
        (Failure(4060, "Cannot open the database."), SignInRefused, False),
    ],
)
@pytest.mark.parametrize("after_rows", [False, True])
def test_an_error_of_the_server_is_told_apart(
    step: Failure, kind: type[Exception], retryable: bool, after_rows: bool
) -> None:
    steps = [Rows(PEOPLE, [("a", 1), step])] if after_rows else [step]
    with answering(*steps) as double, pytest.raises(kind, match=step.text[:12]) as caught:
        chunks(ASKING, on(double))
    assert getattr(caught.value, "retryable") is retryable  # noqa: B009 - not every exception has it
    assert "second line" not in str(caught.value)


@pytest.mark.parametrize("kind", [types.NVARCHAR, types.NVARCHAR_MAX])
def test_a_reply_that_ends_in_the_middle_is_no_result(kind: types.Type) -> None:
    half = types.Type(kind.info, lambda text: kind.write(text)[:-100])
    rows = Rows([Column("id", half)], [("x" * 500,), Stop()])
    with answering(rows) as double, pytest.raises(SourceUnavailable):
        chunks(ASKING, on(double))


@pytest.mark.parametrize("after", [0, 1, 1500])
def test_a_connection_that_breaks_off_is_no_result(after: int) -> None:
    rows: list[Sequence[Any] | Step] = [("a", n) for n in range(after)]
    with answering(Rows(PEOPLE, [*rows, Break()])) as double, pytest.raises(SourceUnavailable) as caught:
        chunks(ASKING, on(double))
    assert caught.value.retryable


def test_a_server_that_hangs_up_at_once_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        given = settings({"DATAVERSE_ORG": f"localhost,{port}"}, tokens=Tokens(), plain_loopback=True)
        reading = open_source(ASKING, given).read()
        server.settimeout(0)
    with pytest.raises(SourceUnavailable, match=rf"localhost:{port} cannot be reached") as caught:
        next(reading)
    assert caught.value.retryable


def test_what_is_no_tds_server_is_told() -> None:
    with answering(Rows(PEOPLE), encryption=7) as double, pytest.raises(SourceUnavailable):
        chunks(ASKING, on(double))


@pytest.mark.parametrize("rows", [[], [("a", n) for n in range(1200)]])
def test_a_slow_answer_runs_into_the_time_limit(rows: list[Any]) -> None:
    never = Event()
    with answering(Rows(PEOPLE, [*rows, Hold(never)])) as double:
        with pytest.raises(TimeLimitExceeded, match=r"longer than 0\.5 seconds") as caught:
            chunks(ASKING, on(double, time_limit_seconds=0.5))
        assert double.attention.wait(5)
        assert double.gone.wait(5)
    assert caught.value.retryable


def test_an_answer_in_drops_runs_into_the_time_limit() -> None:
    class Drop:
        def is_set(self) -> bool:
            return Event().wait(0.02) or True

    drops = Hold(Drop())  # type: ignore[arg-type]  # all that is asked of it
    rows = (each for n in range(10_000) for each in (("a", n), drops))
    with answering(Rows(PEOPLE, rows)) as double, pytest.raises(TimeLimitExceeded):
        chunks(ASKING, on(double, time_limit_seconds=0.5))


def test_a_server_that_does_not_answer_the_sign_in_runs_into_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = settings(
            {"DATAVERSE_ORG": f"localhost,{server.getsockname()[1]}"},
            tokens=Tokens(),
            plain_loopback=True,
            time_limit_seconds=0.5,
        )
        with pytest.raises(TimeLimitExceeded):
            chunks(ASKING, given)


def test_who_stops_reading_tells_the_server() -> None:
    rows = (("x" * 1000, n) for n in range(100_000))
    with answering(Rows(PEOPLE, rows)) as double:
        reading = open_source(ASKING, on(double)).read()
        assert len(next(reading).rows) == 1000
        reading.close()
        assert double.attention.wait(5)
        assert double.gone.wait(5)


def test_the_row_cap_ends_the_reading() -> None:
    rows = (("a", n) for n in range(100_000))
    with answering(Rows(PEOPLE, rows)) as double:
        with pytest.raises(RowCapExceeded, match="more than 1500 rows"):
            chunks(ASKING, on(double, row_cap=1500))
        assert double.attention.wait(5)


# Connection strings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("org.crm.dynamics.com", ("org.crm.dynamics.com", 1433, "", None)),
        ("https://Org.crm4.dynamics.com/", ("org.crm4.dynamics.com", 1433, "", None)),
        ("org.crm.dynamics.com,5558", ("org.crm.dynamics.com", 5558, "", None)),
        ("Server=org.crm.dynamics.com,5558", ("org.crm.dynamics.com", 5558, "", None)),
        (
            "Server=tcp:org.crm.dynamics.com,1433;Initial Catalog=org;Encrypt=1;Authentication=Active Directory MSI;",
            ("org.crm.dynamics.com", 1433, "org", None),
        ),
        (
            ' data  source = org.crm.dynamics.com ; DATABASE="a;b" ;Authentication=ActiveDirectoryDefault;User Id=1111',
            ("org.crm.dynamics.com", 1433, "a;b", "1111"),
        ),
    ],
)
def test_connection_strings_as_people_write_them(value: str, expected: tuple[Any, ...]) -> None:
    found = parse_connection_string("DATAVERSE_ORG", value)
    assert (found.host, found.port, found.database, found.client_id) == expected
    assert found.scope == f"https://{found.host}/.default"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Server=org;Password=hunter2;User Id=me", "holds a password"),
        ("Server=org;Pwd='hunter2'", "holds a password"),
        ("Server=org;Authentication=Active Directory Interactive", "needs a person"),
        ("Server=org;Encrypt=false", "without encryption"),
        ("Database=hunter2", "names no server"),
        ("Server=hunter2,port", "names no server"),
        ("Server=hunter2,0", "names no server"),
        ("Server=a/b@hunter2", "names no server"),
        ("Server=org;hunter2", "part without '='"),
        ("; = ;", "names no server"),
    ],
)
def test_what_is_wrong_with_a_connection_string_is_told_without_quoting_it(value: str, said: str) -> None:
    with pytest.raises(BadConnection, match=said) as caught:
        open_source(ASKING, settings({"DATAVERSE_ORG": value}))
    assert "DATAVERSE_ORG" in str(caught.value)
    assert "hunter2" not in str(caught.value)
