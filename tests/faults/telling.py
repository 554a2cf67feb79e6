"""Converts the output of Kafka's VerifiableProducer and VerifiableConsumer to a history. Pure.

The Go program `witness` prints the same, and some of what they leave out: generations, leader
epochs, and when a commit was requested.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from faults.history import Accepted, Assigned, Committed, Given, MemberEvent, Polled, Queue, Sent

Event = dict[str, Any]


def events(lines: Iterable[str]) -> Iterator[Event]:
    """The JSON objects among the lines; other lines are a client's log."""
    for line in lines:
        if line.startswith("{"):
            yield json.loads(line)


def sent(reported: Iterable[Event], prefix: str) -> list[Sent]:
    """The records in the order of sending, which is the order of the numbers in their values.

    The outcome of a record without a report is unknown, as that of a failed one.
    """
    found = {
        _number(each["value"], prefix): Sent(
            each["value"],
            each.get("partition", -1),
            each["offset"] if each["name"] == "producer_send_success" else None,
        )
        for each in reported
        if each["name"] in {"producer_send_success", "producer_send_error"}
    }
    return [found[number] for number in sorted(found)]


def _number(value: str, prefix: str) -> int:
    return int(value.removeprefix(f"{prefix}."))


def polled(reported: Iterable[Event]) -> list[Polled]:
    return [_polled(each) for each in reported if each["name"] == "record_data"]


def _polled(event: Event) -> Polled:
    place = event["partition"], event["offset"]
    return Polled(*place, event["value"], event.get("leader_epoch", -1))


def member_events(reported: Iterable[Event]) -> list[MemberEvent]:
    """The events of a group member, in order: what it gets and what it loses."""
    found: list[MemberEvent] = []
    held: frozenset[int] = frozenset()
    before_ms = 0
    for each in reported:
        generation, at_ms = each.get("generation"), each["timestamp"]
        if each["name"] == "partitions_assigned":
            held |= _partitions(each)
            found.append(Assigned(held, at_ms, generation))
        elif each["name"] == "partitions_revoked":
            held -= _partitions(each)
        elif each["name"] == "record_data":
            found.append(_polled(each))
        elif each["name"] == "offsets_committed" and each["success"]:
            # Kafka's tool commits after it has printed what it read, and waits for the response.
            asked_ms = each.get("asked", before_ms)
            found += [
                Committed(part["partition"], part["offset"], asked_ms, at_ms, generation)
                for part in each["offsets"]
            ]
        before_ms = at_ms
    return found


def queue_events(member: str, reported: Iterable[Event]) -> Queue:
    """What a member of a share group got, and what it accepted or tried to accept."""
    queue = Queue()
    for each in reported:
        at_ms = each["timestamp"]
        if each["name"] == "record_data":
            place = each["partition"], each["offset"]
            queue.given.append(Given(member, *place, each["value"], at_ms))
        elif each["name"] == "offsets_acknowledged":
            acknowledged = queue.accepted if each["success"] else queue.refused
            acknowledged += [
                Accepted(member, part["partition"], offset, at_ms)
                for part in each["partitions"]
                for offset in part["offsets"]
            ]
    return queue


def _partitions(event: Event) -> frozenset[int]:
    return frozenset(part["partition"] for part in event["partitions"])
