"""Signing in to a tenant of Entra ID with a code on another device, once for many weeks.

Tokens are kept where the operating system keeps secrets. Where it has no such place (a server without a desktop), they
are kept in a file that only its owner can read, and whoever signs in is told so. What is remembered beside them, who
signed in, is no secret.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matoolkit.cli.configuration import write_private
from matoolkit.cli.sign_in.errors import NotSignedIn, SignInFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from azure.identity import AuthenticationRecord

    from matoolkit.clock import Clock

CACHE_NAME = "matoolkit-cli"
_RENEWED_BEFORE_SECONDS = 120.0
ADVICE = "Sign in again with `matoolkit auth login`"


@dataclass
class EntraSignIn:
    """Signs one person in, through one application of one tenant."""

    tenant_id: str
    client_id: str
    scope: str
    authority: str | None
    folder: Path
    """Where it is remembered who signed in."""
    clock: Clock
    advice: str = ADVICE
    hint: str = ""
    """What else may be meant when nobody is signed in."""
    _token: str = field(default="", repr=False)
    _until: float = 0.0

    @property
    def record_file(self) -> Path:
        """Who signed in last."""
        return self.folder / "signed-in.json"

    def record(self) -> AuthenticationRecord | None:
        """Who is signed in through this application, as far as is remembered."""
        from azure.identity import AuthenticationRecord

        try:
            kept = json.loads(self.record_file.read_text(encoding="utf-8"))
            # As it was configured: a tenant may be named by its domain, and the record knows only its id.
            if (kept["tenantId"], kept["clientId"]) != (self.tenant_id, self.client_id):
                return None
            found = AuthenticationRecord.deserialize(kept["record"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if self.authority is None:
            return found
        # A record holds its authority without the scheme, and with a port that is not enough to find it again.
        return AuthenticationRecord(
            found.tenant_id, found.client_id, self.authority, found.home_account_id, found.username
        )

    def log_in(self, prompt: Callable[[str, str, datetime], None]) -> AuthenticationRecord:
        """Have somebody sign in; `prompt` tells them where, with which code, and until when."""
        with _quietly(), self._credential(None, prompt) as credential:
            found: AuthenticationRecord = credential.authenticate(scopes=[self.scope])
            self.protect()
        kept = {"tenantId": self.tenant_id, "clientId": self.client_id, "record": found.serialize()}
        write_private(self.record_file, json.dumps(kept) + "\n")
        return found

    def token(self) -> str:
        """A token that is valid; renewed without asking anybody."""
        if self.clock.now().timestamp() < self._until - _RENEWED_BEFORE_SECONDS:
            return self._token
        from azure.identity import AuthenticationRequiredError

        record = self.record()
        if record is None:
            raise NotSignedIn(f"you are not signed in: run `matoolkit auth login`{self.hint}")
        try:
            with _quietly(), self._credential(record, None) as credential:
                found = credential.get_token(self.scope)
        except AuthenticationRequiredError as error:
            raise NotSignedIn(
                f"the sign-in of {record.username} has ended: run `matoolkit auth login` again"
            ) from error
        self._token, self._until = str(found.token), float(found.expires_on)
        return self._token

    def log_out(self) -> str | None:
        """Forget who is signed in and their tokens; gives who it was."""
        record = self.record()
        for continuous in (False, True):
            _forget(self.client_id, continuous=continuous)
        self.record_file.unlink(missing_ok=True)
        return None if record is None else record.username

    def protect(self) -> None:
        """See to it that a file of tokens is its owner's alone."""
        if os.name == "posix":
            for file in self.token_files():
                file.chmod(0o600)

    def token_files(self) -> list[Path]:
        """The files that tokens are in, or, beside a store of the system, those that say when it changed."""
        return sorted((Path.home() / ".IdentityService").glob(f"{CACHE_NAME}.*"))

    def _credential(self, record: AuthenticationRecord | None, prompt: Callable[..., None] | None) -> Any:
        from azure.identity import DeviceCodeCredential

        given: dict[str, Any] = {
            "tenant_id": self.tenant_id,
            "cache_persistence_options": _options(),
            "disable_automatic_authentication": prompt is None,
        }
        if prompt is not None:
            given["prompt_callback"] = prompt
        if self.authority is not None:
            # Whoever names an authority vouches for it; nobody else needs to be asked whether it is one.
            given["disable_instance_discovery"] = True
        if record is not None:
            return DeviceCodeCredential(authentication_record=record, **given)
        if self.authority is not None:
            given["authority"] = self.authority
        return DeviceCodeCredential(self.client_id, **given)


def store_of_the_system() -> str | None:
    """Where this machine keeps secrets; None when it has no such place that works."""
    from azure.identity._persistent_cache import _get_persistence

    try:
        found = _get_persistence(allow_unencrypted=False, account_name="MSALCache", cache_name=f"{CACHE_NAME}.nocae")
    except (ValueError, ImportError, NotImplementedError):
        return None
    return {
        "LibsecretPersistence": "the system's secret service",
        "KeychainPersistence": "the keychain",
    }.get(type(found).__name__, "a file encrypted for your account")


def _options() -> Any:
    from azure.identity import TokenCachePersistenceOptions

    return TokenCachePersistenceOptions(name=CACHE_NAME, allow_unencrypted_storage=store_of_the_system() is None)


def _forget(client_id: str, *, continuous: bool) -> None:
    """Take everything of an application out of the cache; nobody has to be reached for that."""
    from azure.identity._persistent_cache import _load_persistent_cache
    from msal import TokenCache  # type: ignore[import-untyped] # the library has no types

    cache: Any = _load_persistent_cache(_options(), is_cae=continuous)
    kinds = TokenCache.CredentialType
    with_home: set[tuple[str, str]] = set()
    for kind, remove in (
        (kinds.REFRESH_TOKEN, cache.remove_rt),
        (kinds.ACCESS_TOKEN, cache.remove_at),
        (kinds.ID_TOKEN, cache.remove_idt),
    ):
        for each in list(cache.search(kind, query={"client_id": client_id})):
            with_home.add((each["home_account_id"], each["environment"]))
            remove(each)
    for account in list(cache.search(kinds.ACCOUNT)):
        if (account.get("home_account_id"), account.get("environment")) in with_home:
            cache.remove_account(account)


@contextmanager
def _quietly() -> Iterator[None]:
    """What fails is told once, by us, with the reason that Entra ID gives."""
    from azure.core.exceptions import AzureError, ClientAuthenticationError
    from azure.identity import AuthenticationRequiredError

    logging.getLogger("azure").setLevel(logging.CRITICAL)
    logging.getLogger("msal").setLevel(logging.CRITICAL)
    try:
        yield
    except AuthenticationRequiredError:
        raise
    except ClientAuthenticationError as error:
        raise SignInFailed(f"Entra ID did not sign you in: {_first_line(error)}") from error
    except (AzureError, ValueError, OSError) as error:
        raise SignInFailed(f"signing in failed: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
