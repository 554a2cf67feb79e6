"""Decides where a dead letter is redriven to, or why it cannot be. No I/O.

Headers are untrusted input: one that names an internal topic, or the dead-letter topic itself, is
refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.record_sender import ProducerRecord
from penstock.config.delay_route import RESERVED, RetryRoute, Route
from penstock.record.dead_letter import own_headers, without
from penstock.record.record import Record
from penstock.retry.letters import Letter
from penstock.retry.policy import WHEN


@dataclass(frozen=True, slots=True)
class RefusedLetter:
    """The letter stays in its topic."""

    reason: str


def target_of(letter: Letter, to: str | None, routes: Mapping[str, Route]) -> str | RefusedLetter:
    """The topic that the letter goes to: `to`, or its origin.

    The origin of a retry is its retry topic: the letter goes at once to that topic's target, and
    has all its attempts again.
    """
    if to is not None:
        if to.startswith(RESERVED):
            return RefusedLetter(f"{to} is a topic of brokers and services")
        if to == letter.partition.topic:
            return RefusedLetter(f"{to} is the topic of the dead letters itself")
        return to
    origin = None if letter.dead is None else letter.dead.topic
    if origin is None:
        return RefusedLetter("its headers name no origin; name a topic with --to")
    route = routes.get(origin)
    target = route.to if isinstance(route, RetryRoute) else origin
    if target.startswith(RESERVED):
        return RefusedLetter(f"its origin {target} is a topic of brokers and services")
    if target == letter.partition.topic:
        return RefusedLetter("its origin is the topic of the dead letters itself")
    return target


def redriven_record(
    letter: Letter, target: str, partitions: Mapping[str, int]
) -> ProducerRecord | RefusedLetter:
    """The record as it was before it became a dead letter; `partitions`: counts of existing topics.

    It goes to its former partition if the target has as many as the origin, otherwise by its key.
    """
    if target not in partitions:
        return RefusedLetter(f"topic {target} does not exist")
    dead, record = letter.dead, letter.record
    if dead is not None and dead.source == "share" and _is_empty(record):
        return RefusedLetter(
            f"it does not have the record itself, which may still be at {dead.topic}-"
            f"{dead.partition} {dead.offset}: set errors.deadletterqueue.copy.record.enable"
        )
    former = None if dead is None or dead.topic is None else dead.partition
    same = dead is not None and partitions.get(dead.topic or "") == partitions[target]
    return ProducerRecord(
        target,
        record.value,
        record.key,
        without(own_headers(record.headers), WHEN),
        former if same and former is not None and former < partitions[target] else None,
        record.timestamp,
    )


def _is_empty(record: Record) -> bool:
    return record.key is None and record.value is None and not own_headers(record.headers)
