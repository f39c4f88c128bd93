"""The columns that members must have."""

from __future__ import annotations

from matoolkit.runbooks import load_runbook, required_columns
from tests.runbooks.documents import MINIMAL, changed

STEP = "        function: Do-It\n"


def test_the_least() -> None:
    assert required_columns(load_runbook(MINIMAL)) == ("Id", "Starts")
    assert required_columns(load_runbook(changed("batch_time_column: Starts", "batch_time: immediate"))) == ("Id",)


def test_everything_that_is_named_in_the_order_of_appearance() -> None:
    document = changed(
        STEP,
        """\
        function: "{{Verb}}-It"
        params: {A: "{{Second}} {{ID}} {{_batch_id}} {{secret:k}}", B: "{{Early}}", C: "{{verb}}"}
        on_failure: undo
      - name: two
        worker_id: w
        function: f
        params: {A: "{{Later}}"}
        output_params: {early: x}
""",
    ).replace("  primary_key", "  multi_valued_columns: [{name: Tags, format: json_array}]\n  primary_key")
    document += """\
init:
  - {name: a, worker_id: w, function: f, params: {A: "{{_batch_start_time}}"}}
on_member_removed:
  - {name: a, worker_id: w, function: f, params: {A: "{{Gone}} {{Left}} {{EARLY}}"}, output_params: {Left: x, Later: y}}
rollbacks:
  undo:
    - {name: a, worker_id: w, function: "{{Back}}", params: {A: "{{Undone}}"}, output_params: {Undone: x}}
"""
    assert required_columns(load_runbook(document)) == (
        "Id",
        "Starts",
        "Tags",
        "Verb",
        "Second",
        # Put out by a removal step, which a phase never sees.
        "Later",
        "Back",
        "Gone",
    )
