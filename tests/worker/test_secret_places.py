"""What `{{secret:NAME}}` stands for: looked up in one place, once for many, and soon forgotten."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError, ServiceRequestError

from matoolkit.clock import ManualClock
from matoolkit.worker.secrets import (
    KEPT_SECONDS,
    EnvironmentSecrets,
    KeptSecrets,
    KeyVaultSecrets,
    SecretUnavailable,
    SecretUnknown,
    key_vault_secrets,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Vault:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def get_secret(self, name: str) -> Any:
        self.asked.append(name)
        await self.go_on.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(value=self.answer)

    async def close(self) -> None: ...


def refused(status: int) -> HttpResponseError:
    error = HttpResponseError("planted-detail")
    error.status_code = status
    return error


@pytest.mark.parametrize("name", ["First-Password", "first_password", "FIRST-PASSWORD"])
def test_of_the_environment(name: str) -> None:
    secrets = EnvironmentSecrets({"MATOOLKIT_SECRET_FIRST_PASSWORD": "value"})
    assert asyncio.run(secrets.resolve(name)) == "value"


@pytest.mark.parametrize("environment", [{}, {"MATOOLKIT_SECRET_X": ""}, {"X": "value"}])
def test_unknown_in_the_environment(environment: dict[str, str]) -> None:
    with pytest.raises(SecretUnknown, match="MATOOLKIT_SECRET_X is not set"):
        asyncio.run(EnvironmentSecrets(environment).resolve("x"))


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 128, "ä"])
def test_what_names_no_secret(name: str) -> None:
    for secrets in (EnvironmentSecrets({}), KeyVaultSecrets(Vault("x"), "v")):
        with pytest.raises(SecretUnknown):
            asyncio.run(secrets.resolve(name))


def test_of_a_key_vault() -> None:
    vault = Vault("value")
    assert asyncio.run(KeyVaultSecrets(vault, "v").resolve("First_Password")) == "value"
    assert vault.asked == ["First-Password"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ResourceNotFoundError("planted-detail"), SecretUnknown),
        ("", SecretUnknown),
        (None, SecretUnknown),
        (refused(403), SecretUnavailable),
        (ServiceRequestError("planted-detail"), SecretUnavailable),
    ],
)
def test_a_key_vault_that_does_not_hand_it_out(answer: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as failure:
        asyncio.run(KeyVaultSecrets(Vault(answer), "v").resolve("x"))
    assert "planted" not in str(failure.value)
    assert "x" in str(failure.value)


def test_many_ask_once_and_one_who_leaves_takes_nothing_along() -> None:
    async def main() -> None:
        vault, concealed = Vault("value"), list[str]()
        kept = KeptSecrets(KeyVaultSecrets(vault, "v"), ManualClock(NOW), concealed.extend)
        vault.go_on.clear()
        waiting = [asyncio.ensure_future(kept.resolve(name)) for name in ("X", "x", "X", "x")]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        vault.go_on.set()
        assert (await asyncio.gather(*waiting, return_exceptions=True))[1:] == ["value"] * 3
        assert len(vault.asked) == 1
        assert concealed == ["value"]

    asyncio.run(main())


def test_a_changed_secret_is_noticed_soon() -> None:
    async def main() -> None:
        vault, clock = Vault("old"), ManualClock(NOW)
        kept = KeptSecrets(KeyVaultSecrets(vault, "v"), clock)
        assert await kept.resolve("x") == "old"
        vault.answer = "new"
        clock.advance(seconds=KEPT_SECONDS - 1)
        assert await kept.resolve("x") == "old"
        clock.advance(seconds=2)
        assert await kept.resolve("x") == "new"

    asyncio.run(main())


def test_a_failure_is_not_kept() -> None:
    async def main() -> None:
        vault = Vault(refused(500))
        kept = KeptSecrets(KeyVaultSecrets(vault, "v"), ManualClock(NOW))
        with pytest.raises(SecretUnavailable):
            await kept.resolve("x")
        vault.answer = "value"
        assert await kept.resolve("x") == "value"

    asyncio.run(main())


def test_the_client_of_a_key_vault_is_the_asynchronous_one() -> None:
    async def main() -> None:
        class Credential:
            async def get_token(self, *_: Any, **__: Any) -> Any: ...

            async def close(self) -> None: ...

        found = key_vault_secrets("contoso", Credential())
        await found.close()

    asyncio.run(main())
