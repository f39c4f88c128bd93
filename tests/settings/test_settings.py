"""Settings: every mistake in one message, and no value in any."""

from __future__ import annotations

import pickle
from typing import Any, ClassVar

import pytest

from matoolkit.hosts.environment import environment
from matoolkit.settings import (
    BadSettings,
    Secret,
    Settings,
    Unusable,
    defaulted,
    guid,
    https_address,
    names,
    number,
    optional,
    plain_name,
    required,
    text,
    truth,
    whole_number,
)

PLANTED = "Planted-Secret-4711"


class Example(Settings):
    service: ClassVar[str] = "the example"

    database = required("Example__SqlConnectionString", Secret, "where everything is kept")
    places = defaulted("MAX_PLACES", whole_number(1, 64), 2)
    key = optional("API_KEY", Secret)

    def contradictions(self) -> list[str]:
        return ["API_KEY is of no use with a single place"] if self.key is not None and self.places == 1 else []


def problems(environment: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(BadSettings) as caught:
        Example.read(environment)
    return caught.value.problems


def test_what_is_there_is_read() -> None:
    settings = Example.read({"Example__SqlConnectionString": "sqlite://", "MAX_PLACES": " 7 "})
    assert (settings.database.reveal(), settings.places, settings.key) == ("sqlite://", 7, None)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Scheduler__SqlConnectionString", "MATOOLKIT_SCHEDULER_SQL_CONNECTION_STRING"),
        ("AzureAd__TenantId", "MATOOLKIT_AZURE_AD_TENANT_ID"),
        ("WORKER_ID", "MATOOLKIT_WORKER_ID"),
        ("MATOOLKIT_DATABASE_URL", "MATOOLKIT_DATABASE_URL"),
    ],
)
def test_each_has_a_plain_form(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_the_plain_form_wins() -> None:
    given = {"MATOOLKIT_EXAMPLE_SQL_CONNECTION_STRING": "new", "Example__SqlConnectionString": "old"}
    assert Example.read(given).database.reveal() == "new"


def test_everything_wrong_is_told_at_once_and_nothing_is_quoted() -> None:
    with pytest.raises(BadSettings) as caught:
        Example.read({"MAX_PLACES": PLANTED, "Example__SqlConnectionString": "  "})
    assert str(caught.value) == (
        "the settings of the example are not right:\n"
        "  Example__SqlConnectionString is missing: where everything is kept\n"
        "  MAX_PLACES must be a whole number from 1 to 64"
    )


def test_what_cannot_be_together_is_told() -> None:
    given = {"Example__SqlConnectionString": "x", "API_KEY": PLANTED, "MAX_PLACES": "1"}
    assert problems(given) == ("API_KEY is of no use with a single place",)


def test_secrets_are_not_shown() -> None:
    settings = Example.read({"Example__SqlConnectionString": "x", "API_KEY": PLANTED})
    assert PLANTED not in f"{settings!r} {settings} {settings.key!r} {settings.key} {[settings.key]}"
    with pytest.raises(TypeError):
        pickle.dumps(settings.key)


@pytest.mark.parametrize(
    ("convert", "given", "value"),
    [
        (truth, "Yes", True),
        (truth, "0", False),
        (number(0), "2.5", 2.5),
        (names, "a, b;c,", ("a", "b", "c")),
        (text, "x", "x"),
        (guid, "12345678-90ab-cdef-1234-567890ABCDEF", "12345678-90ab-cdef-1234-567890ABCDEF"),
        (https_address, "https://graph.microsoft.us/", "https://graph.microsoft.us"),
        (https_address, "http://localhost:8080", "http://localhost:8080"),
    ],
)
def test_texts_are_made_into_values(convert: Any, given: str, value: Any) -> None:
    assert convert(given) == value


@pytest.mark.parametrize(
    ("convert", "given"),
    [
        (truth, "perhaps"),
        (whole_number(1), "0"),
        (whole_number(1), "1.5"),
        (whole_number(1, 5), "6"),
        (whole_number(1), "9" * 400),
        (number(1, 2), "3"),
        (number(0), "nan"),
        (guid, "contoso"),
        (https_address, "http://graph.microsoft.com"),
        (https_address, "https://user:word@graph.microsoft.com"),
        (https_address, "graph.microsoft.com"),
        (https_address, "https://x:port"),
    ],
)
def test_what_is_no_value_is_refused_without_being_quoted(convert: Any, given: str) -> None:
    with pytest.raises(Unusable) as caught:
        convert(given)
    assert given not in str(caught.value)


def test_the_environment_wins_over_the_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("FROM_FILE=file\nFROM_BOTH=file\n")
    monkeypatch.setenv("FROM_BOTH", "process")
    monkeypatch.delenv("FROM_FILE", raising=False)
    found = environment(tmp_path)
    assert (found["FROM_FILE"], found["FROM_BOTH"]) == ("file", "process")
    assert "FROM_FILE" not in environment(tmp_path / "elsewhere")
