"""The settings of a worker, by the names operators know them by."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from matoolkit.settings import (
    Secret,
    Settings,
    Unusable,
    defaulted,
    guid,
    https_address,
    matching,
    number,
    optional,
    required,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PARALLEL = 64
CREDENTIALS = "CERT_NAME, or APP_CERT_PATH (with APP_CERT_PASSWORD), or APP_CLIENT_SECRET"

worker_id = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "letters, digits, dots, hyphens and underscores, at most 64")
_tenant = matching(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    "the GUID of a tenant or one of its domains",
)
_vault = matching(r"[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]", "the name of a key vault, without .vault.azure.net")
_namespace = matching(
    r"[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*", "the name of a namespace, as in contoso.servicebus.windows.net"
)


def _folder(value: str) -> Path:
    return Path(value)


def _file(value: str) -> Path:
    found = Path(value)
    if not found.is_file():
        raise Unusable("a file that is there")
    return found


def _passwords(url: str) -> Iterator[str]:
    """The password in an address, as it is written there and as it is."""
    with suppress(ValueError):
        parts = urlsplit(url)
        yield parts.password or ""
        yield unquote(parts.password or "")
        yield from parse_qs(parts.query).get("password", ())


class FunctionSettings(Settings):
    """What is needed to know the functions there are."""

    service: ClassVar[str] = "the worker"

    custom_functions_path = optional("CUSTOM_FUNCTIONS_PATH", _folder)


class WorkerSettings(FunctionSettings):
    """Everything."""

    worker_id = required("WORKER_ID", worker_id, "it is what the steps of a runbook name as worker_id")
    target_tenant_id = required("TARGET_TENANT_ID", _tenant, "the tenant that people move to")
    app_id = required("APP_ID", guid, "the app registration in the target tenant")
    service_bus_namespace = optional("SERVICE_BUS_NAMESPACE", _namespace)
    service_bus_connection_string = optional("SERVICE_BUS_CONNECTION_STRING", Secret)
    key_vault_name = optional("KEY_VAULT_NAME", _vault)
    database_url = optional("MATOOLKIT_DATABASE_URL", Secret)
    cert_name = optional("CERT_NAME", matching(r"[A-Za-z0-9-]{1,127}", "the name of a certificate in the key vault"))
    app_cert_path = optional("APP_CERT_PATH", _file)
    app_cert_password = optional("APP_CERT_PASSWORD", Secret)
    app_client_secret = optional("APP_CLIENT_SECRET", Secret)
    max_parallelism = defaulted("MAX_PARALLELISM", whole_number(1, MOST_PARALLEL), 2)
    max_retry_count = defaulted("MAX_RETRY_COUNT", whole_number(0, 100), 5)
    base_retry_delay_seconds = defaulted("BASE_RETRY_DELAY_SECONDS", number(0, 3600), 2.0)
    max_retry_delay_seconds = defaulted("MAX_RETRY_DELAY_SECONDS", number(0, 86400), 120.0)
    idle_timeout_seconds = defaulted("IDLE_TIMEOUT_SECONDS", number(0), 300.0)
    shutdown_grace_seconds = defaulted("SHUTDOWN_GRACE_SECONDS", number(1, 3600), 30.0)
    health_check_port = defaulted("HEALTH_CHECK_PORT", whole_number(0, 65535), 8080)
    graph_base_url = defaulted("GRAPH_BASE_URL", https_address, "https://graph.microsoft.com")
    exchange_base_url = defaulted("EXCHANGE_BASE_URL", https_address, "https://outlook.office365.com")
    authority_url = defaulted("AUTHORITY_URL", https_address, "https://login.microsoftonline.com")
    tenant_ca_path = optional("TENANT_CA_PATH", _file)
    log_level = defaulted(
        "MATOOLKIT_LOG_LEVEL", matching(r"(?i)debug|info|warning|error", "debug, info, warning or error"), "info"
    )
    log_format = defaulted("MATOOLKIT_LOG_FORMAT", matching(r"(?i)text|json", "text or json"), "text")

    def contradictions(self) -> list[str]:
        """What has to be there with what, and what cannot."""
        return list(self._contradictions())

    def own_secrets(self) -> list[str]:
        """What is to be seen nowhere."""
        given = (self.app_cert_password, self.app_client_secret, self.service_bus_connection_string)
        found = [each.reveal() for each in given if each is not None]
        if self.database_url is not None:
            found += _passwords(self.database_url.reveal())
        return [each for each in found if each]

    @property
    def uses_service_bus(self) -> bool:
        """Whether the jobs come from Azure Service Bus, and not from a database."""
        return self.service_bus_namespace is not None or self.service_bus_connection_string is not None

    def _contradictions(self) -> Iterator[str]:
        if self.database_url is None and not self.uses_service_bus:
            yield (
                "SERVICE_BUS_NAMESPACE is missing: the jobs come from there; or from the database that"
                " MATOOLKIT_DATABASE_URL names, where no Service Bus is used"
            )
        if self.database_url is not None and self.uses_service_bus:
            name = "SERVICE_BUS_NAMESPACE" if self.service_bus_namespace else "SERVICE_BUS_CONNECTION_STRING"
            yield f"{name} and MATOOLKIT_DATABASE_URL cannot both be set: jobs come from one of them"
        if self.cert_name is None and self.app_cert_path is None and self.app_client_secret is None:
            yield f"{CREDENTIALS} is missing: the worker signs in to the target tenant with it"
        if self.cert_name is not None and self.key_vault_name is None:
            yield "KEY_VAULT_NAME is missing: CERT_NAME names a certificate in it"
        if self.max_retry_delay_seconds < self.base_retry_delay_seconds:
            yield "MAX_RETRY_DELAY_SECONDS must be at least BASE_RETRY_DELAY_SECONDS"


__all__ = ["CREDENTIALS", "FunctionSettings", "WorkerSettings", "worker_id"]
