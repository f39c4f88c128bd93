"""Secrets are looked up for the function alone, and are seen nowhere else."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from matoolkit.worker import FunctionContext, FunctionError, concealing
from matoolkit.worker.concealing import Concealer, ConcealingFormatter, Secrets
from matoolkit.worker.running import Services
from tests.worker.workplace import Workplace, doing

if TYPE_CHECKING:
    from matoolkit.store.database import Database

PLANTED = 'P@ss "word"/ä+7'
GENERATED = "Generated-Password-9"


def fail(words: str) -> None:
    raise ValueError(words)


class Vault:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(self, name: str) -> str:
        self.asked.append(name)
        if name == "NONE":
            raise FunctionError("there is no secret NONE", type="SecretNotFound")
        return PLANTED


@pytest.fixture
def vault() -> Vault:
    return Vault()


def everything(workplace: Workplace) -> str:
    """All that lies in the database."""
    with workplace.database.reading() as tx:
        return "\n".join(str(row) for row in tx.connection.exec_driver_sql("SELECT * FROM bus_messages"))


async def tell(ctx: FunctionContext, Name: str, ApiKey: str) -> Any:  # noqa: N803 - as runbooks write it
    ctx.conceal(GENERATED)
    ctx.logger.info("%s and %s", ApiKey, GENERATED)
    try:
        fail(f"{ApiKey!r} {quote(ApiKey)}")
    except ValueError:
        ctx.logger.exception("failed with %s", ApiKey)
    if Name == "fail":
        raise RuntimeError(f"no luck with {ApiKey} and {GENERATED}") from ValueError(ApiKey)
    return {"Echo": [ApiKey, f"<{ApiKey}>", GENERATED], ApiKey: 1, "Name": Name}


@pytest.mark.parametrize("name", ["succeed", "fail"])
@pytest.mark.parametrize("how", ["referred to", "given"])
def test_a_secret_is_in_no_result_error_log_or_row(
    database: Database, vault: Vault, caplog: pytest.LogCaptureFixture, name: str, how: str
) -> None:
    workplace = Workplace(database)
    services = Services(secrets=vault)
    given = "{{secret:THE-KEY}}" if how == "referred to" else PLANTED
    with caplog.at_level(logging.DEBUG):
        with workplace.working(doing(tell, secrets=("ApiKey",)), tenant=lambda: nullcontext(services)):
            workplace.send(workplace.job(parameters={"Name": name, "ApiKey": given}))
            result = workplace.result()
        rows = everything(workplace)
    assert vault.asked == (["THE-KEY"] if how == "referred to" else [])
    if name == "succeed":
        assert result.result == {"Echo": ["***", "<***>", "***"], "***": 1, "Name": "succeed"}
    else:
        assert result.error is not None
        assert (result.error.type, result.error.message) == ("RuntimeError", "no luck with *** and ***")
    seen = f"{caplog.text} {result} {rows}"
    assert "failed with ***" in caplog.text
    for secret in (PLANTED, quote(PLANTED), repr(PLANTED)[1:-1], GENERATED):
        assert secret not in seen
    workplace.bus.close()


def test_a_secret_that_cannot_be_had_is_a_failure(workplace: Workplace, vault: Vault) -> None:
    workplace.send(workplace.job(parameters={"Name": "x", "ApiKey": "{{secret:NONE}}"}))
    with workplace.working(doing(tell), tenant=lambda: nullcontext(Services(secrets=vault))):
        result = workplace.result()
    assert result.error is not None
    assert result.error.type == "SecretNotFound"


def test_without_a_place_for_secrets_it_says_so(workplace: Workplace) -> None:
    workplace.send(workplace.job(parameters={"Name": "x", "ApiKey": "{{secret:KEY}}"}))
    with workplace.working(doing(tell)):
        result = workplace.result()
    assert result.error is not None
    assert (result.error.type, result.error.attempts) == ("NotConfigured", 0)
    assert "KEY" in result.error.message


def test_references_are_found_wherever_they_stand(workplace: Workplace, vault: Vault) -> None:
    seen: list[Any] = []

    async def look(ctx: FunctionContext, Given: Any) -> None:  # noqa: N803 - as runbooks write it
        seen.append(Given)
        seen.append(await ctx.secrets.resolve("C"))

    given = {"a": ["x {{ secret:A }}", 1], "b": "{{SECRET:B}}", "c": "{{secret}} {{other:C}}"}
    workplace.send(workplace.job(parameters={"Given": given}))
    with workplace.working(doing(look), tenant=lambda: nullcontext(Services(secrets=vault))):
        workplace.result()
    assert vault.asked == ["A", "B", "C"]
    assert seen == [{"a": [f"x {PLANTED}", 1], "b": PLANTED, "c": "{{secret}} {{other:C}}"}, PLANTED]


def test_short_secrets_are_blanked_only_where_they_stand_alone() -> None:
    secrets = Secrets(["no", "12"])
    assert secrets.out_of({"a": "no", "b": "nobody knows 12", "c": 12}) == {
        "a": "***",
        "b": "nobody knows 12",
        "c": "***",
    }


def test_of_secrets_that_hold_each_other_the_longest_goes_first() -> None:
    assert Secrets(["word", "password"]).out_of_text("my password, my word") == "my ***, my ***"


def test_log_lines_are_blanked_as_they_are_written() -> None:
    concealer = Concealer(["OwnSecret"])
    formatter = ConcealingFormatter(concealer, "%(message)s")
    concealer.add(["OfAJob"])
    try:
        fail("OwnSecret and OfAJob")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.INFO, "x", 1, "%s", ("OwnSecret",), (ValueError, error, error.__traceback__)
        )
    text = formatter.format(record)
    assert text.startswith("***\nTraceback")
    assert "ValueError: *** and ***" in text


def test_secrets_of_jobs_are_remembered_for_a_good_while_and_own_ones_for_ever() -> None:
    concealer = Concealer(["OwnSecret"])
    concealer.add([f"Secret-{number}-" for number in range(3000)])
    assert concealer.out_of_text("OwnSecret Secret-0- Secret-2999-") == "*** Secret-0- ***"


def test_what_a_secret_may_look_like_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spelt: list[str] = []
    usual = concealing._spellings

    def listen(value: str) -> Any:
        spelt.append(value)
        return usual(value)

    monkeypatch.setattr(concealing, "_spellings", listen)
    concealer = Concealer()
    for number in range(50):
        concealer.add([f"secret-{number:03}"])
        assert concealer.out_of_text(f"<secret-{number:03}> secret-000") == "<***> ***"
    assert len(spelt) == 50


def test_secrets_may_come_while_a_text_is_looked_through() -> None:
    secrets = Secrets(["first-secret"])

    class Text(str):
        __slots__ = ()

        def __contains__(self, part: object) -> bool:
            secrets.add([f"another-{len(secrets._alone)}"])
            return super().__contains__(str(part))

    assert secrets.out_of_text(Text("a first-secret b")) == "a *** b"
    assert len(secrets._alone) > 1
