"""The certificate of a key vault: what it is asked for, and what is told when it cannot be had."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import azure.keyvault.secrets
import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
)

from matoolkit.simulation.tenant import make_client_certificate
from matoolkit.worker.credentials import BadCredential, vault_certificate

NOW = datetime.now(UTC)


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands in for the library's client: what it answers, and what it was asked."""
    found = SimpleNamespace(answer=None, asked=[])

    class Client:
        def __init__(self, address: str, credential: object) -> None:
            found.asked.append((address, credential))

        def get_secret(self, name: str) -> Any:
            found.asked.append(name)
            if isinstance(found.answer, Exception):
                raise found.answer
            return SimpleNamespace(value=found.answer)

    monkeypatch.setattr(azure.keyvault.secrets, "SecretClient", Client)
    return found


def test_it_is_had_with_its_key(vault: SimpleNamespace) -> None:
    made = make_client_certificate()
    vault.answer = base64.b64encode(made.pfx()).decode()
    found = vault_certificate("contoso-kv", "worker", "identity", NOW)
    assert vault.asked == [("https://contoso-kv.vault.azure.net", "identity"), "worker"]
    assert found.subject == "CN=matoolkit worker"
    assert found.expires_at > NOW
    assert found.password is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ResourceNotFoundError("SecretNotFound"), "cannot be had: SecretNotFound"),
        (HttpResponseError("Forbidden by policy"), "cannot be had: Forbidden by policy"),
        (ClientAuthenticationError("no managed identity here"), "cannot be had: no managed identity here"),
        (ServiceRequestError("no such host"), "cannot be had: no such host"),
        ("-----BEGIN PRIVATE KEY-----", "is no PFX: in Key Vault, its content type is to be application/x-pkcs12"),
        (base64.b64encode(b"nothing").decode(), "cannot be opened"),
        (None, "cannot be opened"),
    ],
)
def test_what_cannot_be_used_is_told_by_name(vault: SimpleNamespace, answer: Any, words: str) -> None:
    vault.answer = answer
    with pytest.raises(BadCredential) as failure:
        vault_certificate("contoso-kv", "worker", None, NOW)
    told = str(failure.value)
    assert told.startswith("CERT_NAME: worker in the key vault contoso-kv ")
    assert words in told


def test_one_that_has_expired_is_refused(vault: SimpleNamespace) -> None:
    vault.answer = base64.b64encode(make_client_certificate(days=30).pfx()).decode()
    with pytest.raises(BadCredential, match=r"expired on .*; renew it"):
        vault_certificate("contoso-kv", "worker", None, NOW + timedelta(days=31))
