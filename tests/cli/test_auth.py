"""Signing in: with this machine's key, and through Entra ID with a code, as the simulated tenant speaks it."""

from __future__ import annotations

import json
import shutil
import stat
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import jwt
import pytest
import requests
from click.testing import CliRunner, Result

from matoolkit.api.sign_in import EntraSettings, entra_sign_in
from matoolkit.cli.main import main
from matoolkit.cli.sign_in import local
from matoolkit.cli.sign_in.entra import store_of_the_system
from matoolkit.clock import SystemClock
from matoolkit.local_key import make_local_key
from matoolkit.simulation.tenant import TENANT_ID, Decision, ExposedApi, Person, SimulatedTenant
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from tests.api.live import Live
from tests.api.people import runbook
from tests.cli.conftest import Run, bad, good, good_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ADMIN = Person(username="operator@target.example", name="The Operator", roles=frozenset({"Admin"}))
READER = Person(username="reader@target.example", name="A Reader", roles=frozenset({"Reader"}))


class Directory(NamedTuple):
    """A tenant, an API that trusts it, and the application that people sign in through."""

    tenant: SimulatedTenant
    live: Live
    client_id: str
    scope: str


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Directory]:
    folder = tmp_path_factory.mktemp("entra")
    shutil.copyfile(migrated_file, folder / "matoolkit.db")
    database = open_database(in_file(folder / "matoolkit.db"), durable=False)
    with SimulatedTenant() as server:
        api = ExposedApi(client_id=str(uuid4()))
        server.tenant.expose(api)
        client_id = str(uuid4())
        server.tenant.allow_people_in(client_id)
        server.tenant.device_codes.interval_seconds = 0
        settings = EntraSettings(TENANT_ID, api.client_id, instance=f"{server.url}/")

        def fetch(url: str) -> bytes:
            with requests.Session() as session:
                session.trust_env = False
                return session.get(url, timeout=10, verify=str(server.ca_file)).content

        live = Live(database, folder, sign_in=entra_sign_in(settings, SystemClock(), fetch))
        yield Directory(server, live, client_id, f"{api.uri}/user_impersonation")
        live.close()
    database.close()


@pytest.fixture
def tenant(directory: Directory, nothing_set: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Directory]:
    """The tenant is configured by variables; everybody who begins to sign in is let in as an administrator."""
    monkeypatch.setenv("MATOOLKIT_API_URL", directory.live.server.url)
    monkeypatch.setenv("MATOOLKIT_TENANT_ID", TENANT_ID)
    monkeypatch.setenv("MATOOLKIT_CLIENT_ID", directory.client_id)
    monkeypatch.setenv("MATOOLKIT_API_SCOPE", directory.scope)
    monkeypatch.setenv("MATOOLKIT_AUTHORITY_URL", directory.tenant.url)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(directory.tenant.ca_file))
    codes = directory.tenant.tenant.device_codes
    codes.approve_as = ADMIN
    yield directory
    codes.approve_as, codes.lifetime_seconds = None, 900
    directory.tenant.tenant.tokens.lifetime_seconds = 3599


@pytest.fixture
def entra(tenant: Directory) -> Run:
    def run(*arguments: object, given: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments], input=given)

    return run


def claims(token: str) -> dict[str, object]:
    found: dict[str, object] = jwt.decode(token.strip(), options={"verify_signature": False})
    return found


# Entra ID ------------------------------------------------------------------------------------------------------------


def test_signed_in_once_and_remembered(entra: Run, nothing_set: Path, tenant: Directory) -> None:
    before = entra("batch", "list")
    assert bad(before) == "you are not signed in: run `matoolkit auth login`"
    result = entra("auth", "login")
    assert good(result) == "Signed in as operator@target.example.\n"
    assert "Open https://" in result.stderr
    assert "and enter the code" in result.stderr
    # Here nothing keeps secrets, so that is told.
    assert "this machine has no place that keeps secrets" in result.stderr
    files = [each for each in nothing_set.rglob("*") if each.is_file()]
    assert {each.parent.name for each in files} == {".matoolkit", ".IdentityService"}
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert stat.S_IMODE((nothing_set / ".matoolkit").stat().st_mode) == 0o700
    assert good_json(entra("batch", "list", "--output", "json"))["batches"] == []
    token = good(entra("auth", "token"))
    assert claims(token)["preferred_username"] == ADMIN.username
    assert "expiresAt" in good_json(entra("auth", "token", "--output", "json"))


def test_what_is_remembered_of_a_person_holds_no_token(entra: Run, nothing_set: Path) -> None:
    good(entra("auth", "login"))
    kept = json.loads((nothing_set / ".matoolkit" / "signed-in.json").read_text())
    assert set(kept) == {"tenantId", "clientId", "record"}
    record = json.loads(kept["record"])
    assert record["username"] == ADMIN.username
    assert not any("token" in key.lower() or "secret" in key.lower() for key in record)


