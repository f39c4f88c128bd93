"""What messages mean, by their number where there is one and by their words where there is none."""

from __future__ import annotations

import pytest
from sqlalchemy import exc

from matoolkit.store.azure_sql.said import MESSAGES, Meaning, Message, is_gone, meaning, shown
from matoolkit.store.errors import DatabaseUnavailable, DriverMissing, StoreError, TransactionConflict, translated


class FromDriver(Exception):
    """What Microsoft's driver raises: the standard's code in words, and the server's message."""

    def __init__(self, driver_error: str, ddbc_error: str, number: int | None = None) -> None:
        super().__init__(f"Driver Error: {driver_error}; DDBC Error: {ddbc_error}")
        self.driver_error = driver_error
        self.ddbc_error = ddbc_error
        self.number = number


def said(words: str, state: str = "Syntax error or access violation") -> FromDriver:
    return FromDriver(state, f"[Microsoft][SQL Server]{words}")


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: f"{each.number}-{each.meaning.name}")
def test_every_message_is_known_by_its_words(message: Message) -> None:
    words = message.words.replace("%", "some 'thing' (1, 2)")
    assert meaning(said(f"Before it. {words}, and so on.\nMore.")) is message.meaning


@pytest.mark.parametrize("number", sorted({each.number for each in MESSAGES} - {547}))
def test_every_message_is_known_by_its_number(number: int) -> None:
    expected = next(each.meaning for each in MESSAGES if each.number == number)
    assert meaning(FromDriver("General error", "en français", number)) is expected


def test_the_numbers_that_the_service_s_own_guide_calls_transient() -> None:
    guide = {4060, 40197, 40501, 40613, 49918, 49919, 49920, 4221, 10928, 10929, 40540, 64, 233, 10053, 10054, 10060}
    assert guide <= {each.number for each in MESSAGES if each.meaning is Meaning.AWAY}
    assert {1205, 1222, 3960} <= {each.number for each in MESSAGES if each.meaning is Meaning.CONFLICT}


def test_what_is_not_known_has_no_meaning() -> None:
    assert meaning(said("Invalid column name 'colour'.")) is None
    assert meaning(said("The UPDATE permission was denied on the object 'x'.")) is None
    assert translated(exc.ProgrammingError("SELECT", {}, said("Invalid column name 'colour'."))) is None


@pytest.mark.parametrize(
    ("state", "words", "statement", "expected"),
    [
        ("Timeout expired", "Query timeout expired", "SELECT", TransactionConflict),
        ("Timeout expired", "Login timeout expired", None, DatabaseUnavailable),
        ("Client unable to establish connection", "anything", None, DatabaseUnavailable),
        ("Communication link failure", "anything", "SELECT", DatabaseUnavailable),
        ("General error", "Connection closed: by server", "SELECT", DatabaseUnavailable),
        ("General error", "anything", None, DatabaseUnavailable),
        ("General error", "anything", "SELECT", None),
        ("Serialization failure", "en français", "SELECT", TransactionConflict),
        ("Connection operation failed", "Failed to load the driver. Please read", None, DriverMissing),
    ],
)
def test_the_standard_s_code_where_the_words_say_nothing(
    state: str, words: str, statement: str | None, expected: type[StoreError] | None
) -> None:
    found = translated(exc.OperationalError(statement, {}, said(words, state)))
    assert (None if found is None else type(found)) == expected


def test_who_lacks_the_driver_is_told_what_to_do() -> None:
    error = FromDriver("Connection operation failed", "Failed to load the driver. Please read the documentation")
    assert "install Debian's libltdl7, or set MSSQL_PYTHON_NATIVE_PROVIDER=mssql-odbc" in shown(error)


def test_a_conflict_leaves_the_connection_as_it_is() -> None:
    assert not is_gone(said("Transaction (Process ID 5) was deadlocked on lock resources"))
    assert is_gone(said("Database 'x' on server 'y' is not currently available."))
    assert not is_gone(ValueError("is not currently available"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "Cannot insert duplicate key in object 'x'. The duplicate key value is (anna@x).",
            "Cannot insert duplicate key in object 'x'.",
        ),
        (
            "would be truncated in table 'x', column 'y'. Truncated value: 'an\nna'.",
            "would be truncated in table 'x', column 'y'.",
        ),
        ("One line.\nAnother.", "One line."),
    ],
)
def test_what_is_shown_has_nothing_in_it_that_somebody_wrote(words: str, expected: str) -> None:
    assert shown(said(words)) == expected
