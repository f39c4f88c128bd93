"""The worker of `matoolkit up`: with its tenant, with a simulated one, or with none."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from matoolkit.clock import SystemClock
from matoolkit.hosts.tenant import tenant_services
from matoolkit.hosts.up_settings import tenant_environment
from matoolkit.simulation.tenant import TENANT_ID, Application, SimulatedTenant, make_client_certificate
from matoolkit.telemetry import SILENT
from matoolkit.worker.configuration import WorkerSettings
from matoolkit.worker.credentials import local_credential, vault_certificate
from matoolkit.worker.running import Services
from matoolkit.worker.secrets import EnvironmentSecrets, KeptSecrets

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from matoolkit.clock import Clock
    from matoolkit.telemetry import Telemetry
    from matoolkit.worker.concealing import Concealer
    from matoolkit.worker.credentials import Credential

_CERTIFICATE = "worker.pfx"


@dataclass(frozen=True, slots=True)
class Reach:
    """What functions reach, and what that is called."""

    described: str
    open: Callable[[], AbstractAsyncContextManager[Services]]


def no_tenant(environment: Mapping[str, str], concealer: Concealer) -> Reach:
    """Functions of the customer's own, which may have secrets; a standard one fails and says what is not configured."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Services]:
        yield Services(secrets=KeptSecrets(EnvironmentSecrets(environment), SystemClock(), concealer.add_own))

    return Reach("none is configured, so only functions of your own can be run", opened)


def real_tenant(
    settings: WorkerSettings, environment: Mapping[str, str], concealer: Concealer, telemetry: Telemetry = SILENT
) -> Reach:
    """The tenant that the settings name."""
    concealer.add_own(settings.own_secrets())
    credential = _credential(settings)
    return Reach(
        f"{settings.target_tenant_id}, with {credential.described(SystemClock().now())}",
        lambda: tenant_services(settings, credential, concealer, environment=environment, telemetry=telemetry),
    )


def simulated_tenant(
    simulated: SimulatedTenant, environment: Mapping[str, str], concealer: Concealer, telemetry: Telemetry = SILENT
) -> Reach:
    """A tenant in this process, reached as a real one is: over TLS, signed in with a certificate."""
    certificate, app_id = make_client_certificate(), str(uuid4())
    simulated.tenant.register(Application(client_id=app_id, certificates=[certificate.certificate_pem]))
    file = simulated.folder / _CERTIFICATE
    file.touch(mode=0o600)
    file.write_bytes(certificate.pfx())
    told = {
        **tenant_environment(environment),
        WorkerSettings.target_tenant_id.name: TENANT_ID,
        WorkerSettings.app_id.name: app_id,
        WorkerSettings.app_cert_path.name: str(file),
        WorkerSettings.graph_base_url.name: simulated.url,
        WorkerSettings.exchange_base_url.name: simulated.url,
        WorkerSettings.authority_url.name: simulated.url,
    }
    settings: WorkerSettings = WorkerSettings.read(told)
    credential = _credential(settings)
    tls: ssl.SSLContext = simulated.client_context()
    return Reach(
        f"a simulated one at {simulated.url}, with the domains {' and '.join(simulated.tenant.domains)}",
        lambda: tenant_services(settings, credential, concealer, tls=tls, environment=environment, telemetry=telemetry),
    )


def begin_simulated_tenant(folder: Path, clock: Clock) -> SimulatedTenant:
    """The tenant that is kept in a folder; a user who is made there has a mail user too."""
    simulated = SimulatedTenant(folder=folder, clock=clock, mail_users_for_users=True)
    simulated.start()
    return simulated


def _credential(settings: WorkerSettings) -> Credential:
    now = SystemClock().now()
    found = local_credential(settings, now)
    if found is not None:
        return found
    from azure.identity import DefaultAzureCredential

    identity = DefaultAzureCredential(exclude_interactive_browser_credential=True)
    return vault_certificate(settings.key_vault_name or "", settings.cert_name or "", identity, now)