def test_the_audit_names_who_signed_in(entra: Run) -> None:
    good(entra("auth", "login"))
    name = f"wave-{uuid4().hex[:8]}"
    good(entra("runbook", "publish", "-", given=runbook(name)))
    entries = good_json(entra("audit", "--actor", ADMIN.username, "--output", "json"))["entries"]
    assert entries[0]["target"] == f"{name} v1"


def test_status_says_who_and_where(entra: Run, tenant: Directory) -> None:
    nobody = entra("auth", "status")
    assert nobody.exit_code == 1
    assert "Signed in as:  nobody\n" in nobody.stdout
    assert "run `matoolkit auth login`" in nobody.stdout
    good(entra("auth", "login"))
    shown = good(entra("auth", "status"))
    assert "Signed in as:      operator@target.example\n" in shown
    assert "Roles:             Admin\n" in shown
    assert ".IdentityService" in shown
    found = good_json(entra("auth", "status", "--output", "json"))
    assert (found["method"], found["signedIn"], found["server"]["status"]) == ("entra", True, "healthy")
    assert found["serverError"] is None


def test_signed_out(entra: Run, nothing_set: Path) -> None:
    good(entra("auth", "login"))
    assert good(entra("auth", "logout")) == "Signed out operator@target.example.\n"
    left = "".join(each.read_text() for each in nothing_set.rglob("*") if each.is_file())
    assert "eyJ" not in left
    assert ADMIN.username not in left
    held = [json.loads(each.read_text()) for each in (nothing_set / ".IdentityService").glob("*.nocae")]
    assert not any(cache.get(kind) for cache in held for kind in ("AccessToken", "RefreshToken", "IdToken", "Account"))
    assert bad(entra("auth", "token")) == "you are not signed in: run `matoolkit auth login`"
    assert good(entra("auth", "logout")) == "Nobody was signed in.\n"
    assert good_json(entra("auth", "logout", "--output", "json")) == {"username": None}


def test_a_token_that_ended_is_renewed_without_a_word(entra: Run, tenant: Directory) -> None:
    tenant.tenant.tenant.tokens.lifetime_seconds = 60
    good(entra("auth", "login"))
    tenant.tenant.tenant.device_codes.approve_as = None
    tokens = {good(entra("auth", "token")) for _ in range(2)}
    assert all(claims(token)["preferred_username"] == ADMIN.username for token in tokens)
    assert len(tokens) == 2


def test_a_sign_in_that_was_revoked_has_to_be_made_again(entra: Run, tenant: Directory) -> None:
    tenant.tenant.tenant.tokens.lifetime_seconds = 60
    good(entra("auth", "login"))
    tenant.tenant.tenant.sign_in.revoke_refresh_tokens()
    assert bad(entra("batch", "list")) == (
        "the sign-in of operator@target.example has ended: run `matoolkit auth login` again"
    )


