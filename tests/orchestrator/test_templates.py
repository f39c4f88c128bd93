"""Parameters and function names are resolved when a step is dispatched, from fresh data, and stored resolved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.store import schema
from tests.orchestrator.runbooks import RETRY, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

PARAMS = {"Key": "{{Key}}", "Mail": "{{Mail}}"}


def mailed(name: str, **more: Any) -> dict[str, Any]:
    return step(name, params=PARAMS, **more)


def started(wave: Wave, text: str, *keys: str) -> None:
    wave.publish(text)
    people = keys or ("anna",)
    wave.batch(*people, minutes=0, data={key: {"Mail": f"{key}@old"} for key in people if key != "poor"})
    wave.tick()


def changed(wave: Wave, key: str, **data: Any) -> None:
    row = wave.member(key)
    wave.forge(schema.batch_members, row["id"], data_json=json.dumps({**json.loads(row["data_json"]), **data}))


def test_data_that_changed_is_used_by_later_steps(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [mailed("check"), mailed("move")]}))
    assert wave.job("check anna").parameters["Mail"] == "anna@old"
    changed(wave, "anna", Mail="anna@new")
    wave.succeed("check anna")
    assert wave.job("move anna").parameters["Mail"] == "anna@new"
    assert wave.finish() == "completed"


def test_what_was_resolved_is_stored(wave: Wave) -> None:
    new = step("new", function="New-{{ObjectType}}", params=PARAMS)
    wave.publish(runbook({"move T-0": [new]}))
    wave.batch("anna", minutes=0, data={"anna": {"Mail": "anna@x", "ObjectType": "EntraUser"}})
    wave.tick()
    assert wave.jobs() == ["New-EntraUser anna"]
    row = wave.step("new anna")
    assert row["function_name"] == "New-EntraUser"
    assert json.loads(row["params_json"]) == {"Key": "anna", "Mail": "anna@x"}
    assert wave.held["New-EntraUser anna"].message.properties["FunctionName"] == "New-EntraUser"
    assert wave.finish() == "completed"


def test_special_variables_are_the_batch_and_its_start(wave: Wave) -> None:
    special = step("move", params={"Key": "{{Key}}", "Batch": "{{_batch_id}}", "Start": "{{_batch_start_time}}"})
    started(wave, runbook({"move T-0": [special]}))
    assert wave.job("move anna").parameters == {"Key": "anna", "Batch": wave.batch_id, "Start": "2026-03-01T08:00:00Z"}
    assert wave.finish() == "completed"


def test_outputs_are_visible_in_later_steps_and_phases(wave: Wave) -> None:
    use = step("use", params={"Key": "{{Key}}", "Id": "{{UserId}}"})
    make = step("make", output_params={"UserId": "Id"})
    started(
        wave, runbook({"prepare T-5m": [make, use], "move T-0": [{**use, "name": "again", "function": "Do-again"}]})
    )
    wave.succeed("make anna", result={"Id": "42"})
    assert wave.job("use anna").parameters["Id"] == "42"
    wave.succeed("use anna")
    assert wave.job("again anna").parameters["Id"] == "42"
    assert wave.finish() == "completed"


def test_outputs_are_visible_in_rollbacks(wave: Wave) -> None:
    steps = [step("make", output_params={"UserId": "Id"}), step("move", on_failure="undo")]
    undo = step("unmake", params={"Key": "{{Key}}", "Id": "{{UserId}}"})
    started(wave, runbook({"move T-0": steps}, rollbacks={"undo": [undo]}))
    wave.succeed("make anna", result={"Id": "42"})
    wave.fail("move anna")
    assert wave.job("unmake anna").parameters == {"Key": "anna", "Id": "42"}
    wave.succeed("unmake anna")
    assert wave.ended() == "failed"


def test_outputs_are_visible_in_removal_steps(wave: Wave) -> None:
    leave = step("unmake", params={"Key": "{{Key}}", "Id": "{{UserId}}"})
    steps = [step("make", output_params={"UserId": "Id"}), step("move")]
    started(wave, runbook({"move T-0": steps}, on_member_removed=[leave]))
    wave.succeed("make anna", result={"Id": "42"})
    wave.leave("anna")
    wave.succeed("move anna")
    assert wave.job("unmake anna").parameters == {"Key": "anna", "Id": "42"}
    assert wave.finish() == "completed"


def test_worker_data_beats_data(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [step("make", output_params={"Mail": "Mail"}), mailed("move")]}))
    wave.succeed("make anna", result={"Mail": "anna@worker"})
    changed(wave, "anna", Mail="anna@newer")
    assert wave.job("move anna").parameters["Mail"] == "anna@worker"
    assert wave.finish() == "completed"


def test_outputs_of_several_steps_add_up(wave: Wave) -> None:
    steps = [step("one", output_params={"A": "x", "B": "y"}), step("two", output_params={"B": "y", "C": "missing"})]
    started(wave, runbook({"move T-0": steps}))
    wave.succeed("one anna", result={"X": 1, "y": 2})
    wave.succeed("two anna", result={"y": 3})
    assert json.loads(wave.member("anna")["worker_data_json"]) == {"A": 1, "B": 3}
    assert wave.ended() == "completed"


def test_unresolved_variables_fail_that_member_with_every_name_and_no_retry(wave: Wave) -> None:
    needy = step("move", retry=RETRY, params={**PARAMS, "Site": "{{Site}}/{{Mail}}"}, function="Do-{{Verb}}")
    started(wave, runbook({"move T-0": [needy]}), "anna", "poor")
    assert wave.members() == {"anna": "failed", "poor": "failed"}
    assert wave.step("move poor")["error_message"] == "no value for: Mail, Site, Verb"
    assert wave.step("move anna")["error_message"] == "no value for: Site, Verb"
    assert wave.step("move poor")["retry_count"] == 0
    assert wave.every_job == []
    assert wave.ended() == "failed"


def test_others_are_untouched_by_one_who_lacks_a_value(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [mailed("move")]}), "anna", "poor", "bert")
    assert wave.jobs() == ["move anna", "move bert"]
    assert wave.members() == {"anna": "active", "poor": "failed", "bert": "active"}
    assert wave.finish() == "completed"


def test_unresolved_variables_are_rolled_back_like_any_failure(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [mailed("move", on_failure="undo")]}, rollbacks={"undo": ["unmove"]}), "poor")
    assert wave.jobs() == ["unmove poor"]
    wave.succeed("unmove poor")
    assert wave.step("move poor")["rollback_status"] == "succeeded"
    assert wave.ended() == "failed"


def test_a_later_step_that_lacks_a_value_fails_its_member_then(wave: Wave) -> None:
    started(wave, runbook({"move T-0": ["check", mailed("move")]}), "poor")
    wave.succeed("check poor")
    assert wave.steps("poor") == {"check": "succeeded", "move": "failed"}
    assert wave.ended() == "failed"


HOSTILE = {
    "a reference to a secret": ("{{secret:admin-password}}", "a reference to a secret stands in the data"),
    "a text that no message can carry": ("x" * 300_000, "the limit is 262,144"),
    "half of a surrogate pair": ("\ud800", "the member's data cannot be read"),
}


@pytest.mark.parametrize(("value", "error"), HOSTILE.values(), ids=HOSTILE)
def test_data_that_cannot_travel_fails_its_member_and_nobody_else(wave: Wave, value: str, error: str) -> None:
    wave.publish(runbook({"move T-0": ["check", mailed("move", on_failure="undo")]}, rollbacks={"undo": ["unmove"]}))
    wave.batch("anna", "mallory", minutes=0, data={"anna": {"Mail": "anna@x"}})
    wave.tick()
    wave.jobs()
    changed(wave, "mallory", Mail=value)
    wave.succeed("check anna", "check mallory")
    assert "move anna" in wave.jobs()
    assert wave.members() == {"anna": "active", "mallory": "failed"}
    assert error in wave.step("move mallory")["error_message"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("value", ["a\0b", "x" * 300], ids=["a NUL character", "too long"])
def test_a_function_name_that_cannot_be_one_fails_its_member_and_nobody_else(wave: Wave, value: str) -> None:
    wave.publish(runbook({"move T-0": [step("move", function="Do-{{Verb}}")]}))
    wave.batch("anna", "mallory", minutes=0, data={"anna": {"Verb": "move"}, "mallory": {"Verb": value}})
    wave.tick()
    assert wave.jobs() == ["move anna"]
    assert "the function's name is over 256 characters" in wave.step("move mallory")["error_message"]
    assert wave.finish() == "completed"


def test_a_nul_character_travels_in_a_parameter(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": [mailed("move")]}))
    wave.batch("anna", minutes=0, data={"anna": {"Mail": "a\0b"}})
    wave.tick()
    assert wave.job("move anna").parameters["Mail"] == "a\0b"
    assert wave.finish() == "completed"
