"""What a document means: every key arrives where it belongs, and what is left out has its default."""

from __future__ import annotations

from pathlib import Path

import pytest

from matoolkit.runbooks import (
    DataSource,
    MultiValuedColumn,
    MultiValuedFormat,
    Phase,
    Poll,
    Retry,
    SourceType,
    Step,
    Template,
    check_runbook,
    load_runbook,
    parse_duration,
    parse_offset,
)
from tests.runbooks.documents import MINIMAL, changed, expect_warnings

EVERY_FEATURE = Path(__file__).parents[2] / "examples" / "every-feature.yaml"
STEP = "        function: Do-It\n"


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("T-5d", 7_200),
        ("T-4h", 240),
        ("T-30m", 30),
        ("T-90s", 2),
        ("T-60s", 1),
        ("T-61s", 2),
        ("T-1s", 1),
        ("T-0", 0),
        ("T-007m", 7),
        ("T-3650d", 5_256_000),
    ],
)
def test_offsets(text: str, minutes: int) -> None:
    assert parse_offset(text) == minutes
    assert load_runbook(changed("T-0", text)).phases[0].offset_minutes == minutes


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("15m", 900), ("2h", 7_200), ("7d", 604_800)])
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds
    assert load_runbook(changed(STEP, f"{STEP}        timeout: {text}\n")).phases[0].steps[0].timeout_seconds == seconds


def test_the_least_a_runbook_says() -> None:
    runbook = load_runbook(MINIMAL)
    assert runbook.name == "wave"
    assert runbook.description is None
    assert runbook.data_source == DataSource(
        SourceType.SQL, "SQL_WAVES", "select * from people", "Id", batch_time_column="Starts"
    )
    assert runbook.data_source.max_batch_age_seconds == 86_400
    assert runbook.phases == (Phase("go", 0, (Step("one", "worker-01", Template("Do-It")),)),)
    assert runbook.phases[0].steps[0].timeout_seconds == 1_800
    assert (runbook.init, runbook.on_member_removed, dict(runbook.rollbacks), runbook.retry) == ((), (), {}, None)


def test_every_feature() -> None:
    runbook = load_runbook(EVERY_FEATURE.read_bytes())
    source = runbook.data_source
    assert runbook.description == "Shows every key of the format."
    assert (source.type, source.connection, source.warehouse_id) == (
        SourceType.DATABRICKS,
        "DATABRICKS_CONNECTION_STRING",
        "DATABRICKS_WAREHOUSE_ID",
    )
    assert (source.primary_key, source.batch_time_column, source.time_zone, source.max_batch_age_seconds) == (
        "user_id",
        "cutover_at",
        "America/New_York",
        43_200,
    )
    assert source.query.startswith("SELECT user_id")
    assert source.multi_valued_columns == (
        MultiValuedColumn("aliases", MultiValuedFormat.SEMICOLON_DELIMITED),
        MultiValuedColumn("group_ids", MultiValuedFormat.COMMA_DELIMITED),
        MultiValuedColumn("proxy_list", MultiValuedFormat.JSON_ARRAY),
    )
    common = Retry(2, 90)
    assert runbook.retry == common
    assert runbook.init[0].on_failure == "close-change-record"
    assert runbook.init[0].retry == common
    assert runbook.phases[0].steps[0] == Step(
        name="convert-guest",
        worker_id="worker-01",
        function=Template("Convert-EntraB2BToInternal"),
        params=(
            ("UserId", Template("{{user_id}}")),
            ("NewUserPrincipalName", Template("{{new_upn}}")),
            ("ForceChangePasswordNextSignIn", Template("true")),
        ),
        output_params=(("PreviousUpn", "PreviousUPN"),),
        on_failure="restore-upn",
        retry=Retry(0, 0),
        timeout_seconds=600,
    )
    assert runbook.phases[1].steps[0].poll == Poll(300, 7_200)
    assert runbook.on_member_removed[0].retry == common
    assert list(runbook.rollbacks) == ["restore-upn", "close-change-record"]
    assert runbook.rollbacks["restore-upn"][0].retry == common


