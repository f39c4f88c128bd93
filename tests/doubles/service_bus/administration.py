"""The management of entities: HTTP with Atom entries, as the administration client speaks it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from tests.doubles.service_bus.broker import MINUTE, WEEK, Queue, Rule, Subscription, Topic
from tests.doubles.service_bus.faults import Fault

if TYPE_CHECKING:
    import asyncio

    from tests.doubles.service_bus.broker import Broker
    from tests.doubles.service_bus.faults import Faults

_SB = "{http://schemas.microsoft.com/netservices/2010/10/servicebus/connect}"
_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
_COUNTS = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
_SQL = re.compile(r"(?:sys\.|user\.)?\[?(\w+)\]? = '((?:[^']|'')*)'")
_LENGTH = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


class Refused(Exception):
    """A status and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Place(NamedTuple):
    """What a path is about; what it does not name is empty."""

    topic: str
    subscription: str | None = None
    rule: str | None = None
    lists: str | None = None
    """Whether all of a kind are asked for."""


async def serve(
    broker: Broker, faults: Faults, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one client's requests."""
    while True:
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        first = b""
        method, target, _ = head.split(" ", 2)
        length = re.search(r"(?im)^content-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        if re.search(r"(?im)^expect: *100", head):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            _check_rights(faults)
            place = _place(target)
            status, text = 200 if method != "PUT" else 201, _VERBS[method](broker, place, body)
        except Refused as refused:
            status, text = refused.status, f"<Error><Code>{refused.status}</Code><Detail>{refused}</Detail></Error>"
        data = text.encode()
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/atom+xml\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()


def _check_rights(faults: Faults) -> None:
    if faults.strikes(Fault.DENY_MANAGEMENT):
        raise Refused(401, "Manage,EntityRead claims required for this operation.")


def _place(target: str) -> Place:
    parts = [unquote(part) for part in urlsplit(target).path.strip("/").split("/")]
    lowered = [part.lower() for part in parts]
    if "subscriptions" not in lowered:
        return Place("/".join(parts))
    at = lowered.index("subscriptions")
    topic, rest = "/".join(parts[:at]), parts[at + 1 :]
    match rest:
        case []:
            return Place(topic, lists="subscriptions")
        case [subscription]:
            return Place(topic, subscription)
        case [subscription, _]:
            return Place(topic, subscription, lists="rules")
        case [subscription, _, rule]:
            return Place(topic, subscription, rule)
        case _:
            raise Refused(400, target)


def _get(broker: Broker, place: Place, _: bytes) -> str:
    topic = broker.topic(place.topic)
    if topic is None:
        if place.subscription is None and place.lists is None:
            return _feed([])
        raise Refused(404, f"there is no topic {place.topic}")
    if place.lists == "subscriptions":
        return _feed([_subscription_entry(each) for each in topic.subscriptions.values()])
    if place.subscription is None:
        return _topic_entry(topic)
    subscription = broker.subscription(place.topic, place.subscription)
    if subscription is None:
        raise Refused(404, f"there is no subscription {place.subscription}")
    if place.lists == "rules":
        return _feed([_rule_entry(rule) for rule in subscription.rules.values()])
    if place.rule is None:
        return _subscription_entry(subscription)
    if place.rule not in subscription.rules:
        raise Refused(404, f"there is no rule {place.rule}")
    return _rule_entry(subscription.rules[place.rule])


def _put(broker: Broker, place: Place, body: bytes) -> str:
    wanted = ET.fromstring(body)  # noqa: S314 - our own client's
    topic = broker.topic(place.topic)
    if place.subscription is None:
        topic = broker.topics.setdefault(place.topic.lower(), Topic(place.topic))
        topic.time_to_live = _length(wanted, "DefaultMessageTimeToLive", WEEK)
        topic.duplicate_window = _length(wanted, "DuplicateDetectionHistoryTimeWindow", 10 * MINUTE)
        return _topic_entry(topic)
    if topic is None:
        raise Refused(404, f"there is no topic {place.topic}")
    subscription = topic.subscriptions.get(place.subscription.lower())
    if place.rule is None:
        if subscription is None:
            queue = Queue(dead=Queue(MINUTE))
            subscription = Subscription(place.subscription, queue, {"$Default": _rule("$Default", wanted)})
            topic.subscriptions[place.subscription.lower()] = subscription
        subscription.queue.lock_ms = _length(wanted, "LockDuration", MINUTE)
        subscription.queue.max_deliveries = int(wanted.findtext(f".//{_SB}MaxDeliveryCount") or 10)
        return _subscription_entry(subscription)
    if subscription is None:
        raise Refused(404, f"there is no subscription {place.subscription}")
    subscription.rules[place.rule] = _rule(place.rule, wanted)
    return _rule_entry(subscription.rules[place.rule])


def _delete(broker: Broker, place: Place, _: bytes) -> str:
    topic = broker.topic(place.topic)
    if topic is None or place.subscription is None:
        raise Refused(404, f"there is no topic {place.topic}")
    if place.rule is not None:
        topic.subscriptions[place.subscription.lower()].rules.pop(place.rule, None)
    elif topic.subscriptions.pop(place.subscription.lower(), None) is None:
        raise Refused(404, f"there is no subscription {place.subscription}")
    return ""


_VERBS = {"GET": _get, "PUT": _put, "DELETE": _delete}


def _rule(name: str, wanted: Any) -> Rule:
    expression = wanted.findtext(f".//{_SB}SqlExpression") or "1=1"
    if expression == "1=1":
        return Rule(name)
    found = _SQL.fullmatch(expression)
    if found is None:
        raise Refused(400, f"no filter can be made of {expression}")
    return Rule(name, expression, found[1], found[2].replace("''", "'"))


def _feed(entries: list[str]) -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{"".join(entries)}</feed>'


def _entry(name: str, content: str) -> str:
    title = f'<title type="text">{escape(name)}</title>'
    return (
        f'<entry xmlns="http://www.w3.org/2005/Atom">{title}<content type="application/xml">{content}</content></entry>'
    )


def _described(kind: str, inner: str) -> str:
    schema = 'xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'
    return f'<{kind} xmlns="{_SB[1:-1]}" {schema}>{inner}</{kind}>'


def _topic_entry(topic: Topic) -> str:
    inner = (
        f"<DefaultMessageTimeToLive>{_written(topic.time_to_live)}</DefaultMessageTimeToLive>"
        "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>"
        f"<DuplicateDetectionHistoryTimeWindow>{_written(topic.duplicate_window)}</DuplicateDetectionHistoryTimeWindow>"
    )
    return _entry(topic.name, _described("TopicDescription", inner))


def _subscription_entry(subscription: Subscription) -> str:
    queue = subscription.queue
    count, _ = queue.counts()
    dead = queue.dead.counts()[0] if queue.dead else 0
    inner = (
        f"<LockDuration>{_written(queue.lock_ms)}</LockDuration>"
        "<DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration>"
        f"<MessageCount>{count + dead}</MessageCount><MaxDeliveryCount>{queue.max_deliveries}</MaxDeliveryCount>"
        f'<CountDetails xmlns:c="{_COUNTS}"><c:ActiveMessageCount>{count}</c:ActiveMessageCount>'
        f"<c:DeadLetterMessageCount>{dead}</c:DeadLetterMessageCount></CountDetails>"
    )
    return _entry(subscription.name, _described("SubscriptionDescription", inner))


def _rule_entry(rule: Rule) -> str:
    kind = "TrueFilter" if rule.property is None else "SqlFilter"
    expression = (
        "1=1" if rule.property is None else f"{rule.property} = '{(rule.value or '').replace(chr(39), chr(39) * 2)}'"
    )
    inner = (
        f'<Filter i:type="{kind}"><SqlExpression>{escape(expression)}</SqlExpression></Filter>'
        f'<Action i:type="EmptyRuleAction"/><Name>{escape(rule.name)}</Name>'
    )
    return _entry(rule.name, _described("RuleDescription", inner))


def _length(wanted: Any, name: str, otherwise: int) -> int:
    text = wanted.findtext(f".//{_SB}{name}")
    found = _LENGTH.fullmatch(text) if text else None
    if found is None:
        return otherwise
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds() * 1000)


def _written(milliseconds: int) -> str:
    return f"PT{milliseconds / 1000:.3f}S"
