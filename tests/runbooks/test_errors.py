"""Every mistake in a runbook is found where it stands; a mark in a document is the place of the error."""

from __future__ import annotations

import pytest

from matoolkit.runbooks import Problem, RunbookErrors, Severity, check_runbook, load_runbook
from tests.runbooks.documents import MINIMAL, as_lines, changed, expect_errors

STEP = "        function: Do-It\n"
UNDO = "rollbacks:\n  undo:\n    - {name: back, worker_id: w, function: Undo-It}\n"

NAME = "must be a name of 1 to 128 printable characters, without braces"
DURATION = "must be a duration: a number and d, h, m or s, like 30s, 15m, 4h or 7d"
OFFSET = "must be an offset: T-0, or T- with a number and d, h, m or s, like T-5d, T-4h or T-30m"
WORKER_ID = "must be 1 to 64 letters, digits, '-', '_' or '.', starting with a letter or digit"
ENVIRONMENT = "must be the name of an environment variable, not its value: letters, digits and '_'"


def step(lines: str) -> str:
    """The minimal runbook, its step with more keys."""
    return changed(STEP, STEP + "".join(f"        {line}\n" for line in lines.split("\n")))


TOP_LEVEL = {
    "name is a number": (
        "name: wave",
        "name: §123",
        'name: must be a text, and this is a number (write it in quotes: "123")',
    ),
    "name is yes": (
        "name: wave",
        "name: §yes",
        'name: must be a text, and this is true or false (write it in quotes: "yes")',
    ),
    "name is a date": (
        "name: wave",
        "name: §2024-01-01",
        'name: must be a text, and this is a date (write it in quotes: "2024-01-01")',
    ),
    "name is empty": ("name: wave", 'name: §""', "name: must not be empty"),
    "name has no value": ("name: wave", "name:§", "name: has no value"),
    "name is a list": ("name: wave", "name: §[a]", "name: must be a text, not a list"),
    "name is a mapping": ("name: wave", "name: §{a: b}", "name: must be a text, not a mapping"),
    "name with a slash": (
        "name: wave",
        "name: §a/b",
        "name: must be a name of 1 to 128 characters, without / \\ ? # % or braces, and not starting with a dot",
    ),
    "name too long": ("name: wave", f"name: §{'x' * 129}", "name: is longer than 128 characters"),
    "description is a number": (
        "name: wave",
        "name: wave\ndescription: §1.5",
        'description: must be a text, and this is a number (write it in quotes: "1.5")',
    ),
    "key given twice": ("name: wave", "name: wave\n§name: other", "the key 'name' is given twice (first in line 1)"),
    "key given twice, in another case": (
        "name: wave",
        "name: wave\n§Name: other",
        "Name: 'Name' repeats 'name' (that is in line 1)",
    ),
    "key is a list": ("name: wave", "name: wave\n§[a, b]: c", "a key must be a text, not a list or a mapping"),
    "phases is a mapping": (
        (
            "phases:\n  - name: go\n    offset: T-0\n    steps:\n      - name: one\n        worker_id: worker-01\n"
            "        function: Do-It\n"
        ),
        "phases:\n  §go: {}\n",
        "phases: must be a list: each item is one phase (begin each with '- ')",
    ),
    "a phase is a text": (
        "  - name: go\n",
        "  - §go\n  - name: go\n",
        "phases[0]: must be a mapping with keys like name, offset, steps",
    ),
    "init is a text": (
        "phases:",
        "init: §x\nphases:",
        "init: must be a list: each item is one init step (begin each with '- ')",
    ),
    "rollbacks is a list": (
        "phases:",
        "rollbacks: §[]\nphases:",
        "rollbacks: must be a mapping: each line a name, a colon and its value",
    ),
    "a rollback without steps": (
        "phases:",
        "rollbacks:\n  undo: §[]\nphases:",
        "rollbacks.undo: needs at least one rollback step",
    ),
    "retry is a number": (
        "phases:",
        "retry: §3\nphases:",
        "retry: must be a mapping with keys like max_retries, interval",
    ),
}

