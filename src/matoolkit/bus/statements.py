"""Every statement of the embedded bus that SQLite and PostgreSQL share, by name, with a sentence on each.

What they say differently stands in braces: `{now}` is the time, `{these}` tests for the given ids, `{named}` for the
given message ids, `{ids_of}` for the ids of a subquery, `{skip_locked}` passes over rows that another transaction has
in its hands. A lock is `{held}` while its delivery count is the row's and its end is ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import TextClause

_HELD = "delivery_count = :delivery_count AND available_at > {now} AND dead_at IS NULL"
_DEAD_LETTER = "id, message_id, properties, body, delivery_count, enqueued_at, dead_at, dead_reason, dead_description"

DECLARE_TOPIC = """
    INSERT INTO bus_topics (name, time_to_live_ms, duplicate_window_ms)
    VALUES (:name, :time_to_live_ms, :duplicate_window_ms)
    ON CONFLICT (name) DO UPDATE
    SET time_to_live_ms = excluded.time_to_live_ms, duplicate_window_ms = excluded.duplicate_window_ms
"""

DECLARE_SUBSCRIPTION = """
    INSERT INTO bus_subscriptions (topic_id, name, filter_property, filter_value, lock_ms, max_delivery_count)
    VALUES (:topic_id, :name, :filter_property, :filter_value, :lock_ms, :max_delivery_count)
    ON CONFLICT (topic_id, name) DO UPDATE
    SET filter_property = excluded.filter_property, filter_value = excluded.filter_value, lock_ms = excluded.lock_ms,
        max_delivery_count = excluded.max_delivery_count
"""

FIND_TOPIC = "SELECT id FROM bus_topics WHERE name = :topic"

FIND_SUBSCRIPTION = """
    SELECT s.id, s.lock_ms, s.max_delivery_count
    FROM bus_topics t JOIN bus_subscriptions s ON s.topic_id = t.id
    WHERE t.name = :topic AND s.name = :subscription
"""

REMOVE_SUBSCRIPTION = "DELETE FROM bus_subscriptions WHERE id = :subscription_id"

REMOVE_MESSAGES = "DELETE FROM bus_messages WHERE subscription_id = :subscription_id"

IN_SUBSCRIPTION = "SELECT id, properties FROM bus_messages WHERE subscription_id = :subscription_id"

MOVE = "UPDATE bus_messages SET subscription_id = :subscription_id WHERE {these}"

# Whoever held these locks is known to be dead. What is scheduled was never handed out.
RELEASE_ALL = """
    UPDATE bus_messages SET available_at = enqueued_at
    WHERE dead_at IS NULL AND delivery_count > 0 AND available_at > {now}
"""

# What was claimed and must not be handed out goes back in its count by what that counted: it was not delivered.
REFUSE_CLAIMED = """
    UPDATE bus_messages
    SET dead_at = {now}, dead_reason = :reason, dead_description = :description,
        delivery_count = delivery_count - :counted
    WHERE {these}
"""

TAKE = "DELETE FROM bus_messages WHERE {these}"

FILTERS = """
    SELECT s.filter_property, s.filter_value
    FROM bus_topics t JOIN bus_subscriptions s ON s.topic_id = t.id WHERE t.name = :topic
"""

SUBSCRIPTIONS = """
    SELECT s.name FROM bus_topics t JOIN bus_subscriptions s ON s.topic_id = t.id WHERE t.name = :topic ORDER BY s.name
"""

# `RETURNING`, here and below, is what tells the held from the lost when they are not all there.
COMPLETE = "DELETE FROM bus_messages WHERE {these} AND {held} RETURNING id"

# Back to the old place, so that a message which is tried again is not overtaken by the whole queue.
ABANDON = "UPDATE bus_messages SET available_at = enqueued_at WHERE {these} AND {held} RETURNING id, subscription_id"

DEAD_LETTER = """
    UPDATE bus_messages SET dead_at = {now}, dead_reason = :reason, dead_description = :description
    WHERE {these} AND {held} RETURNING id
"""

RENEW = """
    UPDATE bus_messages
    SET available_at = {now} + coalesce(CAST(:lock_ms AS BIGINT), (
        SELECT s.lock_ms FROM bus_subscriptions s WHERE s.id = bus_messages.subscription_id))
    WHERE {these} AND {held} RETURNING id, available_at
"""

# Goes through what is scheduled or locked, which is little beside what is ready; message ids have no index here.
CANCEL_SCHEDULED = """
    DELETE FROM bus_messages
    WHERE subscription_id IN (SELECT id FROM bus_subscriptions WHERE topic_id = :topic_id)
      AND available_at > {now} AND dead_at IS NULL AND delivery_count = 0 AND message_id {named}
    RETURNING message_id
