"""Messages that could not be handled are kept, with why."""

from __future__ import annotations

from matoolkit.store import dead_messages as store
from matoolkit.store.schema import dead_messages
from tests.store.world import NOW, World

BODY = '{"messageType": "phase-due", "name": "Žluťoučký\\u0000 🐎"}'


def test_a_message_is_put_aside_with_why(world: World) -> None:
    with world.database.transaction() as tx:
        for properties, error in (({"MessageType": "phase-due"}, "KeyError: 'x'"), ({}, None)):
            store.park(
                tx,
                topic="orchestrator-events",
                message_id="outbox-1",
                properties=properties,
                properties_json='{"MessageType": "phase-due"}',
                body=BODY,
                reason="HandlerFailed",
                error=error,
                now=NOW,
            )
    first, second = world.rows(dead_messages)
    assert (first["topic"], first["message_id"], first["message_type"]) == (
        "orchestrator-events",
        "outbox-1",
        "phase-due",
    )
    assert (first["reason"], first["error"], first["body"], first["at"]) == (
        "HandlerFailed",
        "KeyError: 'x'",
        BODY,
        NOW,
    )
    assert (first["resubmitted_at"], first["resubmitted_by"]) == (None, None)
    assert (second["message_type"], second["error"]) == (None, None)