SOURCE_LINES = "  type: sql\n  connection: SQL_WAVES\n  query: select * from people\n  primary_key: Id\n"
SOURCE = {
    "type unknown": (
        "type: sql",
        "type: §databrick",
        "data_source.type: must be one of dataverse, databricks, sql, files (did you mean 'databricks'?)",
    ),
    "connection is a URL": ("SQL_WAVES", "§postgresql://admin:hunter2@host", f"data_source.connection: {ENVIRONMENT}"),
    "connection is a number": (
        "SQL_WAVES",
        "§12",
        f"data_source.connection: {ENVIRONMENT} (this is a number)",
    ),
    "query is empty": ("select * from people", '§"  "', "data_source.query: must not be empty"),
    "warehouse for sql": (
        "  primary_key",
        "  warehouse_id: §WAREHOUSE\n  primary_key",
        "data_source.warehouse_id: only a databricks source has a warehouse_id",
    ),
    "databricks without warehouse": (
        "  type: sql",
        "  §type: databricks",
        "data_source.warehouse_id: a databricks source needs a warehouse_id",
    ),
    "both batch times": (
        "batch_time_column: Starts",
        "batch_time_column: Starts\n  batch_time: §immediate",
        "data_source.batch_time: either batch_time_column or batch_time, not both",
    ),
    "no batch time": (
        SOURCE_LINES + "  batch_time_column: Starts\n",
        SOURCE_LINES.replace("type", "§type"),
        "data_source: says nothing of batch times (add batch_time_column: a column, or batch_time: immediate)",
    ),
    "batch time is a date": (
        "batch_time_column: Starts",
        "batch_time: §2024-01-01",
        "data_source.batch_time: must be the word immediate (this is a date)",
    ),
    "batch time is the key": (
        "batch_time_column: Starts",
        "batch_time_column: §id",
        "data_source.batch_time_column: is the primary key, so every member would be a batch of its own",
    ),
    "time zone unknown": (
        "  primary_key",
        "  time_zone: §Europe/Berlni\n  primary_key",
        "data_source.time_zone: there is no time zone 'Europe/Berlni' (did you mean 'Europe/Berlin'?)",
    ),
    "time zone is a folder": (
        "  primary_key",
        "  time_zone: §Europe\n  primary_key",
        "data_source.time_zone: there is no time zone 'Europe' (did you mean 'Europe/Rome'?)",
    ),
    "time zone climbs": (
        "  primary_key",
        "  time_zone: §../../etc/passwd\n  primary_key",
        "data_source.time_zone: must be an IANA time zone, like Europe/Berlin or UTC",
    ),
    "batch age too long": (
        "  primary_key",
        "  max_batch_age: §3651d\n  primary_key",
        "data_source.max_batch_age: is longer than 3650 days",
    ),
    "multi-valued column twice": (
        "  primary_key",
        "  multi_valued_columns: [{name: T, format: json_array}, {name: §t, format: json_array}]\n  primary_key",
        "data_source.multi_valued_columns[1].name: another multi-valued column is named 't' (that is in line 6)",
    ),
    "multi-valued key": (
        "  primary_key",
        "  multi_valued_columns: [{name: §ID, format: json_array}]\n  primary_key",
        "data_source.multi_valued_columns[0].name: is the primary_key, which has one value",
    ),
    "multi-valued format": (
        "  primary_key",
        "  multi_valued_columns: [{name: Tags, format: §semicolon}]\n  primary_key",
        (
            "data_source.multi_valued_columns[0].format: must be one of semicolon_delimited, comma_delimited,"
            " json_array (did you mean 'semicolon_delimited'?)"
        ),
    ),
}

PHASES = {
    **{
        f"offset {offset}": ("offset: T-0", f"offset: §{offset}", f"phases[0].offset: {OFFSET}")
        for offset in ("T-0d", "T-d", "T+5d", "5d", "T-5", "t-5d", "T-1.5h", "T--5d", "T-5w", "T-٣d", "T-5d4h")
    },
    "offset is a number": ("offset: T-0", "offset: §0", f"phases[0].offset: {OFFSET} (this is a number)"),
    "offset too far": ("offset: T-0", "offset: §T-3651d", "phases[0].offset: is longer than 3650 days"),
    "worker id with a quote": (
        "worker-01",
        """§a'b""",
        f"phases[0].steps[0].worker_id: {WORKER_ID}",
    ),
    "worker id too long": ("worker-01", f"§{'w' * 65}", "phases[0].steps[0].worker_id: is longer than 64 characters"),
    "name with a line break": ("name: one", 'name: §"a\\nb"', f"phases[0].steps[0].name: {NAME}"),
    "name ends with a space": ("name: one", "name: §'one '", f"phases[0].steps[0].name: {NAME}"),
}

