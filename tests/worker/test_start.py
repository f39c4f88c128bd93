"""What keeps a worker from starting: one clear line, which names the phase and the fix."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, pkcs12
from cryptography.x509.oid import NameOID

from matoolkit.cli.main import main
from matoolkit.hosts import worker as host
from matoolkit.hosts.health_address import HealthAddress
from matoolkit.settings import BadSettings
from matoolkit.simulation.tenant import TENANT_ID
from matoolkit.worker.configuration import WorkerSettings
from matoolkit.worker.credentials import BadCredential, Certificate, read_certificate
from tests.worker.processes import SECRET, shared_tenant, tenant_settings

if TYPE_CHECKING:
    from matoolkit.store.database import Database

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLANTED = SECRET
EFFECTS = Path(__file__).parent / "effects"


def pfx(password: str | None, begins: datetime, ends: datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "worker")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    how = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(b"worker", key, made, None, how)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The root logger is left to pytest, and no `.env` is about."""
    monkeypatch.setattr(host, "_begin_logging", lambda *_: None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def settings(postgres_database: Database) -> dict[str, str]:
    return {
        **tenant_settings(shared_tenant()),
        "WORKER_ID": "worker-01",
        "MATOOLKIT_DATABASE_URL": postgres_database.engine.url.render_as_string(hide_password=False),
        "HEALTH_CHECK_PORT": "0",
    }


def refused(settings: dict[str, str]) -> str:
    with pytest.raises(host.StartFailed) as caught:
        host.run(settings)
    assert PLANTED not in str(caught.value)
    return str(caught.value)


def test_without_settings_it_names_all_that_is_missing() -> None:
    with pytest.raises(BadSettings) as caught:
        host.run({"MAX_PARALLELISM": "65", "GRAPH_BASE_URL": "http://graph.example"})
    told = str(caught.value)
    for name in ("WORKER_ID", "TARGET_TENANT_ID", "APP_ID"):
        assert f"{name} is missing" in told
    assert "MAX_PARALLELISM must be a whole number from 1 to 64" in told
    assert "GRAPH_BASE_URL must be an address that begins with https://" in told


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"APP_CLIENT_SECRET": ""}, "CERT_NAME, or APP_CERT_PATH (with APP_CERT_PASSWORD), or APP_CLIENT_SECRET"),
        ({"CERT_NAME": "worker"}, "KEY_VAULT_NAME is missing"),
        ({"MATOOLKIT_DATABASE_URL": ""}, "SERVICE_BUS_NAMESPACE is missing"),
        ({"SERVICE_BUS_NAMESPACE": "contoso"}, "cannot both be set"),
        ({"MAX_RETRY_DELAY_SECONDS": "1"}, "must be at least BASE_RETRY_DELAY_SECONDS"),
    ],
)
def test_settings_that_do_not_go_together_are_named(
    settings: dict[str, str], changes: dict[str, str], words: str
) -> None:
    with pytest.raises(BadSettings) as caught:
        host.run(settings | changes)
    assert words in str(caught.value)