@pytest.mark.parametrize(("decision", "expected"), [(Decision.DECLINED, "declined"), (Decision.EXPIRED, "expired")])
def test_somebody_who_is_not_let_in(
    entra: Run, tenant: Directory, decision: Decision, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = tenant.tenant.tenant.device_codes
    codes.approve_as = None
    begin = codes.begin

    def begin_and_decide(client_id: str, scope: str) -> object:
        code = begin(client_id, scope)
        codes.decide(code.user_code, decision)
        return code

    monkeypatch.setattr(codes, "begin", begin_and_decide)
    said = bad(entra("auth", "login"))
    assert said.splitlines()[0].startswith("Entra ID did not sign you in: ")
    assert expected in said.lower()


def test_a_role_that_is_missing_is_named(entra: Run, tenant: Directory) -> None:
    tenant.tenant.tenant.device_codes.approve_as = READER
    good(entra("auth", "login"))
    good(entra("batch", "list"))
    said = bad(entra("automation", "enable", "wave"))
    assert "this needs the role Admin" in said
    assert "matoolkit auth logout" in said
    assert good_json(entra("auth", "status", "--output", "json"))["roles"] == ["Reader"]


def test_tokens_for_another_api_are_refused_with_what_to_do(
    entra: Run, tenant: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ExposedApi(client_id=str(uuid4()))
    tenant.tenant.tenant.expose(other)
    monkeypatch.setenv("MATOOLKIT_API_SCOPE", f"{other.uri}/user_impersonation")
    good(entra("auth", "login"))
    said = bad(entra("batch", "list"))
    assert "its audience is not this API" in said
    assert "matoolkit auth login" in said
    status = entra("auth", "status")
    assert status.exit_code == 1
    assert "Server error:" in status.stdout


def test_an_authority_that_is_away(entra: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATOOLKIT_AUTHORITY_URL", "https://localhost:1")
    assert "sign" in bad(entra("auth", "login"))


@pytest.mark.parametrize("name", ["MATOOLKIT_TENANT_ID", "MATOOLKIT_CLIENT_ID"])
def test_half_a_configuration_is_told(entra: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv(name)
    key = name.removeprefix("MATOOLKIT_").lower().replace("_", "-")
    assert bad(entra("auth", "login")) == (
        f"to sign in to Entra ID, {key} is missing: run `matoolkit config set {key} …`"
    )


def test_whoever_means_the_server_of_this_machine_is_told_how(
    entra: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_local_key(tmp_path / "data")
    monkeypatch.setenv("MATOOLKIT_DATA", str(tmp_path / "data"))
    said = bad(entra("batch", "list"))
    assert said.startswith("you are not signed in: run `matoolkit auth login`. If you mean the server")
    assert "neither tenant-id nor client-id is set" in said


def test_another_application_is_another_sign_in(entra: Run, tenant: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    good(entra("auth", "login"))
    monkeypatch.setenv("MATOOLKIT_CLIENT_ID", str(uuid4()))
    assert bad(entra("auth", "token")) == "you are not signed in: run `matoolkit auth login`"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("KeychainPersistence", "the keychain"),
        ("LibsecretPersistence", "the system's secret service"),
        ("FilePersistenceWithDataProtection", "a file encrypted for your account"),
    ],
)
def test_a_store_of_the_system_is_used_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, kind: str, expected: str
) -> None:
    asked: list[bool] = []

    def there(*, allow_unencrypted: bool, **_: str) -> object:
        asked.append(allow_unencrypted)
        return type(kind, (), {})()

    monkeypatch.setattr("azure.identity._persistent_cache._get_persistence", there)
    assert store_of_the_system() == expected
    # Asked for without leave to fall back, so that what it gives is a store.
    assert asked == [False]


def test_no_token_is_ever_in_what_is_said(entra: Run) -> None:
    said = [entra("auth", "login"), entra("auth", "status"), entra("auth", "status", "--output", "json")]
    said += [entra("config", "show"), entra("auth", "logout")]
    assert not any("eyJ" in result.output for result in said)


# This machine's key --------------------------------------------------------------------------------------------------


def test_on_the_servers_machine_nobody_has_to_sign_in(run: Run, live_folder: Path) -> None:
    assert good(run("auth", "login")).startswith(f"No sign-in is needed: the key in {live_folder} signs in as ")
    assert good_json(run("auth", "login", "--output", "json"))["method"] == "local"
    shown = good(run("auth", "status"))
    assert "Sign-in:           the key of this machine\n" in shown
    assert "State:             healthy, version " in shown
    found = good_json(run("auth", "status", "--output", "json"))
    assert (found["signedIn"], found["roles"], found["method"]) == (True, ["Admin"], "local")
    assert good(run("auth", "logout")).startswith("Nothing to do")
    assert claims(good(run("auth", "token")))["roles"] == ["Admin"]


def test_a_data_folder_without_a_key(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MATOOLKIT_DATA", str(tmp_path / "other"))
    assert bad(run("batch", "list")).startswith(f"there is no key in {tmp_path / 'other'}")
    status = run("auth", "status")
    assert (status.exit_code, "there is no key in" in status.stdout) == (1, True)


def test_the_key_of_another_server(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_local_key(tmp_path / "other")
    monkeypatch.setenv("MATOOLKIT_DATA", str(tmp_path / "other"))
    said = bad(run("batch", "list"))
    assert "the server does not accept your sign-in: the token is signed with a key that is not known" in said
    assert "set MATOOLKIT_DATA to the data folder of that server" in said


def test_a_key_that_others_can_read(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_local_key(tmp_path / "other")
    (tmp_path / "other" / "signing-key.pem").chmod(0o644)
    monkeypatch.setenv("MATOOLKIT_DATA", str(tmp_path / "other"))
    assert "chmod 600" in bad(run("batch", "list"))


def test_an_expired_token(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LIFETIME", timedelta(hours=-1))
    assert "the server does not accept your sign-in: the token has expired." in bad(run("batch", "list"))


@pytest.mark.parametrize("url", ["http://waves.example.com", "http://10.0.0.1:8080"])
def test_no_token_travels_in_the_open(run: Run, url: str) -> None:
    assert "use https" in bad(run("batch", "list", "-u", url))


def test_a_server_elsewhere_without_a_way_to_sign_in(run: Run) -> None:
    assert "it is not said how to sign in to https://waves.example.com" in bad(
        run("batch", "list", "--api-url", "https://waves.example.com")
    )