STEPS = {
    "params is a list": ("params: §[a]", "params: must be a mapping: each line a name, a colon and its value"),
    "parameter is true": (
        "params: {Enabled: §true}",
        'params.Enabled: must be a text, and this is true or false (write it in quotes: "true")',
    ),
    "parameter is a date": (
        "params: {MigrationDate: §2024-01-01}",
        'params.MigrationDate: must be a text, and this is a date (write it in quotes: "2024-01-01")',
    ),
    "parameter is nothing": ("params: {A: §~}", 'params.A: has no value (write "" for an empty text)'),
    "parameter is a list": ("params: {A: §[x]}", "params.A: must be a text, not a list"),
    "parameter is a password": (
        "params: {Password: §123456}",
        'params.Password: must be a text, and this is a number (write it in quotes: "…")',
    ),
    "parameter too long": (f"params: {{A: §{'x' * 32_769}}}", "params.A: is longer than 32,768 characters"),
    "parameter twice": (
        "params:\n          UserId: a\n          §userid: b",
        "params.userid: 'userid' repeats 'UserId': case makes no difference (that is in line 16)",
    ),
    "parameter's name is a number": (
        "params: {§1: a}",
        'params.1: must be a text, and this is a number (write it in quotes: "1")',
    ),
    "parameter's name is yes": (
        "params: {§yes: a}",
        'params.yes: must be a text, and this is true or false (write it in quotes: "yes")',
    ),
    "template without an end": ('params: {A: "x §{{Name"}', "params.A: '{{' without '}}'"),
    "template without a name": ("params: {A: 'x§{{ }}'}", "params.A: '{{}}' names no variable"),
    "template with braces": ("params: {A: '§{{{x}}}'}", "params.A: a variable's name holds a brace or a line break"),
    "second template broken": ("params: {A: '{{x}} §{{}}'}", "params.A: '{{}}' names no variable"),
    "template in a text of two lines": (
        "params:\n          A: §|\n            x\n            {{y",
        "params.A: '{{' without '}}'",
    ),
    "template after an escape": ('params: {A: §"\\t{{x"}', "params.A: '{{' without '}}'"),
    "secret without a name": (
        "params: {A: '§{{secret:}}'}",
        "params.A: a secret is named as {{secret:NAME}}, NAME in letters, digits, '_' and '-'",
    ),
    "secret with a space": (
        "params: {A: '§{{ Secret: a b }}'}",
        "params.A: a secret is named as {{secret:NAME}}, NAME in letters, digits, '_' and '-'",
    ),
    "template without quotes": ("params: {A: §{{UserId}}}", 'a template must stand in quotes (write "{{UserId}}")'),
    "special variable as output": (
        "output_params: {_Batch_Id: §Id}",
        "output_params._Batch_Id: _Batch_Id is a special variable and cannot be given a value",
    ),
    "output twice": (
        "output_params:\n          A: x\n          §a: y",
        "output_params.a: 'a' repeats 'A': case makes no difference (that is in line 16)",
    ),
    "rollback unknown": ("on_failure: §undo-x", "on_failure: no rollback is named 'undo-x'"),
    "poll without timeout": ("poll: §{interval: 5m}", "poll: 'timeout' is missing"),
    "poll interval a number": ("poll: {interval: §5, timeout: 1h}", f"poll.interval: {DURATION} (this is a number)"),
    "poll timeout shorter": ("poll: {interval: 2h, timeout: §90m}", "poll.timeout: is shorter than the interval"),
    "retry without max_retries": ("retry: §{interval: 5m}", "retry: 'max_retries' is missing"),
    "retry without interval": (
        "retry: §{max_retries: 1}",
        "retry.interval: 'interval' is missing: it is required unless max_retries is 0",
    ),
    "retries too many": (
        "retry: {max_retries: §101, interval: 1m}",
        "retry.max_retries: must be a whole number from 0 to 100",
    ),
    "retries negative": (
        "retry: {max_retries: §-1, interval: 1m}",
        "retry.max_retries: must be a whole number from 0 to 100",
    ),
    "retries a fraction": (
        "retry: {max_retries: §1.5, interval: 1m}",
        "retry.max_retries: must be a whole number from 0 to 100",
    ),
    "retries octal": (
        "retry: {max_retries: §010, interval: 1m}",
        "retry.max_retries: must be a whole number from 0 to 100",
    ),
    "retries in quotes": (
        'retry: {max_retries: §"3", interval: 1m}',
        "retry.max_retries: must be a number (write it without quotes: 3)",
    ),
    **{
        f"timeout {duration}": (f"timeout: §{duration}", f"timeout: {DURATION}")
        for duration in ("0m", "m", "5 m", "5M", "-5m", "1h30m", "1.5h", "PT5M", "٣m")
    },
    "timeout is a number": ("timeout: §90", f"timeout: {DURATION} (this is a number)"),
    "timeout too long": ("timeout: §999999999d", "timeout: is longer than 3650 days"),
}


