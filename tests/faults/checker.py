"""Decides whether a history keeps Kafka's promises. Pure; named as in Jepsen's Kafka tests."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from faults.group_checker import group_violations
from faults.history import Group, History, Polled, Queue, Sent, by_partition
from faults.queue_checker import delay_violations, queue_violations
from faults.violation import Violation


def violations(history: History) -> list[Violation]:
    """Every promise that the history breaks; an empty list is the only good result."""
    return [
        *lost_writes(history),
        *vanished(history),
        *duplicates(history),
        *inconsistent_offsets(history),
        *polls_out_of_order(history),
        *poll_skips(history),
        *sends_out_of_order(history),
        *torn_transactions(history),
        *epochs_going_back(history),
        *(each for group in history.groups.values() for each in _of_group(group, history)),
        *(each for queue in history.queues.values() for each in _of_queue(queue, history)),
        *(each for delayed in history.delayed for each in delay_violations(delayed)),
    ]


def lost_writes(history: History) -> Iterator[Violation]:
    """An acknowledged record is missing at the end, or is not where it was acknowledged to be."""
    there = {(each.partition, each.offset): each.value for each in history.final}
    for sent in _acked(history):
        found = there.get((sent.partition, sent.offset or 0))
        if found != sent.value:
            at = f"{sent.partition}@{sent.offset}"
            yield Violation("lost-write", f"{sent.value} was acknowledged at {at}: found {found}")


def vanished(history: History) -> Iterator[Violation]:
    """A record that some consumer read is missing at the end: what was once readable must
    stay so.
    """
    there = {(each.partition, each.offset) for each in history.final}
    for reader, each in _reads(history):
        if (each.partition, each.offset) not in there:
            yield Violation("vanished", f"{reader} read {each}")


def duplicates(history: History) -> Iterator[Violation]:
    """A record that an idempotent producer sent once is there twice."""
    for value, count in Counter(each.value for each in history.final).items():
        if count > 1:
            yield Violation("duplicate", f"{value} is there {count} times")


def inconsistent_offsets(history: History) -> Iterator[Violation]:
    """One offset has several values, among all reads and acknowledgements."""
    values: dict[tuple[int, int], set[str]] = defaultdict(set)
    for each in _all_polled(history):
        values[each.partition, each.offset].add(each.value)
    for sent in _acked(history):
        values[sent.partition, sent.offset or 0].add(sent.value)
    for (partition, offset), found in values.items():
        if len(found) > 1:
            yield Violation("inconsistent-offsets", f"{partition}@{offset}: {sorted(found)}")


def polls_out_of_order(history: History) -> Iterator[Violation]:
    """A consumer that did not seek went back, or got a record again."""
    for reader, polled in history.polled.items():
        for records in by_partition(polled).values():
            for before, after in pairwise(records):
                if after.offset <= before.offset:
                    yield Violation("nonmonotonic-poll", f"{reader}: {before}, then {after}")


def poll_skips(history: History) -> Iterator[Violation]:
    """A consumer skipped a record that it should have got."""
    final = by_partition(history.final)
    for reader, polled in history.polled.items():
        for partition, records in by_partition(polled).items():
            got = {each.offset for each in records}
            last = max(got)
            for each in final.get(partition, ()):
                if each.offset <= last and each.offset not in got:
                    yield Violation("poll-skip", f"{reader} did not get {each}")


def sends_out_of_order(history: History) -> Iterator[Violation]:
    """In one partition, a later record of a producer is stored before an earlier one."""
    for producer, sent in history.sent.items():
        last: dict[int, int] = {}
        for each in sent:
            if each.offset is not None:
                if each.offset <= last.get(each.partition, -1):
                    yield Violation("nonmonotonic-send", f"{producer}: {each}")
                last[each.partition] = each.offset


def torn_transactions(history: History) -> Iterator[Violation]:
    """A committed transaction must be there completely, an aborted one not at all, and one with
    unknown outcome either way.
    """
    there = {each.value for each in _all_polled(history)}
    final = {each.value for each in history.final}
    for each in history.transactions:
        found = [value for value in each.values if value in final]
        if each.outcome == "aborted" and there.intersection(each.values):
            yield Violation("aborted-read", f"{each.values} was aborted")
        elif each.outcome == "committed" and len(found) < len(each.values):
            yield Violation("lost-transaction", f"of {each.values} there is {found}")
        elif 0 < len(found) < len(each.values):
            yield Violation("torn-transaction", f"of {each.values} there is {found}")


def epochs_going_back(history: History) -> Iterator[Violation]:
    """Later records of a partition were written by an earlier leader."""
    for records in by_partition(history.final).values():
        for before, after in pairwise(sorted(records, key=lambda each: each.offset)):
            if after.leader_epoch < before.leader_epoch:
                yield Violation("leader-epoch-back", f"{before}, then {after}")


def _of_group(group: Group, history: History) -> list[Violation]:
    return group_violations(group, history.final)


def _of_queue(queue: Queue, history: History) -> list[Violation]:
    return queue_violations(queue, history.final)


def _acked(history: History) -> list[Sent]:
    return [each for sent in history.sent.values() for each in sent if each.offset is not None]


def _all_polled(history: History) -> list[Polled]:
    return [*history.final, *(each for _, each in _reads(history))]


def _reads(history: History) -> Iterator[tuple[str, Polled]]:
    """All reads, with a group or without."""
    for reader, polled in history.polled.items():
        for each in polled:
            yield reader, each
    for group in history.groups.values():
        for member, events in group.members.items():
            for event in events:
                if isinstance(event, Polled):
                    yield member, event
