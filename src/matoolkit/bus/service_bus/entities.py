"""Topics, subscriptions and filters: made and listed where there is the right to, else taken as they were given.

In production infrastructure makes them, and services have the right to send and receive and no other. They know of
workers what their settings say. Where the right is there, as in development, what the settings say is not asked.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from matoolkit.bus.errors import BusDenied, BusError, TopicNotFound
from matoolkit.bus.service_bus.translation import translating
from matoolkit.bus.topology import Filter, SubscriptionRule, TopicRule, Topology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.bus.port import Subscription
    from matoolkit.bus.service_bus.links import Links
    from matoolkit.clock import Clock

log = logging.getLogger(__name__)

_RULE = "$Default"
_EVERYTHING = "1=1"
_EQUALS = re.compile(r"(?:(?:user|sys)\.)?\[?(\w+)\]? *= *'((?:[^']|'')*)'")
_KEPT_SECONDS = 60
_DENIED_SECONDS = 3600
"""How long a refusal is believed, before the right to manage is tried once more."""


class Entities:
    """The topics and subscriptions of a namespace."""

    def __init__(self, links: Links, clock: Clock) -> None:
        self._links = links
        self._clock = clock
        self._known = links.settings.known
        self._denied_until = 0.0
        self._listed: dict[str, tuple[float, list[SubscriptionRule]]] = {}

    def declare(self, topology: Topology) -> None:
        """Make what is not there and bring the rest up to date; without the right to, take it as given."""
        topology.check()
        try:
            for topic in topology.topics:
                with self._managing(topic.name) as client:
                    _write_topic(client, topic)
            for rule in topology.subscriptions:
                with self._managing(rule.topic) as client:
                    _write_subscription(client, rule)
        except BusDenied as denied:
            log.info("topics and subscriptions are taken as infrastructure made them: %s", denied)
            added = tuple(each for each in topology.subscriptions if each not in self._known.subscriptions)
            self._known = Topology(self._known.topics, (*self._known.subscriptions, *added))
        self._listed.clear()

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self._listed.pop(subscription.topic, None)
        with self._managing(subscription.topic) as client:
            try:
                client.delete_subscription(subscription.topic, subscription.name)
            except ResourceNotFoundError:
                log.debug("%s of %s was not there", subscription.name, subscription.topic)

    def subscriptions(self, topic: str) -> list[Subscription]:
        """Those a topic has, by name."""
        return sorted({rule.subscription for rule in self._rules(topic)})

    def listeners(self, topic: str, property_name: str) -> frozenset[str] | None:
        """The values some filter lets through; None when one lets through all, or nobody knows."""
        rules = self._rules(topic)
        if not rules or any(rule.filter is None for rule in rules):
            return None if rules or self._is_denied() else frozenset()
        return frozenset(rule.filter.value for rule in rules if rule.filter and rule.filter.property == property_name)

    def counts(self, subscription: Subscription) -> tuple[int, int] | None:
        """How many messages are active and dead; None without the right to ask."""
        try:
            with self._managing(subscription) as client:
                found = client.get_subscription_runtime_properties(subscription.topic, subscription.name)
                return found.active_message_count or 0, found.dead_letter_message_count or 0
        except BusDenied:
            return None

    def scheduled(self, topic: str) -> int:
        """How many messages of a topic are for later; they are in no subscription yet."""
        with self._managing(topic) as client:
            return client.get_topic_runtime_properties(topic).scheduled_message_count or 0

    def _rules(self, topic: str) -> list[SubscriptionRule]:
        now = self._clock.now().timestamp()
        kept = self._listed.get(topic)
        if kept is not None and abs(now - kept[0]) < _KEPT_SECONDS:
            return kept[1]
        try:
            with self._managing(topic) as client:
                rules = [
                    SubscriptionRule(topic, found.name, _filter(rule.filter))
                    for found in client.list_subscriptions(topic)
                    for rule in client.list_rules(topic, found.name)
                ]
        except BusDenied:
            rules = [rule for rule in self._known.subscriptions if rule.topic == topic]
        except BusError:
            if kept is None:
                raise
            log.warning("the subscriptions of %s could not be listed; what was found earlier is used", topic)
            return kept[1]
        self._listed[topic] = (now, rules)
        return rules

    @contextmanager
    def _managing(self, entity: str | Subscription) -> Iterator[Any]:
        if self._is_denied():
            raise BusDenied(f"{entity}: there is no right to manage entities")
        with translating(entity):
            try:
                yield self._links.administration()
            except BusDenied:
                self._denied_until = self._clock.now().timestamp() + _DENIED_SECONDS
                raise
            except BusError:
                raise
            except Exception as error:
                if getattr(error, "status_code", None) in {401, 403}:
                    self._denied_until = self._clock.now().timestamp() + _DENIED_SECONDS
                raise

    def _is_denied(self) -> bool:
        return self._clock.now().timestamp() < self._denied_until


def _write_topic(client: Any, rule: TopicRule) -> None:
    wanted = {"default_message_time_to_live": rule.time_to_live}
    window = {"duplicate_detection_history_time_window": rule.duplicate_window}
    try:
        client.create_topic(rule.name, requires_duplicate_detection=True, **wanted, **window)
    except ResourceExistsError:
        client.update_topic(client.get_topic(rule.name), **wanted, **window)


def _write_subscription(client: Any, rule: SubscriptionRule) -> None:
    try:
        client.get_topic(rule.topic)
    except ResourceNotFoundError:
        raise TopicNotFound(f"there is no topic {rule.topic}") from None
    wanted = {"lock_duration": rule.lock_duration, "max_delivery_count": rule.max_delivery_count}
    try:
        client.create_subscription(rule.topic, rule.name, dead_lettering_on_message_expiration=True, **wanted)
    except ResourceExistsError:
        client.update_subscription(rule.topic, client.get_subscription(rule.topic, rule.name), **wanted)
    _write_filter(client, rule)


def _write_filter(client: Any, rule: SubscriptionRule) -> None:
    """One rule. A new subscription lets everything through for a moment, which infrastructure's does not."""
    from azure.servicebus.management import SqlRuleFilter, TrueRuleFilter

    present = {found.name: found for found in client.list_rules(rule.topic, rule.name)}
    if [_filter(found.filter) for found in present.values()] == [rule.filter]:
        return
    wanted: Any = TrueRuleFilter()
    if rule.filter is not None:
        value = rule.filter.value.replace("'", "''")
        wanted = SqlRuleFilter(f"{rule.filter.property} = '{value}'")
    kept = present.pop(_RULE, None)
    if kept is None:
        client.create_rule(rule.topic, rule.name, _RULE, filter=wanted)
    else:
        kept.filter = wanted
        client.update_rule(rule.topic, rule.name, kept)
    for name in present:
        client.delete_rule(rule.topic, rule.name, name)


def _filter(found: Any) -> Filter | None:
    """A filter as we write them; None for one that lets everything through."""
    properties = getattr(found, "properties", None)
    if properties and len(properties) == 1:
        ((name, value),) = properties.items()
        return Filter(name, str(value))
    expression = getattr(found, "sql_expression", None) or _EVERYTHING
    if expression == _EVERYTHING:
        return None
    equals = _EQUALS.fullmatch(expression.strip())
    if equals is None:
        return Filter("", expression)
    return Filter(equals[1], equals[2].replace("''", "'"))
