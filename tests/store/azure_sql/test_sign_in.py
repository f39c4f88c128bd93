"""Who signs in, and what for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.store.address import parsed
from matoolkit.store.azure_sql.sign_in import entra_tokens, scope, wants_token
from matoolkit.store.errors import DatabaseUnavailable, SignInRefused, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

MANAGED = "Server={host};Database=w;Authentication=Active Directory Managed Identity;{more}"
DEFAULT = "Server={host};Database=w;Authentication=Active Directory Default;{more}"


def address(text: str = MANAGED, host: str = "waves.database.windows.net", more: str = "") -> Any:
    return parsed(text.format(host=host, more=more))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("waves.database.windows.net", "https://database.windows.net/.default"),
        ("waves.privatelink.database.windows.net", "https://database.windows.net/.default"),
        ("waves.database.usgovcloudapi.net", "https://database.usgovcloudapi.net/.default"),
        ("waves.database.chinacloudapi.cn", "https://database.chinacloudapi.cn/.default"),
        ("10.0.0.4", "https://database.windows.net/.default"),
    ],
)
def test_the_token_is_for_the_cloud_that_the_server_is_in(host: str, expected: str) -> None:
    assert scope(address(host=host)) == expected


def test_a_password_needs_no_token() -> None:
    assert wants_token(address())
    assert wants_token(address(DEFAULT))
    assert not wants_token(parsed("Server=w;Database=w;UID=anna;PWD=x"))
    assert not wants_token(
        parsed("Server=w;Database=w;Authentication=Active Directory Service Principal;UID=app;PWD=x")
    )


class Credential:
    """Stands for one of the library's, and remembers how it was made."""

    made: dict[str, Any]
    answer: Callable[[str], Any]

    def __init__(self, **options: Any) -> None:
        type(self).made = options

    def get_token(self, wanted: str) -> Any:
        return type(self).answer(wanted)


class Token:
    token = "a-token"


def asked(monkeypatch: pytest.MonkeyPatch, kind: str, where: Any, answer: Callable[[str], Any]) -> Any:
    credential = type("ThisCredential", (Credential,), {"answer": staticmethod(answer)})
    monkeypatch.setattr(f"azure.identity.{kind}", credential)
    return credential, entra_tokens(where)


@pytest.mark.parametrize(
    ("more", "variable", "expected"),
    [("", None, None), ("", "from-variable", "from-variable"), ("User ID=named", "from-variable", "named")],
)
def test_the_identity_is_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch, more: str, variable: str | None, expected: str | None
) -> None:
    if variable is None:
        monkeypatch.delenv("AZURE_CLIENT_ID", raising=False)
    else:
        monkeypatch.setenv("AZURE_CLIENT_ID", variable)
    scopes: list[str] = []

    def answer(wanted: str) -> type[Token]:
        scopes.append(wanted)
        return Token

    credential, tokens = asked(monkeypatch, "ManagedIdentityCredential", address(more=more), answer)
    assert tokens("https://database.windows.net/.default") == "a-token"
    assert credential.made == {"client_id": expected}
    assert scopes == ["https://database.windows.net/.default"]


def test_elsewhere_whoever_is_signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_ID", "from-variable")
    credential, tokens = asked(monkeypatch, "DefaultAzureCredential", address(DEFAULT), lambda _: Token)
    assert tokens("x") == "a-token"
    assert credential.made["managed_identity_client_id"] == "from-variable"
    assert credential.made["exclude_interactive_browser_credential"] is True


def test_what_goes_wrong_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
    from azure.identity import CredentialUnavailableError

    cases: list[tuple[Exception, type[StoreError], str]] = [
        (CredentialUnavailableError(message="no endpoint\nmore"), SignInRefused, "no managed identity.*: no endpoint$"),
        (ClientAuthenticationError(message="AADSTS7000215: bad secret\nmore"), SignInRefused, "bad secret$"),
        (ServiceRequestError(message="no route"), DatabaseUnavailable, "no route$"),
    ]
    for raised, expected, words in cases:

        def answer(_: str, raised: Exception = raised) -> Any:
            raise raised

        _, tokens = asked(monkeypatch, "ManagedIdentityCredential", address(), answer)
        with pytest.raises(expected, match=words):
            tokens("x")
