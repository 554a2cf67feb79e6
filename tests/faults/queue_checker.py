"""Decides whether a share group and a delay topic kept their promises. Pure, like `checker`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter

from faults.history import Delayed, Polled, Queue
from faults.violation import Violation

LATE_MS = 2000
"""A member may print a record so long after it got it, and another accept it meanwhile."""
EARLY_MS = 1


def queue_violations(queue: Queue, final: Sequence[Polled]) -> list[Violation]:
    """Every promise of a share group that the history breaks."""
    return [
        *never_given(queue, final),
        *given_wrongly(queue, final),
        *given_again(queue),
        *accepted_by_others(queue, final),
    ]


def never_given(queue: Queue, final: Sequence[Polled]) -> Iterator[Violation]:
    """Each record must be given to some member, and accepted once."""
    by_time = attrgetter("at_ms")
    given = {(each.partition, each.offset): each for each in sorted(queue.given, key=by_time)}
    accepted = {(each.partition, each.offset) for each in queue.accepted}
    refused = {(each.partition, each.offset): each for each in sorted(queue.refused, key=by_time)}
    for each in final:
        place = each.partition, each.offset
        if place not in given:
            yield Violation("share-lost", f"no member got {each}")
        elif place not in accepted:
            last = refused.get(place)
            # A failed acknowledgement may be stored nevertheless: then the record does not return.
            if last is None or last.at_ms < given[place].at_ms:
                yield Violation("share-unaccepted", f"no member could accept {each}")


def given_wrongly(queue: Queue, final: Sequence[Polled]) -> Iterator[Violation]:
    """No member gets a record that nobody else can read, such as one of an aborted transaction."""
    there = {(each.partition, each.offset): each.value for each in final}
    for each in queue.given:
        value = there.get((each.partition, each.offset))
        if value is None:
            yield Violation("share-phantom", f"{each} is not there")
        elif value != each.value:
            yield Violation("share-other", f"{each} is {value}")


def given_again(queue: Queue) -> Iterator[Violation]:
    """A record that was accepted is not given to anybody any more."""
    accepted_ms: dict[tuple[int, int], int] = {}
    for accepted in queue.accepted:
        place = accepted.partition, accepted.offset
        accepted_ms[place] = min(accepted.at_ms, accepted_ms.get(place, accepted.at_ms))
    for each in queue.given:
        at_ms = accepted_ms.get((each.partition, each.offset))
        if at_ms is not None and each.at_ms > at_ms + LATE_MS:
            yield Violation("share-again", f"{each} was accepted at {at_ms}")


def accepted_by_others(queue: Queue, final: Sequence[Polled]) -> Iterator[Violation]:
    """Only a member that got a record can accept it, and only one member."""
    # Clients acknowledge gaps, too: offsets of markers and of aborted records.
    there = {(each.partition, each.offset) for each in final}
    accepted = [each for each in queue.accepted if (each.partition, each.offset) in there]
    got = {(each.member, each.partition, each.offset) for each in queue.given}
    for each in accepted:
        if (each.member, each.partition, each.offset) not in got:
            yield Violation("share-stranger", f"{each}: it did not get that")
    times = Counter((each.partition, each.offset) for each in accepted)
    for (partition, offset), count in times.items():
        if count > 1:
            yield Violation("share-accepted-twice", f"{partition}@{offset}: {count} times")


def delay_violations(delayed: Delayed) -> Iterator[Violation]:
    """Each acknowledged record arrives once, not before it is due."""
    times = Counter(each.value for each in delayed.arrived)
    for value in delayed.due_ms.keys() - delayed.unknown:
        if not times[value]:
            yield Violation("delay-lost", f"{value} did not arrive")
    for value, count in times.items():
        if value not in delayed.due_ms:
            yield Violation("delay-other", f"{value} was never sent")
        elif count > 1:
            yield Violation("delay-twice", f"{value} arrived {count} times")
    for each in delayed.arrived:
        due_ms = delayed.due_ms.get(each.value)
        if due_ms is not None and each.at_ms < due_ms - EARLY_MS:
            yield Violation("delay-early", f"{each} was due at {due_ms}")
