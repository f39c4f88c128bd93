"""Lines of the log: what each says of what it is about, in either form; and what none of them says."""

from __future__ import annotations

import io
import json
import logging
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit import worker  # noqa: TC001 - what annotations name is read at run time
from matoolkit.hosts.log_lines import begin_logging, concealing, log_format
from matoolkit.hosts.orchestrator import OrchestratorSettings
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.settings import BadSettings, Settings
from matoolkit.telemetry.log_lines import JsonLines, TextLines
from matoolkit.telemetry.subjects import subject
from matoolkit.worker.concealing import Concealer, Secrets
from matoolkit.worker.registry import Registry
from tests.worker.workplace import SECONDS, Workplace, doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

SECRET = 's3cret-"quoted"\\value'


class About:
    def __init__(self, **fields: str | int) -> None:
        self.fields = fields

    def log_fields(self) -> dict[str, str | int]:
        return self.fields


@pytest.fixture
def about() -> Iterator[None]:
    token = subject.set(About(WorkerId="worker-01", BatchId=7, StepExecutionId=3, JobId="step-3"))
    yield
    subject.reset(token)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Where the log goes while a test has it."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = list(root.handlers), root.level
    yield stream
    for each in list(root.handlers):
        root.removeHandler(each)
    for each in handlers:
        root.addHandler(each)
    root.setLevel(level)


def record(message: str, *args: Any, **extra: Any) -> logging.LogRecord:
    error = extra.pop("error", None)
    made = logging.getLogger("matoolkit.test").makeRecord(
        "matoolkit.test", logging.WARNING, "x.py", 1, message, args, None if error is None else error, extra=extra
    )
    made.created, made.msecs = 1772352000.25, 250.0
    return made


def test_a_line_of_json_is_an_object_with_what_it_is_about(about: None) -> None:
    line = JsonLines({"service": "worker"}).format(record("%d of %d", 3, 4))
    assert json.loads(line) == {
        "time": "2026-03-01T08:00:00.250Z",
        "level": "warning",
        "logger": "matoolkit.test",
        "service": "worker",
        "message": "3 of 4",
        "workerId": "worker-01",
        "batchId": 7,
        "stepExecutionId": 3,
        "jobId": "step-3",
    }


def test_what_a_line_says_itself_goes_before_what_its_task_is_about(about: None) -> None:
    found = json.loads(JsonLines({}).format(record("x", BatchId=8, RequestId="r-1")))
    assert (found["batchId"], found["requestId"], found["workerId"]) == (8, "r-1", "worker-01")


def test_whatever_is_in_it_a_line_is_one_line() -> None:
    line = JsonLines({}).format(record('a\nb "c" \u2028 \0 {}', JobId="x\ny"))
    assert "\n" not in line
    assert json.loads(line)["message"] == 'a\nb "c" \u2028 \0 {}'


def test_an_exception_is_a_field() -> None:
    made = record("failed", error=(ValueError, ValueError(f"no good: {SECRET}"), None))
    found = json.loads(JsonLines({}, Secrets([SECRET]).out_of_text).format(made))
    assert found["message"] == "failed"
    assert found["exception"].splitlines()[-1] == "ValueError: no good: ***"


@pytest.mark.parametrize("secret", [SECRET, "message", '","level"', "2026-03"])
def test_no_field_says_what_is_secret_and_nothing_breaks_by_it(secret: str, about: None) -> None:
    made = record(f"with {secret} in it", JobId=f"job {secret}", RunbookName="wave")
    found = json.loads(JsonLines({"service": "worker"}, Secrets([secret]).out_of_text).format(made))
    assert (found["message"], found["jobId"]) == ("with *** in it", "job ***")
    assert found["runbookName"] == "wave"


def test_text_conceals_as_well() -> None:
    line = TextLines("%(asctime)s %(levelname)s %(message)s", Secrets([SECRET]).out_of_text).format(record(SECRET))
    assert line == "2026-03-01T08:00:00.250Z WARNING ***"


@pytest.mark.parametrize("form", ["json", "JSON"])
def test_one_setting_makes_lines_json(written: io.StringIO, form: str) -> None:
    begin_logging("info", form, about={"service": "scheduler"}, to=written)
    logging.getLogger("matoolkit.x").info("ready")
    logging.getLogger("azure.core").info("a request")
    (line,) = written.getvalue().splitlines()
    assert (json.loads(line)["service"], json.loads(line)["message"]) == ("scheduler", "ready")


def test_another_form_is_refused() -> None:
    class Some(Settings):
        form = log_format

    assert Some.read({}).form == "text"
    with pytest.raises(BadSettings, match="MATOOLKIT_LOG_FORMAT must be text or json"):
        Some.read({"MATOOLKIT_LOG_FORMAT": "xml"})


def test_what_a_service_was_told_in_confidence_is_not_in_its_log() -> None:
    settings = OrchestratorSettings.read(
        {
            "Orchestrator__SqlConnectionString": "postgresql://anna:pass-w0rd@db.example/wave",
            "SERVICE_BUS_CONNECTION_STRING": "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=k3y+abc/def=",
        }
    )
    conceal = concealing(settings)
    assert conceal("no: pass-w0rd, k3y+abc/def= and anna") == "no: ***, *** and anna"


async def _speak(ctx: worker.FunctionContext, Password: str) -> bool:  # noqa: N803 - as runbooks write it
    ctx.logger.warning("from the function: %s", Password)
    logging.getLogger("somebody.else").warning("from elsewhere")
    return True


def _speak_in_a_thread(Password: str) -> bool:  # noqa: N803 - as runbooks write it
    logging.getLogger("somebody.else").warning("from a thread: %s", Password)
    return True


@pytest.mark.parametrize("code", [_speak, _speak_in_a_thread])
def test_whatever_is_written_while_a_job_runs_says_which_job(
    emptied_sqlite: Database, written: io.StringIO, code: Any
) -> None:
    place, concealer, registry = Workplace(emptied_sqlite), Concealer(), Registry()
    registry.add([doing(code, secrets=("Password",))], "test")
    host = WorkerHost(place.bus, place.rule, registry, place.clock, manner=Manner("worker-01"), concealer=concealer)
    begin_logging("warning", "json", about={"service": "worker"}, to=written, conceal=concealer.out_of_text)
    place.send(place.job(parameters={"Password": SECRET}))
    thread = Thread(target=host.run, daemon=True)
    thread.start()
    assert place.result().status == "success"
    host.stop()
    thread.join(SECONDS)
    lines = [json.loads(each) for each in written.getvalue().splitlines()]
    assert lines
    for line in lines:
        assert {name: line[name] for name in ("workerId", "batchId", "stepExecutionId", "jobId")} == {
            "workerId": "worker-01",
            "batchId": 7,
            "stepExecutionId": 1,
            "jobId": "step-1",
        }
        assert SECRET not in line["message"]
        assert "***" in line["message"] or "elsewhere" in line["message"]
    place.bus.close()