def test_phases_by_time_and_by_name() -> None:
    step = "steps: [{name: a, worker_id: w, function: f}]"
    lines = "".join(
        f"  - {{name: {name}, offset: {offset}, {step}}}\n"
        for name, offset in [("late", "T-1m"), ("Early", "T-1d"), ("same", "T-60s"), ("last", "T-0")]
    )
    runbook = load_runbook(changed("phases:\n", f"phases:\n{lines}"))
    assert [phase.name for phase in runbook.phases] == ["late", "Early", "same", "last", "go"]
    assert [phase.name for phase in runbook.phases_by_time] == ["Early", "late", "same", "last", "go"]
    assert runbook.phase("EARLY") is runbook.phases[1]
    assert runbook.phase("nowhere") is None


def test_a_rollback_is_found_under_the_name_it_is_declared_with() -> None:
    runbook = load_runbook(
        changed(STEP, f"{STEP}        on_failure: UNDO\n")
        + "rollbacks:\n  Undo:\n    - {name: back, worker_id: w, function: f}\n"
    )
    assert runbook.phases[0].steps[0].on_failure == "Undo"
    assert runbook.rollbacks["Undo"][0].name == "back"


def test_a_key_without_a_value_is_as_good_as_absent() -> None:
    document = MINIMAL + "description:\ninit:\nrollbacks: ~\nretry:\n"
    report = check_runbook(document.replace("  primary_key", "  batch_time:\n  warehouse_id:\n  primary_key"))
    assert (report.errors, report.warnings) == ((), ())
    assert report.runbook == load_runbook(MINIMAL)


def test_anchors_and_merge_keys() -> None:
    runbook = load_runbook(
        changed(
            STEP,
            """\
        function: Do-It
        params: &common {A: "{{x}}", B: b}
        retry: &often {max_retries: 5, interval: 1m}
      - name: two
        worker_id: w
        function: f
        params: {<<: *common, B: mine, C: c}
        retry: *often
      - name: three
        worker_id: w
        function: f
        params: {<<: [{A: first}, *common]}
""",
        )
    )
    one, two, three = runbook.phases[0].steps
    assert two.retry == one.retry == Retry(5, 60)
    assert dict(two.params) == {"A": Template("{{x}}"), "B": Template("mine"), "C": Template("c")}
    assert dict(three.params) == {"A": Template("first"), "B": Template("b")}


def test_text_tags_and_quotes_make_a_text_of_anything() -> None:
    runbook = load_runbook(
        changed(STEP, f"{STEP}        params: {{A: !!str 12, B: ! yes, C: '1', D: \"{{{{a}}}}\", E: ''}}\n")
    )
    params = {name: template.text for name, template in runbook.phases[0].steps[0].params}
    assert params == {"A": "12", "B": "yes", "C": "1", "D": "{{a}}", "E": ""}


WARNED = {
    "unknown key": ("phases:", "§owner: me\nphases:", "owner: 'owner' is not a key here"),
    "misspelt key": (
        "phases:",
        "§rollback: {}\nphases:",
        "rollback: 'rollback' is not a key here (did you mean 'rollbacks'?)",
    ),
    "key in another case": ("phases:", "§Init: []\nphases:", "Init: 'Init' is not a key here (did you mean 'init'?)"),
    "unknown key of a step": (
        STEP,
        f"{STEP}        §on_fail: x\n",
        "phases[0].steps[0].on_fail: 'on_fail' is not a key here (did you mean 'on_failure'?)",
    ),
    "rollback not used": (
        "phases:",
        "rollbacks:\n  §undo: [{name: a, worker_id: w, function: f}]\nphases:",
        "rollbacks.undo: no step names this rollback in its on_failure",
    ),
    "misspelt special variable": (
        STEP,
        STEP + "        params: {A: §'{{_batch_ID}} {{_batchid}}'}\n",
        "phases[0].steps[0].params.A: '_batchid' is taken for a column (did you mean '_batch_id'?)",
    ),
    "time zone without times": (
        "  batch_time_column: Starts",
        "  batch_time: immediate\n  time_zone: §UTC",
        "data_source.time_zone: has no effect with batch_time: immediate",
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_warnings(case: str) -> None:
    old, new, message = WARNED[case]
    expect_warnings(changed(old, new), message)


def test_unknown_keys_are_errors_to_the_strict() -> None:
    report = check_runbook(changed("phases:", "owner: me\nphases:").replace("T-0", "T"))
    assert [(problem.line, problem.unknown_key) for problem in report.strict_errors()] == [(8, True), (11, False)]
    report = check_runbook(changed(*WARNED["rollback not used"][:2]).replace("§", ""))
    assert report.runbook is not None
    assert report.strict_errors() == ()
