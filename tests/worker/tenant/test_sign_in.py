"""Signing in: with a certificate and with a secret, once for all, ahead of time, and again when a token is refused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from matoolkit.clock import ManualClock
from matoolkit.simulation.tenant import Api, TenantFault
from matoolkit.worker.tenant import SignInFailed
from matoolkit.worker.tenant.sign_in import AHEAD_SECONDS, SignIn
from tests.worker.hands import CLIENT_SECRET, Hands, clients, identity

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import ClientCertificate, SimulatedTenant

SCOPE = "https://graph.microsoft.com/.default"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Issued:
    """Stands in for the library, where what matters is when it is asked."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.count = 0
        self.error: Exception | None = None
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def get_token(self, scope: str) -> Any:
        self.count += 1
        number = self.count
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        return SimpleNamespace(token=f"token-{number}", expires_on=self.clock.now().timestamp() + 3600)

    async def close(self) -> None: ...


def prepared(monkeypatch: pytest.MonkeyPatch) -> tuple[SignIn, Issued, ManualClock]:
    clock = ManualClock(NOW)
    issued = Issued(clock)
    who: Any = SimpleNamespace(client_id="c", tenant_id="t", authority="https://a.example")
    sign_in = SignIn(who, None, clock)  # type: ignore[arg-type]  # nothing is sent
    monkeypatch.setattr(sign_in, "_credential", lambda: issued)
    return sign_in, issued, clock


def run_with(server: SimulatedTenant, **proof: Any) -> Any:
    async def main() -> Any:
        async with clients(server, **proof) as tenant:
            function = ("Test-EntraGroupMembership", {"GroupId": "x", "UserId": "nobody"})
            return await Hands(tenant).run(*function)

    return asyncio.run(main())


@pytest.mark.parametrize("password", ["", "pfx-password-5512"])
def test_a_certificate(server: SimulatedTenant, certificate: ClientCertificate, password: str) -> None:
    result = run_with(server, pfx=certificate.pfx(password), pfx_password=password or None)
    assert result.error.type == "Request_ResourceNotFound"


def test_a_secret(server: SimulatedTenant) -> None:
    assert run_with(server, client_secret=CLIENT_SECRET).error.type == "Request_ResourceNotFound"


def test_a_wrong_secret_is_told_and_not_shown(server: SimulatedTenant) -> None:
    result = run_with(server, client_secret="wrong-secret-0042")
    assert result.error.type.startswith("AADSTS")
    assert result.error.attempts == 0
    assert "wrong-secret-0042" not in result.error.message


def test_a_wrong_pfx_password_is_told_and_not_shown(server: SimulatedTenant, certificate: ClientCertificate) -> None:
    result = run_with(server, pfx=certificate.pfx("right-one"), pfx_password="wrong-pfx-password")
    assert result.error.type == "SignInFailed"
    assert "wrong-pfx-password" not in result.error.message


def test_nothing_to_sign_in_with(server: SimulatedTenant) -> None:
    assert run_with(server, client_secret=None).error.type == "SignInFailed"


def test_an_authority_whose_certificate_nobody_knows(server: SimulatedTenant) -> None:
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            sign_in = SignIn(identity(server), session, ManualClock(NOW))
            with pytest.raises(SignInFailed):
                await sign_in.token(SCOPE)

    asyncio.run(main())


def test_many_who_wait_are_served_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sign_in, issued, _ = prepared(monkeypatch)
        issued.go_on.clear()
        waiting = [asyncio.ensure_future(sign_in.token(SCOPE)) for _ in range(64)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        issued.go_on.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert set(found[1:]) == {"token-1"}
        assert issued.count == 1

    asyncio.run(main())


def test_each_api_has_a_token_of_its_own(server: SimulatedTenant) -> None:
    async def main() -> None:
        async with clients(server) as tenant:
            await asyncio.gather(*(tenant.sign_in.token(f"{server.url}/.default") for _ in range(8)))
            await tenant.sign_in.token(SCOPE)

    asyncio.run(main())
    assert server.tenant.records.statuses(Api.SIGN_IN)[200] >= 2


def test_renewed_ahead_of_time_while_the_old_one_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sign_in, issued, clock = prepared(monkeypatch)
        assert await sign_in.token(SCOPE) == "token-1"
        clock.advance(seconds=3600 - AHEAD_SECONDS - 1)
        assert await sign_in.token(SCOPE) == "token-1"
        assert issued.count == 1
        clock.advance(seconds=2)
        issued.go_on.clear()
        assert [await sign_in.token(SCOPE) for _ in range(5)] == ["token-1"] * 5
        await asyncio.sleep(0)
        issued.go_on.set()
        await asyncio.gather(*sign_in._renewals.values())
        assert await sign_in.token(SCOPE) == "token-2"
        assert issued.count == 2

    asyncio.run(main())


def test_a_renewal_that_fails_ahead_of_time_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        sign_in, issued, clock = prepared(monkeypatch)
        await sign_in.token(SCOPE)
        clock.advance(seconds=3600 - AHEAD_SECONDS + 1)
        issued.error = ValueError("secret-text")
        for _ in range(3):
            assert await sign_in.token(SCOPE) == "token-1"
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert issued.count == 2
        clock.advance(seconds=AHEAD_SECONDS)
        with pytest.raises(SignInFailed):
            await sign_in.token(SCOPE)

    asyncio.run(main())
    assert "secret-text" not in caplog.text


def test_a_sign_in_that_failed_is_told_until_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sign_in, issued, _ = prepared(monkeypatch)
        issued.error = SignInFailed("no luck")
        with pytest.raises(SignInFailed):
            await sign_in.token(SCOPE)
        assert sign_in.trouble(SCOPE) == "no luck"
        assert sign_in.trouble("another") == ""
        issued.error = None
        await sign_in.token(SCOPE)
        assert sign_in.trouble(SCOPE) == ""

    asyncio.run(main())


def test_what_keeps_a_tenant_from_being_asked_is_told(server: SimulatedTenant) -> None:
    async def main() -> tuple[str, ...]:
        async with clients(server, client_secret="wrong") as tenant:
            with pytest.raises(SignInFailed):
                await tenant.begin()
            return tenant.complaints()

    assert asyncio.run(main())[0].startswith("Microsoft Graph: the worker, as application")


def test_a_refused_token_is_renewed_once_however_many_bring_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sign_in, issued, _ = prepared(monkeypatch)
        old = await sign_in.token(SCOPE)
        assert set(await asyncio.gather(*(sign_in.fresh(SCOPE, old) for _ in range(10)))) == {"token-2"}
        # One who comes late with the old one is given the new one.
        assert await sign_in.fresh(SCOPE, old) == "token-2"
        assert issued.count == 2

    asyncio.run(main())


def test_closing_ends_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sign_in, issued, _ = prepared(monkeypatch)
        issued.go_on.clear()
        waiting = asyncio.ensure_future(sign_in.token(SCOPE))
        await asyncio.sleep(0)
        await sign_in.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


def test_sign_in_that_is_throttled_is_patient(server: SimulatedTenant) -> None:
    server.tenant.fault(TenantFault.THROTTLED, api=Api.SIGN_IN, times=1, retry_after=0)
    assert run_with(server).error.type == "Request_ResourceNotFound"


def test_what_is_held_is_not_shown(server: SimulatedTenant) -> None:
    who = identity(server, client_secret="planted-1", pfx=b"planted-2", pfx_password="planted-3")
    assert "planted" not in repr(who)
