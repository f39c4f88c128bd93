"""Secrets that were planted are found nowhere: in no result, no error and no line of any log."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from matoolkit.messages import encode
from matoolkit.simulation.tenant import TenantFault
from tests.worker.functions.cases import CASES
from tests.worker.hands import CLIENT_SECRET, PLANTED_PASSWORD, Hands, clients, repeated

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from matoolkit.simulation.tenant import ClientCertificate, SimulatedTenant

PFX_PASSWORD = "planted-pfx-password-6620"
OF_THE_VAULT = "Planted-Fr0m-Vault-4471"
FAULTS: list[TenantFault | None] = [
    None, TenantFault.THROTTLED, TenantFault.UNAUTHORIZED, TenantFault.CUT_AFTER_ACTING, TenantFault.UNAVAILABLE
]  # fmt: skip


def test_nothing_planted_is_found_anywhere(
    server: SimulatedTenant,
    certificate: ClientCertificate,
    name: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    written: list[str] = []
    tokens: set[str] = set()
    chosen: list[str] = []

    async def every_function(**proof: Any) -> None:
        async with clients(server, **proof) as tenant:
            hands = Hands(tenant, {"MATOOLKIT_SECRET_FIRST": OF_THE_VAULT})
            hands.concealer.add_own([PFX_PASSWORD])
            usual = hands.concealer.add

            def listen(values: Iterable[str]) -> None:
                several = list(values)
                chosen.extend(several)
                usual(several)

            monkeypatch.setattr(hands.concealer, "add", listen)
            for number, case in enumerate(CASES):
                for which, fault in enumerate(FAULTS):
                    parameters = case.prepare(server.tenant, f"{name}.{len(proof)}.{number}.{which}")
                    if fault is not None:
                        server.tenant.fault(fault, api=case.api, times=1, retry_after=1)
                    for password in (PLANTED_PASSWORD, "{{secret:FIRST}}", None):
                        if case.name in {"New-EntraUser", "Convert-EntraB2BToInternal"} and password:
                            parameters["Password"] = password
                        else:
                            parameters.pop("Password", None)
                        written.append(encode(await hands.run(case.name, parameters)))
                        written.append(encode(await hands.run(case.name, parameters, **repeated())))
                    written.append(encode(await hands.run(case.name, {**parameters, "Bogus": PLANTED_PASSWORD})))
                    server.tenant.faults.clear()
            tokens.update(token.value for token in tenant.sign_in._tokens.values())

    asyncio.run(every_function(client_secret=CLIENT_SECRET))
    asyncio.run(every_function(pfx=certificate.pfx(PFX_PASSWORD), pfx_password=PFX_PASSWORD))
    # The test itself can fail: what is no secret is found.
    assert name in "".join(written)
    everything = "\n".join([*written, caplog.text, *(repr(each.args) for each in caplog.records)])
    assert tokens
    assert {PLANTED_PASSWORD, OF_THE_VAULT} < set(chosen)
    assert len(set(chosen)) > 2
    for secret in {*tokens, *chosen, CLIENT_SECRET, PFX_PASSWORD, PLANTED_PASSWORD, OF_THE_VAULT}:
        assert secret not in everything
