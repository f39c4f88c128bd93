"""Azure SQL under the hosts: what they accept, and that the topics have to be elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from matoolkit.bus.errors import DatabaseNotSupported
from matoolkit.cli.main import main
from matoolkit.hosts import api, orchestrator, scheduler
from matoolkit.hosts.loops import Loop, Loops
from matoolkit.hosts.service_bus import ServiceBusAddress
from matoolkit.hosts.shared import Whereabouts, shared
from matoolkit.settings import Secret
from matoolkit.store import batches
from matoolkit.store.address import parsed
from matoolkit.store.database import open_database
from tests.doubles.tds import types
from tests.doubles.tds.server import Break, Failure, Rows
from tests.doubles.tds.types import Column
from tests.store.azure_sql.server import AzureSql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
NOWHERE = "Server=tcp:127.0.0.1,1;Database=waves;Authentication=Active Directory Managed Identity"
TOPICS_ELSEWHERE = (
    "the Azure SQL database waves on 127.0.0.1:1 cannot hold the topics: name a Service Bus namespace beside it, or"
    " keep both state and topics in PostgreSQL"
)


@pytest.fixture
def server() -> Iterator[AzureSql]:
    server = AzureSql()
    server.double.token = None
    with server.double:
        yield server


def address(server: AzureSql) -> str:
    return f"Server=tcp:127.0.0.1,{server.double.port};Database=waves;User ID=anna;Password=swordfish;Encrypt=no"


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(lambda _: scheduler.run({"Scheduler__SqlConnectionString": NOWHERE}, None), id="scheduler"),
        pytest.param(
            lambda _: orchestrator.run({"Orchestrator__SqlConnectionString": NOWHERE}, None), id="orchestrator"
        ),
        pytest.param(lambda folder: api.run({"AdminApi__SqlConnectionString": NOWHERE}, None, folder), id="api"),
    ],
)
def test_without_service_bus_a_host_says_that_topics_need_another_place(
    run: Callable[[Path], object], tmp_path: Path
) -> None:
    with pytest.raises(DatabaseNotSupported) as caught:
        run(tmp_path)
    assert str(caught.value) == TOPICS_ELSEWHERE


def test_up_says_so_too(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["up", "--data", str(tmp_path)], env={"MATOOLKIT_DATABASE_URL": NOWHERE})
    assert (result.exit_code, TOPICS_ELSEWHERE in result.output) == (1, True)


def test_with_service_bus_it_is_a_database_like_any_other(server: AzureSql) -> None:
    bus = ServiceBusAddress(
        connection_string=Secret("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=x;SharedAccessKey=y")
    )
    where = Whereabouts(
        service="the scheduler", database_url=Secret(address(server)), database_setting="x", service_bus=bus
    )
    with shared(where) as found:
        assert found.database.dialect == "mssql"
        assert found.relayed is not None
        assert found.relayed.relay.work() == 0
    assert any("FROM outbox WITH (UPDLOCK, ROWLOCK, READPAST)" in each for each in server.double.queries)


def test_a_loop_goes_on_when_the_connection_breaks_in_the_middle(server: AzureSql) -> None:
    database = open_database(address(server))
    back = Event()

    def work() -> int:
        if back.is_set():
            return 0
        with database.transaction() as tx:
            tx.change(batches.ACTIVATE, 1, batch=7)
            tx.after_commit(back.set)
        return 0

    server.once("^UPDATE batches", Break())
    server.once("^COMMIT$", Failure(40197, "The service has encountered an error processing your request."))
    loops = Loops()
    loops.start(Loop("activate", work, back.wait))
    came_back = back.wait(30)
    assert loops.stop()
    database.close()
    assert came_back
    assert sum(each.startswith("UPDATE batches") for each in server.double.queries) == 3
    assert len(server.double.logins) == 3


def test_the_string_that_the_templates_write_is_one_that_is_read() -> None:
    template = (ROOT / "infra/automation/scheduler-orchestrator/deploy.bicep").read_text()
    (written,) = re.findall(r"var sqlConnectionString = '(.*)'", template)
    found = parsed(
        re.sub(r"\$\{[^}]*DomainName\}", "waves.database.windows.net", written).replace("${database.name}", "w")
    )
    assert (found.host, found.database) == ("waves.database.windows.net", "w")
    assert found.query["authentication"] == "ActiveDirectoryManagedIdentity"
    assert found.query["encrypt"] == "yes"


def test_the_command_that_migrates_takes_a_connection_string(server: AzureSql) -> None:
    server.revision = ""
    result = CliRunner().invoke(main, ["migrate"], env={"MATOOLKIT_DATABASE_URL": address(server)})
    assert result.exit_code == 0, result.output
    assert result.output == (
        f"The Azure SQL database waves on 127.0.0.1:{server.double.port} is now at revision 0001 (it was empty)\n"
    )
    assert sum(each.strip().startswith("CREATE TABLE") for each in server.double.queries) > 15


def test_the_doctor_looks_at_it(server: AzureSql) -> None:
    nothing = Rows([Column("id", types.BIGINT), Column("other", types.BIGINT)])
    broken = Rows([Column("step", types.BIGINT)], [(7,)])
    server.when("FROM (step_executions|batch|phase|rollback|removal|init|dead|\\(SELECT)", nothing)
    server.when("dispatched_at > batches.completed_at", broken)
    result = CliRunner().invoke(main, ["doctor", "--at-rest"], env={"MATOOLKIT_DATABASE_URL": address(server)})
    assert result.exit_code == 1
    assert "Violation: no step was sent after its batch was cancelled: step 7" in result.output
    assert ", 1 violations" in result.output


def test_a_refused_sign_in_is_one_line_without_the_password(server: AzureSql) -> None:
    server.double.token = "somebody-else's"
    result = CliRunner().invoke(main, ["doctor"], env={"MATOOLKIT_DATABASE_URL": address(server)})
    assert result.exit_code == 1
    assert f"Error: the Azure SQL database waves on 127.0.0.1:{server.double.port}: Login failed" in result.output
    assert "swordfish" not in result.output
