"""What a step costs a namespace, and so how many steps a second its tier allows.

On the Standard tier a namespace has credits: so many operations a second, all of its topics together. Sending a message
and receiving one are an operation each, and so is each filter of a subscription that looks at what was sent, whether it
lets it through or not. Sending in batches saves round trips and no credits. Premium has no credits: its messaging units
are processors of its own, whose pace has to be measured.
"""

from __future__ import annotations

from datetime import timedelta

STANDARD_CREDITS = 1000
"""A second, for a namespace; more are answered with "server busy" (50009) and are to be tried again."""

_SENT, _RECEIVED = 1, 1
_ORCHESTRATORS_FILTER = 1


def credits_of_message(filters: int) -> int:
    """To send a message to a topic whose subscriptions have so many filters, and to receive it once."""
    return _SENT + filters + _RECEIVED


def credits_of_step(workers: int) -> int:
    """A job, which each worker's filter looks at, and its result."""
    return credits_of_message(workers) + credits_of_message(_ORCHESTRATORS_FILTER)


def steps_per_second(workers: int, credits_per_second: int = STANDARD_CREDITS) -> float:
    """The most that a namespace lets through, were there nothing else: retries, polls and rollbacks are steps too."""
    return credits_per_second / credits_of_step(workers)


def shortest_wave(members: int, steps: int, workers: int, credits_per_second: int = STANDARD_CREDITS) -> timedelta:
    """How long a wave takes at the least, however quick workers and tenant are."""
    return timedelta(seconds=members * steps / steps_per_second(workers, credits_per_second))
