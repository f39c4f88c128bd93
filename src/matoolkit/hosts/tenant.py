"""Gives a worker its tenant: the machine's time and chance, its credential, and where secrets are."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from contextlib import asynccontextmanager
from secrets import SystemRandom
from typing import TYPE_CHECKING

from matoolkit.clock import SystemClock
from matoolkit.telemetry import SILENT
from matoolkit.worker.credentials import Certificate
from matoolkit.worker.errors import WorkerFailure
from matoolkit.worker.running import Services
from matoolkit.worker.secrets import EnvironmentSecrets, KeptSecrets, key_vault_secrets
from matoolkit.worker.tenant import Identity, Patience, Surroundings, TenantAddresses, open_tenant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from matoolkit.telemetry import Telemetry
    from matoolkit.worker.concealing import Concealer
    from matoolkit.worker.configuration import WorkerSettings
    from matoolkit.worker.credentials import Credential
    from matoolkit.worker.ports import SecretResolver


class BadCertificateAuthority(WorkerFailure):
    """The file of certificate authorities cannot be used."""


@asynccontextmanager
async def tenant_services(
    settings: WorkerSettings,
    credential: Credential,
    concealer: Concealer,
    *,
    tls: ssl.SSLContext | None = None,
    environment: Mapping[str, str] | None = None,
    telemetry: Telemetry = SILENT,
) -> AsyncIterator[Services]:
    """The tenant that the settings name, for as long as a worker runs; asked only when somebody does.

    `tls` is what to trust where that is not what the system and the settings do.
    """
    clock = SystemClock()
    surroundings = Surroundings(
        clock=clock,
        monotonic=time.monotonic,
        sleep=asyncio.sleep,
        chance=SystemRandom().random,
        patience=Patience(
            settings.max_retry_count, settings.base_retry_delay_seconds, settings.max_retry_delay_seconds
        ),
        telemetry=telemetry,
    )
    tenant = open_tenant(
        _who(settings, credential),
        surroundings,
        addresses=TenantAddresses(settings.graph_base_url, settings.exchange_base_url),
        tls=tls or _trust(settings.tenant_ca_path),
    )
    try:
        async with _secrets(settings, os.environ if environment is None else environment) as secrets:
            kept = KeptSecrets(secrets, clock, concealer.add_own)
            yield Services(
                graph=tenant.graph,
                exchange=tenant.exchange,
                secrets=kept,
                sign_in=tenant.begin,
                complaints=tenant.complaints,
            )
    finally:
        await tenant.close()


def _trust(ca_file: Path | None) -> ssl.SSLContext | None:
    """Whom the system trusts, and who is in the file besides."""
    if ca_file is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except (ssl.SSLError, OSError) as error:
        raise BadCertificateAuthority(f"TENANT_CA_PATH: {ca_file} holds no certificates as PEM") from error
    return context


def _who(settings: WorkerSettings, credential: Credential) -> Identity:
    certificate = credential if isinstance(credential, Certificate) else None
    return Identity(
        tenant_id=settings.target_tenant_id,
        client_id=settings.app_id,
        authority=settings.authority_url,
        pfx=None if certificate is None else certificate.pfx,
        pfx_password=None if certificate is None else certificate.password,
        client_secret=None if isinstance(credential, Certificate) else credential.value,
    )


@asynccontextmanager
async def _secrets(settings: WorkerSettings, environment: Mapping[str, str]) -> AsyncIterator[SecretResolver]:
    if settings.key_vault_name is None:
        yield EnvironmentSecrets(environment)
        return
    from azure.identity.aio import DefaultAzureCredential

    # Who the worker is in Azure: the managed identity of its host.
    async with DefaultAzureCredential() as identity:
        vault = key_vault_secrets(settings.key_vault_name, identity)
        try:
            yield vault
        finally:
            await vault.close()