@pytest.mark.parametrize("case", [*TOP_LEVEL, *SOURCE, *PHASES])
def test_passage(case: str) -> None:
    old, new, message = (TOP_LEVEL | SOURCE | PHASES)[case]
    expect_errors(changed(old, new), message)


@pytest.mark.parametrize("case", STEPS)
def test_step(case: str) -> None:
    lines, message = STEPS[case]
    # What YAML itself got wrong has no path.
    path = "" if message.startswith("a template must") else "phases[0].steps[0]."
    expect_errors(step(lines), f"{path}{message}")


@pytest.mark.parametrize("key", ["name", "data_source", "phases"])
def test_required_keys_of_the_runbook(key: str) -> None:
    document = "§" + "".join(section for section in _sections(MINIMAL) if not section.startswith(f"{key}:"))
    expect_errors(document, f"'{key}' is missing")


def _sections(document: str) -> list[str]:
    sections: list[str] = []
    for line in document.splitlines(keepends=True):
        if line.startswith(" "):
            sections[-1] += line
        else:
            sections.append(line)
    return sections


@pytest.mark.parametrize("key", ["type", "connection", "query", "primary_key"])
def test_required_keys_of_the_source(key: str) -> None:
    lines = [line for line in MINIMAL.splitlines(keepends=True) if not line.startswith(f"  {key}:")]
    lines[2] = "  §" + lines[2].lstrip()
    expect_errors("".join(lines), f"data_source: '{key}' is missing")


@pytest.mark.parametrize("key", ["name", "worker_id", "function"])
def test_required_keys_of_a_step(key: str) -> None:
    keys = {"name": "a", "worker_id": "w", "function": "f"}
    text = ", ".join(f"{name}: {value}" for name, value in keys.items() if name != key)
    document = changed("    steps:\n", f"    steps:\n      - §{{{text}}}\n")
    expect_errors(document, f"phases[0].steps[0]: '{key}' is missing")


def test_names_are_unique_without_regard_to_case() -> None:
    expect_errors(
        changed(
            STEP,
            STEP
            + "      - {name: §ONE, worker_id: w, function: f}\n"
            + "  - {name: §Go, offset: T-0, steps: [{name: one, worker_id: w, function: f}]}\n"
            + "init: [{name: a, worker_id: w, function: f}, {name: §A, worker_id: w, function: f}]\n"
            + "on_member_removed: [{name: a, worker_id: w, function: f}, {name: §A, worker_id: w, function: f}]\n"
            + "rollbacks:\n"
            + "  undo: [{name: a, worker_id: w, function: f}, {name: §A, worker_id: w, function: f}]\n"
            + "  §Undo: [{name: a, worker_id: w, function: f}]\n",
        ),
        "phases[0].steps[1].name: another step is named 'ONE' (that is in line 12)",
        "phases[1].name: another phase is named 'Go' (that is in line 9)",
        "init[1].name: another step is named 'A' (that is in line 17)",
        "on_member_removed[1].name: another step is named 'A' (that is in line 18)",
        "rollbacks.undo[1].name: another step is named 'A' (that is in line 20)",
        "rollbacks.Undo: 'Undo' repeats 'undo': case makes no difference (that is in line 20)",
    )


def test_an_unknown_rollback_names_the_nearest() -> None:
    document = step("on_failure: §undo-x") + UNDO.replace("undo:", "undo-y:")
    expect_errors(document, "phases[0].steps[0].on_failure: no rollback is named 'undo-x' (did you mean 'undo-y'?)")


def test_rollback_and_removal_steps_have_no_rollback() -> None:
    expect_errors(
        step("on_failure: undo")
        + "on_member_removed:\n  - {name: a, worker_id: w, function: f, §on_failure: undo}\n"
        + "rollbacks:\n  undo:\n    - {name: a, worker_id: w, function: f, §on_failure: undo}\n",
        "on_member_removed[0].on_failure: a step of on_member_removed cannot have a rollback of its own",
        "rollbacks.undo[0].on_failure: a rollback step cannot have a rollback of its own",
    )