"""

DEAD_LETTERS = """
    SELECT {dead_letter} FROM bus_messages
    WHERE subscription_id = :subscription_id AND dead_at IS NOT NULL AND id > :after ORDER BY id LIMIT :limit
"""

TAKE_DEAD = """
    DELETE FROM bus_messages WHERE id {ids_of}(
        SELECT id FROM bus_messages WHERE subscription_id = :subscription_id AND dead_at IS NOT NULL
        ORDER BY id LIMIT :limit {skip_locked}){end}
    RETURNING {dead_letter}
"""

TAKE_THESE_DEAD = """
    DELETE FROM bus_messages
    WHERE {these} AND subscription_id = :subscription_id AND dead_at IS NOT NULL
    RETURNING id, properties, body
"""

PUT_BACK = """
    INSERT INTO bus_messages (subscription_id, available_at, enqueued_at, expires_at, properties, body)
    SELECT s.id, {now}, {now}, {now} + t.time_to_live_ms, :properties, :body
    FROM bus_subscriptions s JOIN bus_topics t ON t.id = s.topic_id WHERE s.id = :subscription_id
"""

# Whoever holds a lock may go on past the time to live; it ends what is waiting.
EXPIRE = """
    UPDATE bus_messages SET dead_at = {now}, dead_reason = :reason, dead_description = :description
    WHERE id {ids_of}(
        SELECT id FROM bus_messages WHERE dead_at IS NULL AND expires_at <= {now} AND available_at <= {now}
        ORDER BY expires_at LIMIT :limit {skip_locked}){end}
    RETURNING id
"""

FORGET_MESSAGE_IDS = """
    DELETE FROM bus_message_ids WHERE (topic_id, message_id) IN (
        SELECT topic_id, message_id FROM bus_message_ids WHERE until <= {now}
        ORDER BY until LIMIT :limit {skip_locked})
    RETURNING message_id
"""

NEXT_DUE = """
    SELECT s.id, {now} AS now, (
        SELECT m.available_at FROM bus_messages m WHERE m.subscription_id = s.id AND m.dead_at IS NULL
        ORDER BY m.available_at, m.id LIMIT 1) AS available_at
    FROM bus_topics t JOIN bus_subscriptions s ON s.topic_id = t.id
    WHERE t.name = :topic AND s.name = :subscription
"""

DEPTH = """
    SELECT count(CASE WHEN available_at <= {now} THEN 1 END),
        count(CASE WHEN available_at > {now} AND delivery_count = 0 THEN 1 END),
        count(CASE WHEN available_at > {now} AND delivery_count > 0 THEN 1 END),
        (SELECT count(*) FROM bus_messages WHERE subscription_id = :subscription_id AND dead_at IS NOT NULL),
        min(CASE WHEN available_at <= {now} OR delivery_count > 0 THEN enqueued_at END)
    FROM bus_messages WHERE subscription_id = :subscription_id AND dead_at IS NULL
"""


class Words(NamedTuple):
    """How a database says what stands in braces."""

    now: str
    these: str
    named: str
    ids_of: str
    end: str
    skip_locked: str


class Statements:
    """The shared statements in the words of one database, made once."""

    def __init__(self, words: Words) -> None:
        def worded(statement: str) -> TextClause:
            held = _HELD.format(now=words.now)
            return text(statement.format(held=held, dead_letter=_DEAD_LETTER, **words._asdict()))

        self.declare_topic = worded(DECLARE_TOPIC)
        self.declare_subscription = worded(DECLARE_SUBSCRIPTION)
        self.find_topic = worded(FIND_TOPIC)
        self.find_subscription = worded(FIND_SUBSCRIPTION)
        self.remove_subscription = worded(REMOVE_SUBSCRIPTION)
        self.remove_messages = worded(REMOVE_MESSAGES)
        self.in_subscription = worded(IN_SUBSCRIPTION)
        self.move = worded(MOVE)
        self.release_all = worded(RELEASE_ALL)
        self.refuse_claimed = worded(REFUSE_CLAIMED)
        self.take = worded(TAKE)
        self.subscriptions = worded(SUBSCRIPTIONS)
        self.filters = worded(FILTERS)
        self.complete = worded(COMPLETE)
        self.abandon = worded(ABANDON)
        self.dead_letter = worded(DEAD_LETTER)
        self.renew = worded(RENEW)
        self.cancel_scheduled = worded(CANCEL_SCHEDULED)
        self.dead_letters = worded(DEAD_LETTERS)
        self.take_dead = worded(TAKE_DEAD)
        self.take_these_dead = worded(TAKE_THESE_DEAD)
        self.put_back = worded(PUT_BACK)
        self.expire = worded(EXPIRE)
        self.forget_message_ids = worded(FORGET_MESSAGE_IDS)
        self.next_due = worded(NEXT_DUE)
        self.depth = worded(DEPTH)
