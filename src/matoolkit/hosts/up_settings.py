"""What `matoolkit up` is told: by its options, and by the settings of the parts that it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError
from matoolkit.hosts.api import ApiSettings
from matoolkit.hosts.scheduler import POLL_TICK, TICK
from matoolkit.hosts.shared import DATABASE_VARIABLE
from matoolkit.settings import BadSettings, Settings, optional
from matoolkit.worker.configuration import FunctionSettings, WorkerSettings, worker_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta
    from pathlib import Path

_TENANT = (
    WorkerSettings.target_tenant_id,
    WorkerSettings.app_id,
    WorkerSettings.cert_name,
    WorkerSettings.app_cert_path,
    WorkerSettings.app_client_secret,
)
"""Whoever sets one of them has a tenant."""


class TwoTenants(MatoolkitError):
    """A worker has one tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the options say."""

    folder: Path
    port: int | None = None
    tick: timedelta = TICK
    poll_tick: timedelta = POLL_TICK
    simulated_tenant: bool = False


class UpSettings(FunctionSettings):
    """What its worker is told, whether it has a tenant or not."""

    service = "matoolkit up"

    worker_id = optional("WORKER_ID", worker_id)
    max_parallelism = WorkerSettings.max_parallelism
    shutdown_grace_seconds = WorkerSettings.shutdown_grace_seconds
    log_level = WorkerSettings.log_level
    log_format = WorkerSettings.log_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All of it, read and found to be right."""

    wishes: Wishes
    environment: Mapping[str, str]
    worker: UpSettings
    api: ApiSettings
    tenant: WorkerSettings | None
    """Of the real one, where there is one."""

    @property
    def database_url(self) -> str | None:
        """Another database than the one in the data folder."""
        return self.environment.get(DATABASE_VARIABLE, "").strip() or None

    @property
    def address(self) -> tuple[str, int]:
        """Where the API listens."""
        host, port = self.api.address
        return host, port if self.wishes.port is None else self.wishes.port


def configuration(wishes: Wishes, environment: Mapping[str, str]) -> Configuration:
    """Read everything; what is wrong with any of it is told at once."""
    problems: list[str] = []

    def read(kind: type[Settings], told: Mapping[str, str]) -> Settings | None:
        try:
            found: Settings = kind.read(told)
        except BadSettings as error:
            problems.extend(each for each in error.problems if each not in problems)
            return None
        return found

    has_tenant = any(each.text(environment) is not None for each in _TENANT)
    if has_tenant and wishes.simulated_tenant:
        named = ", ".join(each.name for each in _TENANT if each.text(environment) is not None)
        raise TwoTenants(
            f"--simulated-tenant is a tenant, and {named} names another one: leave out the option or the setting"
        )
    worker, api = read(UpSettings, environment), read(ApiSettings, environment)
    tenant = read(WorkerSettings, tenant_environment(environment)) if has_tenant else None
    if problems or not isinstance(worker, UpSettings) or not isinstance(api, ApiSettings):
        raise BadSettings(UpSettings.service, problems)
    return Configuration(
        wishes=wishes,
        environment=environment,
        worker=worker,
        api=api,
        tenant=tenant if isinstance(tenant, WorkerSettings) else None,
    )


def tenant_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a worker of its own would be told beside its tenant: here an id is optional, and the bus is at hand."""
    here = {
        WorkerSettings.worker_id.name: WorkerSettings.worker_id.text(environment) or "every-worker",
        DATABASE_VARIABLE: "sqlite://",
    }
    elsewhere = (
        WorkerSettings.service_bus_namespace,
        WorkerSettings.service_bus_connection_string,
        WorkerSettings.worker_id,
    )
    left_out = {name for each in elsewhere for name in (each.name, each.plain_name)}
    return {name: value for name, value in environment.items() if name not in left_out} | here
