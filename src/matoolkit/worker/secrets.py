"""Looks up what `{{secret:NAME}}` stands for: in Key Vault, or where there is none in the worker's own environment.

Nowhere else in the product is a secret looked up. A value is kept for a few minutes, so that a thousand jobs with the
same secret ask for it once, and a changed one is soon noticed.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from matoolkit.worker.errors import FunctionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from matoolkit.clock import Clock
    from matoolkit.worker.ports import SecretResolver

KEPT_SECONDS: Final = 300.0
PREFIX: Final = "MATOOLKIT_SECRET_"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,127}")


class SecretUnknown(FunctionError):
    """There is no secret of that name."""

    default_attempts = 0


class SecretUnavailable(FunctionError):
    """The secret cannot be looked up at the moment, or the worker may not read it."""

    retryable = True
    default_attempts = 0


class Vault(Protocol):
    """A place where secrets are: azure-keyvault-secrets' asynchronous client."""

    def get_secret(self, name: str) -> Awaitable[Any]:
        """A secret, with its value."""

    def close(self) -> Awaitable[None]:
        """Let go of its connections."""


class EnvironmentSecrets:
    """Secrets in the worker's environment: `MATOOLKIT_SECRET_NAME`, the name in capitals and with underscores."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def resolve(self, name: str) -> str:
        """The secret's value."""
        variable = PREFIX + _checked(name).upper().replace("-", "_")
        value = self._environment.get(variable, "")
        if not value:
            raise SecretUnknown(f"there is no secret {name}: {variable} is not set where the worker runs")
        return value


class KeyVaultSecrets:
    """Secrets in Key Vault."""

    def __init__(self, vault: Vault, vault_name: str) -> None:
        self._vault = vault
        self._vault_name = vault_name

    async def close(self) -> None:
        """Let go of the vault."""
        await self._vault.close()

    async def resolve(self, name: str) -> str:
        """The secret's value."""
        from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

        # Key Vault's names have no underscores.
        looked_for = _checked(name).replace("_", "-")
        try:
            found = await self._vault.get_secret(looked_for)
        except ResourceNotFoundError as error:
            raise SecretUnknown(f"there is no secret {looked_for} in the key vault {self._vault_name}") from error
        except HttpResponseError as error:
            raise SecretUnavailable(
                f"the key vault {self._vault_name} does not hand out the secret {looked_for} "
                f"(status {error.status_code})"
            ) from error
        except AzureError as error:
            raise SecretUnavailable(
                f"the key vault {self._vault_name} cannot be asked for the secret {looked_for}: {type(error).__name__}"
            ) from error
        if not found.value:
            raise SecretUnknown(f"the secret {looked_for} in the key vault {self._vault_name} is empty")
        return str(found.value)


@dataclass(slots=True)
class _Kept:
    value: str = field(repr=False)
    until: float


class KeptSecrets:
    """Keeps what was looked up for a while, and looks up at once what many ask for at the same time."""

    def __init__(
        self, secrets: SecretResolver, clock: Clock, conceal: Callable[[list[str]], None] | None = None
    ) -> None:
        self._secrets = secrets
        self._clock = clock
        self._conceal = conceal
        self._kept: dict[str, _Kept] = {}
        self._under_way: dict[str, asyncio.Task[str]] = {}

    async def resolve(self, name: str) -> str:
        """The secret's value."""
        folded = name.casefold()
        kept = self._kept.get(folded)
        if kept is not None and kept.until > self._clock.now().timestamp():
            return kept.value
        task = self._under_way.get(folded)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._look_up(folded, name), name="secret")
            self._under_way[folded] = task
            task.add_done_callback(lambda done: self._ended(folded, done))
        # A job that is cancelled while it waits does not end it for the others.
        return await asyncio.shield(task)

    async def _look_up(self, folded: str, name: str) -> str:
        value = await self._secrets.resolve(name)
        if self._conceal is not None:
            self._conceal([value])
        self._kept[folded] = _Kept(value, self._clock.now().timestamp() + KEPT_SECONDS)
        return value

    def _ended(self, folded: str, task: asyncio.Task[str]) -> None:
        del self._under_way[folded]
        if not task.cancelled():
            # Looked at here, so that an error nobody waited for is no complaint of the loop's.
            task.exception()


def key_vault_secrets(vault_name: str, credential: Any) -> KeyVaultSecrets:
    """Secrets in the key vault of that name."""
    try:
        from azure.keyvault.secrets.aio import SecretClient
    except ModuleNotFoundError as error:
        raise SecretUnavailable(
            "secrets in a key vault need the extra `azure`: pip install 'matoolkit[azure]'"
        ) from error
    return KeyVaultSecrets(SecretClient(f"https://{vault_name}.vault.azure.net", credential), vault_name)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SecretUnknown("a secret is named with letters, digits, hyphens and underscores")
    return name
