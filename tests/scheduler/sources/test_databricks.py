"""Databricks as a source, over real HTTP to a workspace of our own."""

from __future__ import annotations

import ssl
import tracemalloc
from contextlib import closing
from datetime import UTC, date, datetime
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
    VariableNotAllowed,
    VariableNotSet,
    open_source,
)
from tests.doubles.databricks import TOKEN, WAREHOUSE, DatabricksDouble, Trouble
from tests.scheduler.sources.reading import chunks, described, settings, table

if TYPE_CHECKING:
    from pathlib import Path

    from matoolkit.scheduler.sources import SourceSettings

STATEMENTS = "/api/2.0/sql/statements"
PEOPLE = [("id", "STRING"), ("n", "INT")]
ASKING = described("databricks", "DATABRICKS_HOST", "SELECT * FROM people", warehouse_id="DATABRICKS_WAREHOUSE")


class Pauses:
    """Sleeps that are noted instead of slept."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def on(double: DatabricksDouble, **changes: Any) -> SourceSettings:
    environment = {
        "DATABRICKS_HOST": double.url,
        "DATABRICKS_HOST_TOKEN": TOKEN,
        "DATABRICKS_WAREHOUSE": WAREHOUSE,
        **changes.pop("environment", {}),
    }
    return settings(environment, **{"plain_loopback": True, **changes})


# Results -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("links", [False, True])
def test_cells_have_the_types_of_the_manifest(links: bool) -> None:
    given = [
        ("t", "STRING", "Zoë 🎉 0042", "Zoë 🎉 0042"),
        ("i", "INT", "7", 7),
        ("l", "LONG", "9007199254740993", 9007199254740993),
        ("d", "DECIMAL(9,2)", "1.50", Decimal("1.50")),
        ("f", "DOUBLE", "2.5", 2.5),
        ("nan", "DOUBLE", "NaN", "nan"),
        ("yes", "BOOLEAN", "true", True),
        ("no", "BOOLEAN", "false", False),
        ("day", "DATE", "2026-03-01", date(2026, 3, 1)),
        ("at", "TIMESTAMP", "2026-03-01T08:00:00.123Z", datetime(2026, 3, 1, 8, 0, 0, 123000, UTC)),
        ("local", "TIMESTAMP_NTZ", "2026-03-01T08:00:00", datetime(2026, 3, 1, 8)),  # noqa: DTZ001 - it has no zone
        ("many", "ARRAY<STRING>", '["x", null, "ü"]', ["x", None, "ü"]),
        ("record", "STRUCT<A: INT>", '{"A": 1}', {"A": 1}),
        ("map", "MAP<STRING, INT>", '{"a": 1}', {"a": 1}),
        ("bytes", "BINARY", "AP8=", "00ff"),
        ("span", "INTERVAL", "1 day", "1 day"),
        ("odd", "INT", "many", "many"),
        ("far", "DATE", "+12026-03-01", "+12026-03-01"),
        ("null", "INT", None, None),
        ("t", "CHAR", "x" * 100_000, "x" * 100_000),
    ]
    with DatabricksDouble(
        [(name, kind) for name, kind, _, _ in given], [[[c for _, _, c, _ in given]]], links=links
    ) as double:
        columns, rows = table(ASKING, on(double))
    assert columns == tuple(name for name, _, _, _ in given)
    assert rows == [tuple(value for _, _, _, value in given)]
    assert [type(value) for value in rows[0]] == [type(value) for _, _, _, value in given]


@pytest.mark.parametrize("links", [False, True])
def test_a_result_in_parts_is_one(links: bool) -> None:
    parts = [[[str(n), str(n)] for n in range(start, start + 1500)] for start in (0, 1500, 3000)]
    with DatabricksDouble(PEOPLE, parts, links=links) as double:
        found = chunks(ASKING, on(double))
        assert [len(chunk.rows) for chunk in found] == [1000, 500] * 3
        assert [row for chunk in found for row in chunk.rows] == [(str(n), n) for n in range(4500)]
        assert double.paths() == [
            f"POST {STATEMENTS}",
            f"GET {STATEMENTS}/one/result/chunks/1",
            f"GET {STATEMENTS}/one/result/chunks/2",
        ]
        assert len(double.storage_calls) == (3 if links else 0)
        assert not double.cancelled.is_set()


@pytest.mark.parametrize("parts", [[], [[]]])
def test_an_empty_result_has_columns(parts: list[Any]) -> None:
    with DatabricksDouble([("a", "INT")] * 10, parts) as double:
        found = chunks(ASKING, on(double))
    assert [(chunk.columns, list(chunk.rows)) for chunk in found] == [(("a",) * 10, [])]


def test_no_columns_are_nothing_to_read() -> None:
    with DatabricksDouble([], []) as double, pytest.raises(NothingToRead):
        chunks(ASKING, on(double))


def test_what_is_asked_is_what_the_runbook_says() -> None:
    with DatabricksDouble(PEOPLE, []) as double:
        chunks(ASKING, on(double, row_cap=10))
    assert double.calls[0].body == {
        "warehouse_id": WAREHOUSE,
        "statement": "SELECT * FROM people",
        "wait_timeout": "5s",
        "on_wait_timeout": "CONTINUE",
        "format": "JSON_ARRAY",
        "disposition": "EXTERNAL_LINKS",
        "row_limit": 11,
    }


def test_a_statement_that_runs_is_asked_about_less_and_less_often(pauses: Pauses) -> None:
    states = ["PENDING", *["RUNNING"] * 8, "SUCCEEDED"]
    with DatabricksDouble(PEOPLE, [[["a", "1"]]], states=states) as double:
        assert table(ASKING, on(double, sleep=pauses))[1] == [("a", 1)]
    assert pauses.seconds == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


def test_rows_do_not_add_up() -> None:
    parts = [[["x" * 500, str(n)] for n in range(1_000)] for _ in range(20)]
    with DatabricksDouble(PEOPLE, parts) as double:
        tracemalloc.start()
        try:
            with closing(open_source(ASKING, on(double)).read()) as found:
                assert sum(len(chunk.rows) for chunk in found) == 20_000
            assert tracemalloc.get_traced_memory()[1] < 8_000_000
        finally:
            tracemalloc.stop()


# Signing in ----------------------------------------------------------------------------------------------------------


def test_without_a_personal_token_entra_is_asked() -> None:
    scopes = []

    def tokens(scope: str, client_id: str | None = None) -> str:
        scopes.append(scope)
        return TOKEN

    with DatabricksDouble(PEOPLE, []) as double:
        chunks(ASKING, on(double, tokens=tokens, environment={"DATABRICKS_HOST_TOKEN": ""}))
    assert scopes == ["2ff814a6-3304-4ab8-85cb-cd0e6f879c1d/.default"]


@pytest.mark.parametrize(("status", "kind"), [(401, SignInRefused), (403, SignInRefused), (400, QueryRefused)])
def test_a_refusal_is_told_apart(status: int, kind: type[Exception]) -> None:
    with DatabricksDouble(PEOPLE, []) as double:
        double.trouble(STATEMENTS, Trouble(status, body=b'{"message": "because\\nof this"}'))
        with pytest.raises(kind) as caught:
            chunks(ASKING, on(double))
        assert len(double.calls) == 1
    assert "localhost" in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_wrong_token_is_refused() -> None:
    with DatabricksDouble(PEOPLE, []) as double, pytest.raises(SignInRefused, match="refused the token") as caught:
        chunks(ASKING, on(double, environment={"DATABRICKS_HOST_TOKEN": "a-bad-token"}))
    assert "a-bad-token" not in str(caught.value)


def test_a_warehouse_that_is_not_there_is_told() -> None:
    with DatabricksDouble(PEOPLE, []) as double, pytest.raises(QueryRefused, match="no such warehouse"):
        chunks(ASKING, on(double, environment={"DATABRICKS_WAREHOUSE": "other"}))


def test_links_are_followed_without_the_token() -> None:
    headers = {"x-ms-key": "k", "Authorization": "Bearer nonsense"}
    with DatabricksDouble(PEOPLE, [[["a", "1"]]], link_headers=headers) as double:
        assert table(ASKING, on(double))[1] == [("a", 1)]
        (call,) = double.storage_calls
    assert call.headers["x-ms-key"] == "k"
    assert "authorization" not in call.headers
    assert call.path == "/part/0?sig=a-key"


@pytest.mark.parametrize("scheme", ["http", "ftp", "file"])
def test_links_without_tls_are_not_followed(scheme: str, tls: tuple[ssl.SSLContext, str]) -> None:
    with DatabricksDouble(PEOPLE, [[["a", "1"]]], link_scheme=scheme, tls=tls[0]) as double:
        with pytest.raises(SourceUnavailable, match="does not begin with https://") as caught:
            chunks(ASKING, on(double, plain_loopback=False, ca_file=tls[1]))
        assert double.storage_calls == []
    assert "a-key" not in str(caught.value)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return context, str(file)


def test_it_speaks_tls(tls: tuple[ssl.SSLContext, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with DatabricksDouble(PEOPLE, [[["a", "1"]]], tls=tls[0]) as double:
        assert table(ASKING, on(double, plain_loopback=False, ca_file=tls[1]))[1] == [("a", 1)]
        with pytest.raises(SourceUnavailable, match="no certificate that this machine trusts"):
            chunks(ASKING, on(double, plain_loopback=False))


def test_credentials_of_a_netrc_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login someone password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with DatabricksDouble(PEOPLE, [[["a", "1"]]]) as double:
        chunks(ASKING, on(double))
        assert double.calls[0].headers["authorization"] == f"Bearer {TOKEN}"
        assert "authorization" not in double.storage_calls[0].headers


# What goes wrong -----------------------------------------------------------------------------------------------------


def test_who_is_throttled_waits_as_long_as_asked(pauses: Pauses) -> None:
    with DatabricksDouble(PEOPLE, [[["a", "1"]]], states=["RUNNING", "SUCCEEDED"]) as double:
        double.trouble(STATEMENTS, Trouble(429, {"Retry-After": "7"}), Trouble(503))
        double.trouble("/one", Trouble(429, {"Retry-After": "3"}), Trouble(500))
        assert table(ASKING, on(double, sleep=pauses))[1] == [("a", 1)]
    assert pauses.seconds == [7, 14, 0.1, 3, 6]


def test_who_is_throttled_for_longer_than_there_is_time_gives_up(pauses: Pauses) -> None:
    with DatabricksDouble(PEOPLE, []) as double:
        double.trouble(STATEMENTS, Trouble(429, {"Retry-After": "3600"}))
        with pytest.raises(SourceUnavailable, match="asks for 3600 seconds") as caught:
            chunks(ASKING, on(double, sleep=pauses))
    assert caught.value.retryable
    assert pauses.seconds == []


def test_who_is_throttled_again_and_again_gives_up(pauses: Pauses) -> None:
    with DatabricksDouble(PEOPLE, []) as double:
        double.trouble(STATEMENTS, *[Trouble(429)] * 10)
        with pytest.raises(SourceUnavailable, match="busy"):
            chunks(ASKING, on(double, sleep=pauses))
        assert len(double.calls) == 4


def test_a_start_that_may_have_happened_is_not_repeated(pauses: Pauses) -> None:
    for trouble in (Trouble(502), Trouble(200, body=b'{"status":', broken=True)):
        with DatabricksDouble(PEOPLE, []) as double:
            double.trouble(STATEMENTS, trouble)
            with pytest.raises(SourceUnavailable):
                chunks(ASKING, on(double, sleep=pauses))
            assert len(double.calls) == 1


@pytest.mark.parametrize("path", ["/one/result/chunks/1", "/part/1?sig=a-key"])
@pytest.mark.parametrize("trouble", [Trouble(500), Trouble(503), Trouble(200, body=b"[[", broken=True)])
def test_a_part_that_breaks_off_is_fetched_again(path: str, trouble: Trouble, pauses: Pauses) -> None:
    with DatabricksDouble(PEOPLE, [[["a", "1"]], [["b", "2"]]]) as double:
        double.trouble(path, trouble, trouble)
        assert table(ASKING, on(double, sleep=pauses))[1] == [("a", 1), ("b", 2)]
    assert pauses.seconds == [0.5, 1]


@pytest.mark.parametrize(
    "trouble", [Trouble(403, body=b"expired ?sig=a-key"), Trouble(200, body=b"[[", broken=True), Trouble(302)]
)
def test_a_part_that_cannot_be_had_ends_the_reading(trouble: Trouble, pauses: Pauses) -> None:
    with DatabricksDouble(PEOPLE, [[["a", "1"]], [["b", "2"]]]) as double:
        double.trouble("/part/1?sig=a-key", *[trouble] * 10)
        with pytest.raises(SourceUnavailable) as caught:
            chunks(ASKING, on(double, sleep=pauses))
    assert caught.value.retryable
    assert "a-key" not in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b'{"status": []}', b'{"status": {"state": "SUCCEEDED"}, "manifest": 7}']
)
def test_an_answer_of_something_else_is_told(body: bytes) -> None:
    with DatabricksDouble(PEOPLE, []) as double:
        double.trouble(STATEMENTS, Trouble(200, body=body))
        with pytest.raises(SourceUnavailable):
            chunks(ASKING, on(double))


def test_a_result_that_is_not_whole_is_no_result() -> None:
    with DatabricksDouble(PEOPLE, [[["a", "1"]], [["b", "2"]]]) as double:
        double.trouble("/part/1?sig=a-key", Trouble(200, body=b"[]"))
        with pytest.raises(SourceUnavailable, match="not what a Databricks workspace gives"):
            chunks(ASKING, on(double))


@pytest.mark.parametrize(
    ("state", "error", "kind"),
    [
        ("FAILED", {"error_code": "BAD_REQUEST", "message": "no column\nid"}, QueryRefused),
        ("FAILED", {"error_code": "RESOURCE_EXHAUSTED", "message": "full"}, SourceUnavailable),
        ("CANCELED", {}, SourceUnavailable),
        ("CLOSED", {}, SourceUnavailable),
    ],
)
def test_a_statement_that_fails_says_why(state: str, error: dict[str, str], kind: type[Exception]) -> None:
    said = error.get("message", "ended there").partition("\n")[0]
    with (
        DatabricksDouble(PEOPLE, [], states=["PENDING", state], error=error) as double,
        pytest.raises(kind, match=said),
    ):
        chunks(ASKING, on(double))


@pytest.mark.parametrize("hold", [False, True])
def test_a_statement_that_takes_too_long_is_cancelled(hold: bool) -> None:
    with DatabricksDouble(PEOPLE, [], states=["RUNNING"], hold=hold) as double:
        with pytest.raises(TimeLimitExceeded, match=r"longer than 0\.5 seconds"):
            chunks(ASKING, on(double, time_limit_seconds=0.5))
        assert double.cancelled.is_set()
        assert double.calls[0].body["wait_timeout"] == "0s"


def test_an_answer_in_drops_is_not_waited_for() -> None:
    enough = Event()
    with DatabricksDouble(PEOPLE, [[["a", "1"]]]) as double:
        double.trouble("/part/0?sig=a-key", Trouble(200, body=b"[", dripping=enough))
        with pytest.raises(TimeLimitExceeded):
            chunks(ASKING, on(double, time_limit_seconds=0.5))
        enough.set()


def test_the_row_cap_is_seen_before_anything_is_fetched() -> None:
    with DatabricksDouble(PEOPLE, [[["a", "1"]] * 3]) as double:
        with pytest.raises(RowCapExceeded, match="more than 2 rows"):
            chunks(ASKING, on(double, row_cap=2))
        assert double.storage_calls == []
        double.truncated = True
        with pytest.raises(RowCapExceeded):
            chunks(ASKING, on(double, row_cap=5))


def test_a_workspace_that_is_not_there_is_unavailable() -> None:
    with DatabricksDouble(PEOPLE, []) as double:
        given = on(double)
    with pytest.raises(SourceUnavailable, match="localhost cannot be reached"):
        chunks(ASKING, given)


# Configuration -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://example.com", "https://user:secret@example.com", "ftp://x", "https://"])
def test_an_address_that_would_give_the_token_away_is_refused(url: str) -> None:
    environment = {"DATABRICKS_HOST": url, "DATABRICKS_WAREHOUSE": WAREHOUSE}
    with pytest.raises(BadConnection, match="address of a workspace") as caught:
        open_source(ASKING, settings(environment, plain_loopback=True))
    assert "secret" not in str(caught.value)


def test_the_warehouse_has_to_be_set_and_allowed() -> None:
    environment = {"DATABRICKS_HOST": "adb-1.azuredatabricks.net", "PATH": "x"}
    with pytest.raises(VariableNotSet, match="DATABRICKS_WAREHOUSE, which the runbook names as its warehouse_id"):
        open_source(ASKING, settings(environment))
    asking = described("databricks", "DATABRICKS_HOST", "SELECT 1", warehouse_id="PATH")
    with pytest.raises(VariableNotAllowed, match="PATH as its warehouse_id"):
        open_source(asking, settings(environment))