def test_init_knows_no_member() -> None:
    expect_errors(
        MINIMAL + "init:\n"
        "  - name: a\n"
        "    worker_id: w\n"
        '    function: §"{{Kind}}-Group"\n'
        "    params:\n"
        '      Ok: "{{_batch_id}} {{ _Batch_Start_Time }}"\n'
        '      Bad: §"{{UserId}} {{_batch_id}} {{Mail}}"\n'
        "    §output_params: {A: b}\n",
        "init[0].function: an init step runs for no member and cannot use 'Kind'"
        " (it can use _batch_id and _batch_start_time)",
        "init[0].params.Bad: an init step runs for no member and cannot use 'UserId', 'Mail'"
        " (it can use _batch_id and _batch_start_time)",
        "init[0].output_params: an init step has no member to keep outputs for",
    )


def test_the_rollback_of_an_init_step_knows_no_member_either() -> None:
    report = check_runbook(
        MINIMAL + "init:\n  - {name: a, worker_id: w, function: f, on_failure: undo}\n"
        "rollbacks:\n  undo:\n    - name: b\n      worker_id: w\n      function: f\n"
        "      params: {A: '{{UserId}}'}\n      output_params: {X: y}\n"
    )
    assert [(error.line, error.column, error.message) for error in report.errors] == [
        (16, 54, "an init step runs for no member, and the rollback 'undo' has output_params"),
        (16, 54, "an init step runs for no member, and the rollback 'undo' uses 'UserId'"),
    ]


def test_a_secret_is_no_function() -> None:
    expect_errors(
        changed("function: Do-It", 'function: §"Do-{{secret:x}}"'),
        "phases[0].steps[0].function: a function's name cannot hold a secret",
    )


def test_all_errors_are_reported_at_once_in_order() -> None:
    document = changed("name: wave", "name: §1")
    document = changed("type: sql", "type: §sqll", document)
    document = changed("offset: T-0", "offset: §now", document)
    document = changed("worker-01", "§-x", document) + "rollbacks:\n  Undo: §x\n"
    expect_errors(
        document,
        'name: must be a text, and this is a number (write it in quotes: "1")',
        "data_source.type: must be one of dataverse, databricks, sql, files (did you mean 'sql'?)",
        f"phases[0].offset: {OFFSET}",
        f"phases[0].steps[0].worker_id: {WORKER_ID}",
        "rollbacks.Undo: must be a list: each item is one rollback step (begin each with '- ')",
    )


def test_what_stands_under_an_alias_is_reported_once() -> None:
    expect_errors(
        changed(
            STEP,
            "        function: Do-It\n        retry: &often {max_retries: §-1}\n"
            "      - {name: two, worker_id: w, function: f, retry: *often}\n",
        ),
        "phases[0].steps[0].retry.max_retries: must be a whole number from 0 to 100",
    )


def test_a_value_that_may_hold_a_secret_is_not_repeated() -> None:
    report = check_runbook(changed("SQL_WAVES", "mssql://admin:hunter2@host"))
    assert "hunter2" not in as_lines(report.errors)
    assert len(report.errors) == 1


def test_a_thousand_errors_are_kept_and_the_rest_counted() -> None:
    document = MINIMAL + "init:\n" + "  - {}\n" * 1_000
    errors = check_runbook(document).errors
    assert len(errors) == 1_001
    assert errors[-1].message == "2,000 more are not shown"


def test_load_raises_every_error() -> None:
    with pytest.raises(RunbookErrors) as caught:
        load_runbook(changed("name: wave", "name: 1").replace("T-0", "T"))
    assert [problem.path for problem in caught.value.problems] == ["name", "phases[0].offset"]
    assert str(caught.value).splitlines()[1] == f"line 10, column 13: phases[0].offset: {OFFSET}"
    assert all(problem.severity is Severity.ERROR for problem in caught.value.problems)


def test_a_problem_reads_as_a_line() -> None:
    problem = Problem(12, 7, "phases[0].steps[1].on_failure", "no rollback is named 'undo-x'", "did you mean 'undo-y'?")
    assert str(problem) == (
        "line 12, column 7: phases[0].steps[1].on_failure: no rollback is named 'undo-x' (did you mean 'undo-y'?)"
    )
    assert str(Problem(1, 1, "", "the document is empty")) == "line 1, column 1: the document is empty"
