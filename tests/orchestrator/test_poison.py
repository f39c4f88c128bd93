"""Messages that cannot be handled: put aside with why, while their neighbours go on."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from matoolkit.store import schema
from tests.orchestrator.runbooks import runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave


MOVE = runbook({"move T-0": ["move"]})


def started(wave: Wave, *keys: str, text: str = MOVE) -> None:
    wave.publish(text)
    wave.batch(*keys, minutes=0)
    wave.tick()
    wave.jobs()


UNREADABLE = [
    "",
    "no JSON",
    "[1, 2]",
    "{",
    '{"status": "success"}',
    '{"jobId": 7}',
    '{"jobId": "x", "status": "maybe"}',
]


@pytest.mark.parametrize("body", UNREADABLE)
def test_an_unreadable_result_is_put_aside_with_a_reason(wave: Wave, body: str) -> None:
    started(wave, "anna")
    wave.send_result(body)
    wave.succeed("move anna")
    row = wave.row(schema.dead_messages)
    assert (row["topic"], row["reason"], row["body"]) == ("worker-results", "Unreadable", body)
    assert row["error"].startswith("the body is ")
    assert wave.ended(put_aside=1) == "completed"


@pytest.mark.parametrize(
    "body", ["no JSON", '{"messageType": "phase-due"}', '{"messageType": "member-added", "batchId": "x"}']
)
def test_an_unreadable_event_is_put_aside_with_a_reason(wave: Wave, body: str) -> None:
    started(wave, "anna")
    wave.send_event(body, "phase-due")
    wave.succeed("move anna")
    row = wave.row(schema.dead_messages)
    assert (row["topic"], row["message_type"], row["reason"]) == ("orchestrator-events", "phase-due", "Unreadable")
    assert wave.ended(put_aside=1) == "completed"


@pytest.mark.parametrize("body", ["{}", '{"messageType": "world-peace"}', '{"messageType": null, "batchId": 1}'])
def test_a_message_of_an_unknown_type_is_logged_and_completed(
    wave: Wave, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    started(wave, "anna")
    with caplog.at_level(logging.WARNING):
        wave.send_event(body)
        wave.pump()
    assert "no message is of the type" in caplog.text
    assert wave.rows(schema.dead_messages) == []
    assert wave.finish() == "completed"


def test_the_type_may_stand_in_the_property_alone(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch("anna", minutes=0)
    wave.announce()
    (due,) = wave.events("phase-due")
    wave.lose_events()
    body = json.loads(due.body)
    del body["messageType"]
    wave.send_event(json.dumps(body), "phase-due")
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


NEEDY = runbook({"move T-0": [step("move", output_params={"Id": "Id"})]})


def poisoned(wave: Wave, *keys: str) -> None:
    """Members are in a state that no handler can deal with."""
    for key in keys:
        wave.forge(schema.batch_members, wave.member(key)["id"], worker_data_json="{broken")


@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_poison_message_is_isolated_and_its_neighbours_go_on(wave: Wave, place: int) -> None:
    people = [f"user{number}" for number in range(7)]
    started(wave, *people, text=NEEDY)
    poisoned(wave, people[place])
    for key in people:
        wave.answer(f"move {key}", result={"Id": 7})
    wave.pump()
    assert wave.members() == {key: "active" if key == people[place] else "completed" for key in people}
    row = wave.row(schema.dead_messages)
    assert (row["topic"], row["reason"]) == ("worker-results", "HandlerFailed")
    assert "DecodeError" in row["error"]
    wave.forge(schema.batch_members, wave.member(people[place])["id"], worker_data_json=None)
    wave.send_result(row["body"])
    assert wave.ended(put_aside=1) == "completed"


def test_two_poison_messages_in_a_set_are_both_isolated(wave: Wave) -> None:
    started(wave, "anna", "bert", "carl", text=NEEDY)
    poisoned(wave, "anna", "carl")
    wave.succeed("move anna", "move bert", "move carl", result={"Id": 7})
    assert wave.members() == {"anna": "active", "bert": "completed", "carl": "active"}
    assert len(wave.rows(schema.dead_messages)) == 2


def test_numbers_no_database_can_hold_are_no_poison_to_others(wave: Wave) -> None:
    started(wave, "anna")
    wave.send_result(json.dumps({"jobId": "x", "status": "success", "correlationData": {"stepExecutionId": 2**65}}))
    wave.answer("move anna")
    wave.pump()
    assert wave.batch_status == "completed"


def test_a_check_that_names_no_execution_is_put_aside_and_its_neighbours_go_on(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch("anna", minutes=0)
    wave.send_event('{"messageType": "retry-check"}', "retry-check")
    wave.tick()
    assert wave.jobs() == ["move anna"]
    assert "names no execution" in wave.row(schema.dead_messages)["error"]
    wave.succeed("move anna")
    assert wave.ended(put_aside=1) == "completed"


@pytest.mark.parametrize("message_type", ["phase-due", "member-added", "member-removed", "batch-init"])
def test_events_of_batches_we_do_not_know_are_passed_over(wave: Wave, message_type: str) -> None:
    started(wave, "anna")
    body = {"messageType": message_type, "batchId": 10**9, "phaseExecutionId": 10**9, "batchMemberId": 10**9}
    wave.send_event(json.dumps(body), message_type)
    wave.send_event(json.dumps({"messageType": "poll-check", "executionId": 10**9}), "poll-check")
    assert wave.finish() == "completed"


def test_our_own_messages_that_the_bus_gave_up_are_kept_where_operators_see_them(wave: Wave) -> None:
    started(wave, "anna")
    wave.send_result("no JSON")
    results = wave.orchestrators[0].results_subscription
    with wave.database.transaction() as tx:
        wave.bus.dead_letter(tx, wave.bus.receive(tx, results, 10), "MaxDeliveryCountExceeded", "ten times")
    wave.reconcile()
    row = wave.row(schema.dead_messages)
    assert (row["reason"], row["error"], row["body"]) == ("MaxDeliveryCountExceeded", "ten times", "no JSON")
    wave.succeed("move anna")
    assert wave.ended(put_aside=1) == "completed"