def test_a_certificate_that_cannot_be_opened(settings: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "worker.pfx"
    file.write_bytes(pfx(PLANTED, NOW, NOW + timedelta(days=3650)))
    told = refused(settings | {"APP_CERT_PATH": str(file), "APP_CERT_PASSWORD": f"{PLANTED}-other"})
    assert "certificate (phase 4 of 8)" in told
    assert "APP_CERT_PASSWORD is not its password" in told


def test_a_database_that_is_not_there(settings: dict[str, str]) -> None:
    told = refused(settings | {"MATOOLKIT_DATABASE_URL": f"postgresql+psycopg://u:{PLANTED}@127.0.0.1:1/x"})
    assert "bus (phase 5 of 8)" in told


def test_a_database_without_our_tables(settings: dict[str, str], postgres_url: str) -> None:
    told = refused(settings | {"MATOOLKIT_DATABASE_URL": postgres_url})
    assert "bus (phase 5 of 8)" in told
    assert "run `matoolkit migrate`" in told


def test_a_database_that_serves_a_single_process(settings: dict[str, str]) -> None:
    assert "SQLite serves a single process" in refused(settings | {"MATOOLKIT_DATABASE_URL": "sqlite:///x.db"})


def test_a_database_that_holds_no_topics(settings: dict[str, str]) -> None:
    azure_sql = "Server=waves.database.windows.net;Database=w;Authentication=Active Directory Managed Identity"
    told = refused(settings | {"MATOOLKIT_DATABASE_URL": azure_sql})
    assert "the Azure SQL database w on waves.database.windows.net cannot hold the topics" in told


def test_a_tenant_that_does_not_let_it_in(settings: dict[str, str]) -> None:
    told = refused(settings | {"APP_CLIENT_SECRET": "some-other-secret"})
    assert "tenant clients (phase 6 of 8): the worker, as application 00000000-" in told
    assert "AADSTS7000215" in told
    assert "some-other-secret" not in told


def test_a_tenant_that_is_not_there(settings: dict[str, str]) -> None:
    told = refused(settings | {"AUTHORITY_URL": "https://localhost:1"})
    assert "tenant clients (phase 6 of 8): the worker cannot sign in at https://localhost:1" in told


def test_a_tenant_that_is_not_trusted(settings: dict[str, str]) -> None:
    told = refused(settings | {"TENANT_CA_PATH": ""})
    assert "tenant clients (phase 6 of 8)" in told
    assert "its certificate is not trusted" in told
    assert "TENANT_CA_PATH" in told


def test_a_file_of_authorities_that_holds_none(settings: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing of the kind")
    told = refused(settings | {"TENANT_CA_PATH": str(tmp_path / "ca.pem")})
    assert "tenant clients (phase 6 of 8): TENANT_CA_PATH:" in told
    assert "holds no certificates" in told


def test_a_tenant_without_exchange_is_a_tenant(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "custom_functions").mkdir()
    (tmp_path / "custom_functions" / "broken.py").write_text("raise ValueError")
    with caplog.at_level(logging.INFO):
        refused(settings | {"EXCHANGE_BASE_URL": "https://exchange.example"})
    assert "for Microsoft Graph; not for Exchange Online: the worker, as application" in caplog.text


def test_the_password_of_the_database_is_a_secret_of_the_worker(settings: dict[str, str]) -> None:
    url = "postgresql+psycopg://ada:p%40ss%2Fword@db.example/x"
    found: WorkerSettings = WorkerSettings.read(settings | {"MATOOLKIT_DATABASE_URL": url})
    assert {SECRET, "p%40ss%2Fword", "p@ss/word"} <= set(found.own_secrets())
    found = WorkerSettings.read(settings | {"MATOOLKIT_DATABASE_URL": "postgresql://db.example/x?password=pa%20ss"})
    assert "pa ss" in found.own_secrets()
    found = WorkerSettings.read(settings | {"MATOOLKIT_DATABASE_URL": "postgresql://[x"})
    assert found.own_secrets() == [SECRET]


def test_a_module_that_cannot_be_loaded(settings: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "broken.py").write_text("import nothing_like_this")
    told = refused(settings | {"CUSTOM_FUNCTIONS_PATH": str(tmp_path / "mine")})
    assert "functions (phase 7 of 8)" in told
    assert "broken.py, line 1, cannot be loaded" in told


def test_a_port_that_is_taken(settings: dict[str, str]) -> None:
    address = HealthAddress(0, lambda: (200, {}))
    try:
        told = refused(settings | {"HEALTH_CHECK_PORT": str(address.port)})
    finally:
        address.close()
    assert f"job loop (phase 8 of 8): HEALTH_CHECK_PORT: nothing can listen on port {address.port}" in told


def test_what_went_well_says_a_line(settings: dict[str, str], caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    (tmp_path / "custom_functions").mkdir()
    (tmp_path / "custom_functions" / "broken.py").write_text("raise ValueError")
    with caplog.at_level(logging.INFO):
        refused(settings)
    lines = [record.getMessage() for record in caplog.records if record.name == "matoolkit.worker"]
    assert lines[0] == "[1/8] configuration: worker worker-01, up to 2 jobs at a time"
    assert lines[2] == "[3/8] sign-in identity: not needed: nothing of Azure is used"
    assert lines[3] == "[4/8] certificate: client secret (a certificate is the better choice)"
    assert lines[-1] == f"[6/8] tenant clients: signed in to {TENANT_ID} for Microsoft Graph and Exchange Online"
    assert PLANTED not in caplog.text


# Certificates --------------------------------------------------------------------------------------------------------


def test_a_certificate_says_how_long_it_is_valid() -> None:
    made = read_certificate(pfx("word", NOW - timedelta(days=1), NOW + timedelta(days=20)), "word", "x", NOW)
    assert isinstance(made, Certificate)
    assert made.described(NOW) == "certificate CN=worker, valid until 2026-03-21, which is soon: renew it"
    assert "word" not in repr(made)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pfx(None, NOW - timedelta(days=9), NOW - timedelta(days=1)), "expired on 2026-02-28; renew it"),
        (pfx(None, NOW + timedelta(days=1), NOW + timedelta(days=9)), "is not valid before 2026-03-02"),
        (b"no certificate", "cannot be opened"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(BadCredential, match=words):
        read_certificate(content, None, "APP_CERT_PATH: worker.pfx", NOW)


# The command ---------------------------------------------------------------------------------------------------------


def test_functions_are_listed_with_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOM_FUNCTIONS_PATH", str(EFFECTS))
    told = CliRunner().invoke(main, ["worker", "functions"]).output
    assert f"Tell-Secret  ({EFFECTS / 'tenant_of_files.py'})" in told
    assert "    Password*: text, secret" in told
    assert "    Seconds: number, default 0" in told
    assert "Send-Letter" in told
    assert "cannot be repeated" in told


def test_functions_are_listed_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    monkeypatch.setenv("CUSTOM_FUNCTIONS_PATH", str(EFFECTS))
    listed: list[dict[str, Any]] = json.loads(
        CliRunner().invoke(main, ["worker", "functions", "--output", "json"]).output
    )
    (made,) = [each for each in listed if each["name"] == "Make-Thing"]
    assert made["parameters"][0] == {
        "name": "Name",
        "type": "text",
        "mandatory": True,
        "default": None,
        "secret": False,
    }
    assert made["parameters"][1]["default"] == "0"


def test_a_worker_that_does_not_start_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORKER_ID", "TARGET_TENANT_ID", "APP_ID", "MATOOLKIT_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(main, ["worker"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: the settings of the worker are not right:\n  WORKER_ID is missing")
