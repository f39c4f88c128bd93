"""What `matoolkit up` makes of its settings, and what it tells of them; in this process, since nothing has to work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.hosts.environment import environment
from matoolkit.hosts.up import Up
from matoolkit.hosts.up_settings import TwoTenants, Wishes, configuration
from matoolkit.settings import BadSettings

if TYPE_CHECKING:
    from pathlib import Path

ENTRA = {
    "AzureAd__TenantId": "11111111-2222-3333-4444-555555555555",
    "AzureAd__ClientId": "66666666-7777-8888-9999-000000000000",
    "AdminApi__Host": "127.0.0.1",
}
TENANT = {
    "TARGET_TENANT_ID": "contoso.example",
    "APP_ID": "66666666-7777-8888-9999-000000000000",
    "APP_CLIENT_SECRET": "Planted-Client-Secret-78",
}


def introduced(folder: Path, told: dict[str, str]) -> dict[str, str]:
    configured = configuration(Wishes(folder=folder / "data", port=0), told)
    with Up(configured) as up:
        try:
            return dict(up.introduction())
        finally:
            up.stop()


def test_without_anything_it_signs_in_by_the_key_and_has_no_tenant(tmp_path: Path) -> None:
    said = introduced(tmp_path, {})
    assert "with the key in the data folder" in said["sign-in"]
    assert f"export MATOOLKIT_DATA={tmp_path / 'data'} MATOOLKIT_API_URL=http://127.0.0.1:" in said["sign-in"]
    assert said["worker"].startswith("every worker id; 14 standard functions, 0 of your own")
    assert said["tenant"].startswith("none is configured")
    assert "SQLite" in said["data"]


def test_with_entra_id_people_sign_in_there(tmp_path: Path) -> None:
    said = introduced(tmp_path, ENTRA)
    assert said["sign-in"].startswith("`matoolkit auth login`")
    assert not (tmp_path / "data" / "signing-key.pem").exists()


def test_a_real_tenant_is_named_and_its_secret_is_not(tmp_path: Path) -> None:
    said = introduced(tmp_path, {**TENANT, "WORKER_ID": "worker-07"})
    assert said["tenant"].startswith("contoso.example")
    assert said["worker"].startswith("worker-07;")
    assert TENANT["APP_CLIENT_SECRET"] not in str(said)


def test_what_belongs_to_other_processes_is_left_out_of_the_tenants_settings(tmp_path: Path) -> None:
    found = configuration(Wishes(folder=tmp_path), {**TENANT, "SERVICE_BUS_NAMESPACE": "contoso"}).tenant
    assert found is not None
    assert found.service_bus_namespace is None
    assert found.target_tenant_id == "contoso.example"


def test_half_a_tenant_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BadSettings) as refused:
        configuration(Wishes(folder=tmp_path), {"APP_CLIENT_SECRET": "x", "MAX_PARALLELISM": "0"})
    told = str(refused.value)
    for name in ("TARGET_TENANT_ID", "APP_ID", "MAX_PARALLELISM"):
        assert told.count(f"  {name} ") == 1


@pytest.mark.parametrize("setting", ["TARGET_TENANT_ID", "MATOOLKIT_APP_ID", "CERT_NAME", "APP_CERT_PATH"])
def test_a_simulated_tenant_is_the_only_one(setting: str, tmp_path: Path) -> None:
    with pytest.raises(TwoTenants, match=setting.removeprefix("MATOOLKIT_")):
        configuration(Wishes(folder=tmp_path, simulated_tenant=True), {setting: "x"})


def test_the_file_env_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAX_PARALLELISM", raising=False)
    (tmp_path / ".env").write_text("MAX_PARALLELISM=11\nMATOOLKIT_DATABASE_URL=sqlite:///elsewhere.db\n")
    found = configuration(Wishes(folder=tmp_path), environment(tmp_path))
    assert (found.worker.max_parallelism, found.database_url) == (11, "sqlite:///elsewhere.db")
