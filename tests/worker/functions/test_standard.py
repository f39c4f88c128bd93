"""Every function, in every way it may go: through the real clients, over TLS, against a tenant."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.simulation.tenant import TenantFault
from tests.worker.functions.cases import CASES, Case, expected
from tests.worker.hands import Hands, Haste, clients, repeated

if TYPE_CHECKING:
    from matoolkit.messages import WorkerResult
    from matoolkit.simulation.tenant import SimulatedTenant

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_mandatory = pytest.mark.parametrize(
    ("case", "missing"),
    [(case, name) for case in CASES for name in case.mandatory],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
each_wrong = pytest.mark.parametrize(
    ("case", "wrong"),
    [(case, name) for case in CASES for name in case.wrong],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
THROTTLING = [TenantFault.THROTTLED, TenantFault.UNAVAILABLE]


def run(server: SimulatedTenant, case: Case, *several: dict[str, Any], **fields: Any) -> list[WorkerResult]:
    """Run the function for each of these parameters, one after the other."""

    async def main() -> list[WorkerResult]:
        async with clients(server, Haste()) as tenant:
            hands = Hands(tenant)
            return [await hands.run(case.name, parameters, **fields) for parameters in several]

    return asyncio.run(main())


def asked(server: SimulatedTenant, case: Case, **wanted: Any) -> int:
    return server.tenant.records.count(case.operation, **wanted)


def check_success(case: Case, parameters: dict[str, Any], name: str, result: WorkerResult) -> None:
    assert result.error is None
    assert result.status == "success"
    if case.result is True:
        assert (result.result_type, result.result) == ("Boolean", True)
    else:
        assert result.result_type == "Object"
        values = expected(case, parameters, name, result.result)
        assert {key: result.result[key] for key in values} == values


def error(result: WorkerResult) -> tuple[str, bool, int]:
    assert result.status == "failure"
    assert result.error is not None
    assert result.error.message
    return result.error.type, result.error.is_throttled, result.error.attempts


@every
def test_success(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    check_success(case, parameters, name, run(server, case, parameters)[0])
    assert asked(server, case) == 1


@every
def test_names_compare_without_regard_to_case(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)

    async def main() -> WorkerResult:
        async with clients(server) as tenant:
            return await Hands(tenant).run(case.name.upper(), {key.lower(): value for key, value in parameters.items()})

    check_success(case, parameters, name, asyncio.run(main()))


@each_mandatory
def test_a_missing_parameter_reaches_no_tenant(case: Case, missing: str, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    absent = {key: value for key, value in parameters.items() if key != missing}
    for result in run(server, case, absent, {**parameters, missing: ""}, {**parameters, missing: None}):
        assert error(result) == ("ValidationError", False, 0)
        assert result.error is not None
        assert missing in result.error.message
    assert asked(server, case) == 0


@each_wrong
def test_a_wrong_value_reaches_no_tenant(case: Case, wrong: str, server: SimulatedTenant, name: str) -> None:
    parameters = {**case.prepare(server.tenant, name), wrong: case.wrong[wrong]}
    (result,) = run(server, case, parameters)
    assert error(result) == ("ValidationError", False, 0)
    assert result.error is not None
    assert wrong in result.error.message
    assert asked(server, case) == 0


@every
def test_an_unknown_parameter_reaches_no_tenant(case: Case, server: SimulatedTenant, name: str) -> None:
    (result,) = run(server, case, {**case.prepare(server.tenant, name), "Bogus": "1"})
    assert error(result) == ("ValidationError", False, 0)
    assert asked(server, case) == 0


@pytest.mark.parametrize("case", [case for case in CASES if case.not_found], ids=lambda case: case.name)
def test_not_found(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = {**case.prepare(server.tenant, name), **case.missing}
    (result,) = run(server, case, parameters)
    assert error(result) == (case.not_found, False, 1)


@every
@pytest.mark.parametrize("fault", THROTTLING)
def test_throttled_and_then_not(case: Case, fault: TenantFault, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    server.tenant.fault(fault, api=case.api, times=2, retry_after=3)
    (result,) = run(server, case, parameters)
    if case.once and fault is TenantFault.UNAVAILABLE:
        # The tenant may have done it.
        assert error(result) == ("OutcomeUnknown", False, 1)
    else:
        check_success(case, parameters, name, result)


@every
def test_throttled_until_the_retries_are_spent(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    server.tenant.fault(TenantFault.THROTTLED, api=case.api)
    (result,) = run(server, case, parameters)
    kind, throttled, attempts = error(result)
    assert (throttled, attempts) == (True, 6)
    assert kind in {"TooManyRequests", "Microsoft.Exchange.Data.Storage.ServerBusyException"}


@every
def test_a_token_that_is_refused_in_mid_run(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    server.tenant.fault(TenantFault.UNAUTHORIZED, api=case.api, times=1)
    check_success(case, parameters, name, run(server, case, parameters)[0])


@every
def test_a_token_that_is_refused_twice(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    server.tenant.fault(TenantFault.UNAUTHORIZED, api=case.api)
    (result,) = run(server, case, parameters)
    assert error(result)[1:] == (False, 2)
    assert error(result)[0] in {"InvalidAuthenticationToken", "HTTP401"}


@every
def test_a_connection_that_is_lost_before_the_tenant_acts(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    server.tenant.fault(TenantFault.CUT_BEFORE_ACTING, api=case.api, path=_path(case))
    (lost,) = run(server, case, parameters)
    assert error(lost) == ("OutcomeUnknown" if case.once else "ConnectionLost", False, 1)
    server.tenant.faults.clear()
    (result,) = run(server, case, parameters, **repeated())
    if case.once:
        assert error(result) == ("OutcomeUnknown", False, 0)
    else:
        check_success(case, parameters, name, result)


@every
@pytest.mark.parametrize("fault", [TenantFault.CUT_AFTER_ACTING, TenantFault.CUT_HALFWAY])
def test_an_answer_that_is_lost(case: Case, fault: TenantFault, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    server.tenant.fault(fault, api=case.api, path=_path(case), times=1)
    (lost,) = run(server, case, parameters)
    if lost.status == "success":
        # An answer without a body cannot be cut halfway, and a question that changes nothing may be asked again.
        assert fault is TenantFault.CUT_HALFWAY or case.operation.startswith(("GET", "DELETE"))
        return
    assert error(lost) == ("OutcomeUnknown" if case.once else "ConnectionLost", False, 1)
    (result,) = run(server, case, parameters, **repeated())
    if case.once:
        assert error(result) == ("OutcomeUnknown", False, 0)
    else:
        check_success(case, parameters, name, result)
    if case.name == "New-EntraUser":
        assert server.tenant.records.count(case.operation, acted=True) == 1


@every
def test_done_before_and_redelivered(case: Case, server: SimulatedTenant, name: str) -> None:
    parameters = case.prepare(server.tenant, name)
    first, second = run(server, case, parameters, deliveries=1), run(server, case, parameters, deliveries=2)
    check_success(case, parameters, name, first[0])
    if case.once:
        assert error(second[0]) == ("OutcomeUnknown", False, 0)
    else:
        check_success(case, parameters, name, second[0])


def _path(case: Case) -> str:
    """What the fault is aimed at: what changes something, where several requests are made."""
    return "convertExternal" if case.name.startswith("Convert") else ""
