"""Nobody is told unless the environment names somebody; then it is told, by the real exporters over real sockets."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.telemetry import SILENT, metrics
from matoolkit.telemetry.starting import AZURE_MONITOR, OTLP, TelemetryUnusable, begin_telemetry
from matoolkit.telemetry.subjects import subject
from matoolkit.worker.concealing import Secrets
from tests.telemetry.collector import Collector, labels
from tests.telemetry.test_log_lines import About

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "11111111-2222-3333-4444-555555555555"
SECRET = "s3cret-value"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def begun(environment: dict[str, str], **how: Any) -> Any:
    return begin_telemetry(environment, "worker", instance="worker-01", version="1.2.3", **how)


def tell(telemetry: Any) -> None:
    """A bit of everything."""
    telemetry.begin("phase go is due", "wave/1/x/2", {"BatchId": 1})
    span = telemetry.span("run Do-It", telemetry.trace_of("wave/1/x/2"), {"WorkerId": "worker-01"})
    telemetry.count(metrics.JOBS_FAILED, 2, function="Do-It", error="NotFound")
    telemetry.took(metrics.JOB, 0.25, function="Do-It", status="failure")
    token = subject.set(About(BatchId=1, StepExecutionId=5))
    try:
        logging.getLogger("matoolkit.worker").warning("failed with %s", SECRET)
        logging.getLogger("azure.core").warning("not for them")
    finally:
        subject.reset(token)
    span.end(error="NotFound")
    telemetry.close()


@pytest.mark.parametrize("environment", [{}, {AZURE_MONITOR: " ", OTLP: ""}])
def test_nobody_is_told_without_a_word_of_it(environment: dict[str, str]) -> None:
    assert begun(environment) is SILENT


def test_only_two_modules_know_opentelemetry() -> None:
    source = Path(__file__).parents[2] / "src/matoolkit"
    known = [
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if re.search(r"^\s*(?:from|import) (?:opentelemetry|azure\.monitor)", file.read_text(), re.MULTILINE)
    ]
    assert sorted(known) == ["telemetry/exporting.py", "telemetry/open_telemetry.py"]


def test_opentelemetry_is_not_loaded_by_a_process_that_tells_nobody() -> None:
    # FastAPI loads the names of its interface where they are; without providers, which nobody makes, they do nothing.
    code = (
        "import sys, matoolkit.hosts.worker, matoolkit.hosts.up, matoolkit.hosts.orchestrator, matoolkit.hosts.api\n"
        "from matoolkit.hosts.telling import telling\n"
        "with telling({}, 'worker'): pass\n"
        "told = ('opentelemetry.sdk', 'opentelemetry.exporter', 'azure.monitor')\n"
        "print([name for name in sys.modules if name.startswith(told)])"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said == "[]\n"


@pytest.mark.parametrize(
    ("missing", "variable"),
    [
        ("opentelemetry", AZURE_MONITOR),
        ("opentelemetry.sdk", OTLP),
        ("azure.monitor.opentelemetry.exporter", AZURE_MONITOR),
        ("opentelemetry.exporter.otlp.proto.http", OTLP),
    ],
)
def test_without_the_extra_one_line_says_which_and_the_process_works(missing: str, variable: str) -> None:
    value = f"InstrumentationKey={KEY}" if variable == AZURE_MONITOR else "http://127.0.0.1:9"
    code = (
        "import sys, logging; logging.basicConfig(format='%(message)s')\n"
        f"sys.modules[{missing!r}] = None\n"
        "from matoolkit.telemetry.starting import begin_telemetry\n"
        f"found = begin_telemetry({{{variable!r}: {value!r}}}, 'worker', instance='i', version='1')\n"
        "print(found.is_on)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{variable} is set, and ")
    assert line.endswith("install matoolkit[telemetry]")
    assert KEY not in line


@pytest.mark.parametrize(
    "environment",
    [
        {AZURE_MONITOR: f"InstrumentationKey={KEY[:-3]}"},
        {AZURE_MONITOR: "what is this"},
        {OTLP: "collector:4318"},
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_being_quoted(environment: dict[str, str]) -> None:
    (name,) = environment
    with pytest.raises(TelemetryUnusable, match=f"{name} is not right") as refused:
        begun(environment)
    assert KEY[:-3] not in str(refused.value)


def test_by_otlp_go_traces_metrics_and_the_log(collector: Collector) -> None:
    tell(begun({OTLP: collector.url + "/"}, conceal=Secrets([SECRET]).out_of_text))
    due, run = sorted(collector.spans, key=lambda each: each.name)
    assert (due.name, run.name) == ("phase go is due", "run Do-It")
    assert (run.trace_id, run.parent_span_id) == (due.trace_id, due.span_id)
    assert labels(run) == {"WorkerId": "worker-01"}
    assert run.status.message == "NotFound"
    assert {metrics.JOBS_FAILED.name, metrics.JOB.name} <= collector.metrics
    (line,) = collector.lines
    assert line.body.string_value == "failed with ***"
    assert {name: labels(line)[name] for name in ("BatchId", "StepExecutionId")} == {"BatchId": 1, "StepExecutionId": 5}
    about = collector.resources[0]
    assert (about["service.name"], about["service.instance.id"]) == ("matoolkit-worker", "worker-01")
    assert about["service.version"] == "1.2.3"


def test_to_azure_monitor_go_the_same(collector: Collector) -> None:
    told = f"InstrumentationKey={KEY};IngestionEndpoint={collector.url}/"
    tell(begun({AZURE_MONITOR: told}, conceal=Secrets([SECRET]).out_of_text))
    kinds = {each["data"]["baseType"] for each in collector.envelopes}
    assert {"RequestData", "MetricData", "MessageData"} <= kinds
    assert {each["iKey"] for each in collector.envelopes} == {KEY}
    run = next(each for each in collector.envelopes if each["data"]["baseData"].get("name") == "run Do-It")
    assert run["data"]["baseData"]["properties"]["WorkerId"] == "worker-01"
    assert run["tags"]["ai.cloud.role"] == "matoolkit.matoolkit-worker"
    (line,) = [each["data"]["baseData"] for each in collector.envelopes if each["data"]["baseType"] == "MessageData"]
    assert line["message"] == "failed with ***"
    assert line["properties"]["StepExecutionId"] == "5"
    assert SECRET not in json.dumps(collector.envelopes)


def test_both_may_be_told(collector: Collector) -> None:
    told = f"InstrumentationKey={KEY};IngestionEndpoint={collector.url}/"
    tell(begun({AZURE_MONITOR: told, OTLP: collector.url}, with_log=False))
    assert len(collector.spans) == 2
    assert len([each for each in collector.envelopes if "run Do-It" in json.dumps(each)]) == 1
    assert collector.lines == []


def test_nobody_at_the_other_end_stops_nobody() -> None:
    telemetry = begun({OTLP: "http://127.0.0.1:9"}, with_log=False)
    telemetry.count(metrics.JOBS_FAILED, 1, function="x", error="y")
    assert telemetry.is_on
    telemetry.close()
