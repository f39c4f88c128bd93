"""A tenant with a folder is found again after its process was killed, and so is the trust in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aiohttp
import pytest
import requests

from matoolkit.simulation.tenant import Application, SimulatedTenant, TenantNotStarted
from tests.simulation.tenant.client import CLIENT_ID, PASSWORD, SECRET, Client, new_user

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]


def started(folder: Path, **settings: Any) -> SimulatedTenant:
    server = SimulatedTenant(folder=folder, **settings)
    server.tenant.register(Application(client_id=CLIENT_ID, secrets={SECRET}))
    return server


def test_everything_is_found_again(tmp_path: Path) -> None:
    with started(tmp_path) as server, Client(server) as client:
        identifier = client.create("anna")
        removed = client.create("bert")
        client.graph("DELETE", f"/users/{removed}")
        server.tenant.add_mail_users([{"UserPrincipalName": "anna@target.example"}])
        server.tenant.add_distribution_groups([{"Name": "All", "Members": ["anna@target.example"]}])
        [group] = server.tenant.add_groups([{"displayName": "moved", "members": [identifier]}])
        client.command("Set-MailUser", Identity="anna@target.example", ExchangeGuid=str(uuid4()))
        authority, token = server.ca_file.read_bytes(), client.token("https://graph.microsoft.com")
        before = client.command("Get-MailUser", Identity="anna@target.example").json()["value"]
    with started(tmp_path) as server, Client(server) as client:
        assert server.ca_file.read_bytes() == authority
        # What was signed before holds: the keys are the same.
        assert client.graph("GET", "/users/anna@target.example", token=token).json()["id"] == identifier
        assert client.graph("GET", f"/users/{removed}").status_code == 404
        assert [each["id"] for each in client.graph("GET", f"/groups/{group['id']}/members").json()["value"]] == [
            identifier
        ]
        assert client.command("Get-MailUser", Identity="anna@target.example").json()["value"] == before
        assert len(client.command("Get-DistributionGroupMember", Identity="All").json()["value"]) == 1
        assert client.graph("POST", "/users", new_user("anna")).status_code == 400
    assert PASSWORD.encode() not in (tmp_path / "tenant.db").read_bytes()
    secret = [tmp_path / "tenant.db", tmp_path / "steering-token"]
    assert [file for file in secret if file.stat().st_mode & 0o077] == []


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    begun: list[subprocess.Popen[str]] = []
    yield begun
    for process in begun:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def test_what_was_answered_survives_a_kill(tmp_path: Path, processes: list[subprocess.Popen[str]]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.simulation.tenant.killed", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    processes.append(process)
    assert process.stdout
    url = process.stdout.readline().strip()
    assert url.startswith("https://")
    server = SimulatedTenant()
    server.ca_file = tmp_path / "ca.pem"
    answered = []
    session = requests.Session()
    session.trust_env, session.verify = False, str(tmp_path / "ca.pem")
    with session:
        form = {"client_id": CLIENT_ID, "client_secret": SECRET, "grant_type": "client_credentials"}
        scope = {"scope": "https://graph.microsoft.com/.default"}
        tenant = server.tenant.tenant_id
        token = session.post(f"{url}/{tenant}/oauth2/v2.0/token", data={**form, **scope}, timeout=10).json()
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        for number in range(40):
            name = f"person{number}"
            if number == 30:
                process.kill()
            try:
                answer = session.post(f"{url}/v1.0/users", json=new_user(name), headers=headers, timeout=10)
            except requests.exceptions.ConnectionError:
                break
            assert answer.status_code == 201
            answered.append(answer.json()["id"])
    server._close()
    assert len(answered) >= 30
    process.wait()
    with started(tmp_path) as again:
        assert set(answered) <= set(again.tenant.directory.users)


def test_a_taken_port_is_an_error_with_its_number(tmp_path: Path) -> None:
    with started(tmp_path) as server, pytest.raises(TenantNotStarted, match=f"port {server.port}"):
        SimulatedTenant(port=server.port).__enter__()


async def _ask(server: SimulatedTenant) -> int:
    connector = aiohttp.TCPConnector(ssl=server.client_context())
    async with aiohttp.ClientSession(connector=connector) as session, session.get(f"{server.url}/v1.0/users") as answer:
        return answer.status


def test_it_runs_in_a_loop_that_runs_already() -> None:
    import asyncio

    async def main() -> int:
        async with SimulatedTenant() as server:
            return await _ask(server)

    assert asyncio.run(main()) == 401


def test_a_client_without_the_authority_does_not_trust_it(server: SimulatedTenant) -> None:
    with requests.Session() as session:
        session.trust_env = False
        with pytest.raises(requests.exceptions.SSLError):
            session.get(server.url, timeout=5)


def test_ten_thousand_of_each_are_there_at_once() -> None:
    with SimulatedTenant() as server:
        tenant = server.tenant
        people = tenant.add_users({"userPrincipalName": f"p{n}@target.example"} for n in range(10_000))
        tenant.add_mail_users({"UserPrincipalName": f"p{n}@target.example"} for n in range(10_000))
        [group] = tenant.add_groups([{"displayName": "all", "members": [each["id"] for each in people]}])
        assert len(tenant.directory.members(group["id"])) == 10_000
        with pytest.raises(ValueError, match="same userPrincipalName"):
            tenant.add_users([{"userPrincipalName": "new@target.example"}, {"userPrincipalName": "P1@target.example"}])
        assert len(tenant.directory.users) == 10_000
        with pytest.raises(ValueError, match="the address"):
            tenant.add_mail_users([{"UserPrincipalName": "P1@target.example"}])


def test_mail_users_come_with_users_on_request() -> None:
    with started_in_memory() as server, Client(server) as client:
        identifier = client.create("anna")
        [found] = client.command("Get-MailUser", Identity="anna@target.example").json()["value"]
        assert found["ExternalDirectoryObjectId"] == identifier


def started_in_memory() -> SimulatedTenant:
    server = SimulatedTenant(mail_users_for_users=True)
    server.tenant.register(Application(client_id=CLIENT_ID, secrets={SECRET}))
    return server
