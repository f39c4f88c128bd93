"""What the worker signs in to the target tenant with: a certificate, or as the second choice a client secret."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.worker.errors import WorkerFailure

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.worker.configuration import WorkerSettings

_EXPIRES_SOON = timedelta(days=30)


class BadCredential(WorkerFailure):
    """What the worker is to sign in with cannot be used."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its private key, as PFX."""

    pfx: bytes = field(repr=False)
    password: str | None = field(repr=False)
    subject: str
    expires_at: datetime

    def described(self, now: datetime) -> str:
        """For the log: what it is, and whether it is time to renew it."""
        soon = ", which is soon: renew it" if self.expires_at - now < _EXPIRES_SOON else ""
        return f"certificate {self.subject}, valid until {self.expires_at:%Y-%m-%d}{soon}"


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A client secret."""

    value: str = field(repr=False)

    def described(self, _: datetime) -> str:
        """For the log."""
        return "client secret (a certificate is the better choice)"


Credential = Certificate | ClientSecret


def local_credential(settings: WorkerSettings, now: datetime) -> Credential | None:
    """What the settings name on this machine; None when it is in the key vault."""
    if settings.cert_name is not None:
        return None
    if settings.app_cert_path is not None:
        password = settings.app_cert_password
        try:
            pfx = settings.app_cert_path.read_bytes()
        except OSError as error:
            raise BadCredential(f"APP_CERT_PATH: {settings.app_cert_path} cannot be read: {error.strerror}") from error
        where = f"APP_CERT_PATH: {settings.app_cert_path}"
        return read_certificate(pfx, None if password is None else password.reveal(), where, now)
    if settings.app_client_secret is None:
        raise BadCredential("nothing to sign in with is configured")
    return ClientSecret(settings.app_client_secret.reveal())


def vault_certificate(vault_name: str, cert_name: str, credential: object, now: datetime) -> Certificate:
    """A certificate from Key Vault, which hands out its private key as a secret of the same name."""
    where = f"CERT_NAME: {cert_name} in the key vault {vault_name}"
    try:
        from azure.core.exceptions import AzureError
        from azure.keyvault.secrets import SecretClient
    except ModuleNotFoundError as error:
        raise BadCredential(f"{where} needs the extra `azure`: pip install 'matoolkit[azure]'") from error
    try:
        found = SecretClient(f"https://{vault_name}.vault.azure.net", credential).get_secret(cert_name)  # type: ignore[arg-type]
    except AzureError as error:
        raise BadCredential(f"{where} cannot be had: {error.message}") from error
    try:
        pfx = base64.b64decode(found.value or "", validate=True)
    except (ValueError, binascii.Error) as error:
        raise BadCredential(
            f"{where} is no PFX: in Key Vault, its content type is to be application/x-pkcs12"
        ) from error
    return read_certificate(pfx, None, where, now)


def read_certificate(pfx: bytes, password: str | None, where: str, now: datetime) -> Certificate:
    """A certificate that can be used today; `where` says which one it is when it cannot."""
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        key, certificate, _ = pkcs12.load_key_and_certificates(pfx, None if password is None else password.encode())
    except ValueError as error:
        raise BadCredential(
            f"{where} cannot be opened: it is no PFX, or APP_CERT_PASSWORD is not its password"
        ) from error
    if key is None or certificate is None:
        raise BadCredential(f"{where} holds no certificate with a private key")
    if now < certificate.not_valid_before_utc:
        raise BadCredential(f"{where} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC")
    if now >= certificate.not_valid_after_utc:
        raise BadCredential(f"{where} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; renew it")
    return Certificate(pfx, password, certificate.subject.rfc4514_string(), certificate.not_valid_after_utc)
