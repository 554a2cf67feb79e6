"""What Kafka's VerifiableProducer and VerifiableConsumer print, as parts of a history. Pure.

The Go program `witness` prints the same, and some of what they leave out: generations, leader
epochs, and when a commit was asked for.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from faults.history import Assigned, Committed, MemberEvent, Polled, Sent

Event = dict[str, Any]


def events(lines: Iterable[str]) -> Iterator[Event]:
    """The objects among the lines; the others are a client's log."""
    for line in lines:
        if line.startswith("{"):
            yield json.loads(line)


def sent(told: Iterable[Event], prefix: str) -> list[Sent]:
    """In the order of sending, which the numbers in the values are.

    Of what was sent and not told of nothing is known, as of what failed.
    """
    found = {
        _number(each["value"], prefix): Sent(
            each["value"],
            each.get("partition", -1),
            each["offset"] if each["name"] == "producer_send_success" else None,
        )
        for each in told
        if each["name"] in {"producer_send_success", "producer_send_error"}
    }
    return [found[number] for number in sorted(found)]


def _number(value: str, prefix: str) -> int:
    return int(value.removeprefix(f"{prefix}."))


def polled(told: Iterable[Event]) -> list[Polled]:
    return [_polled(each) for each in told if each["name"] == "record_data"]


def _polled(event: Event) -> Polled:
    place = event["partition"], event["offset"]
    return Polled(*place, event["value"], event.get("leader_epoch", -1))


def member_events(told: Iterable[Event]) -> list[MemberEvent]:
    """What a member of a group heard, in order. It hears what it gets and what it loses."""
    found: list[MemberEvent] = []
    held: frozenset[int] = frozenset()
    before_ms = 0
    for each in told:
        generation, at_ms = each.get("generation"), each["timestamp"]
        if each["name"] == "partitions_assigned":
            held |= _partitions(each)
            found.append(Assigned(held, at_ms, generation))
        elif each["name"] == "partitions_revoked":
            held -= _partitions(each)
        elif each["name"] == "record_data":
            found.append(_polled(each))
        elif each["name"] == "offsets_committed" and each["success"]:
            # Kafka's tool asks after it has told of what it read, and waits for the answer.
            asked_ms = each.get("asked", before_ms)
            found += [
                Committed(part["partition"], part["offset"], asked_ms, at_ms, generation)
                for part in each["offsets"]
            ]
        before_ms = at_ms
    return found


def _partitions(event: Event) -> frozenset[int]:
    return frozenset(part["partition"] for part in event["partitions"])
