"""Plans what is written for a due entry. No I/O."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from penstock.client.errors import BrokerRefused
from penstock.client.record_sender import ProducerRecord
from penstock.config.delay_route import DelayRoute, RetryRoute
from penstock.errors import ConfigError
from penstock.record.dead_letter import ATTEMPT
from penstock.record.record import Record
from penstock.retry.partition import DelayPartition
from penstock.retry.policy import (
    Cancel,
    Dead,
    Recur,
    Verdict,
    WaitUntil,
    dead_headers,
    delivered_headers,
    judge,
    recurring_headers,
)
from penstock.retry.progress import Outcome
from penstock.retry.store.index import DueKind, Entry

log = logging.getLogger(__name__)


@dataclass(slots=True)
class EntryDelivery:
    """What an entry becomes: records to write, and the outcome of its record."""

    entry: Entry
    record: ProducerRecord | None = None
    onward: ProducerRecord | None = None
    """The next record of a schedule."""
    outcome: Outcome = Outcome.DELIVERED
    is_dead: bool = False
    also_cancelled: int | None = None


def deliveries(
    owned: DelayPartition,
    due: Sequence[Entry],
    records: Mapping[int, Record],
    waiting: Collection[int],
    now_ms: int,
    *,
    same: bool,
) -> list[EntryDelivery]:
    """The deliveries of due entries, in order. `waiting`: offsets that wait and can be cancelled.

    A cancellation wins over a record that is due at the same time.
    """
    planned = []
    for entry in due:
        match entry.kind:
            case DueKind.RECORD | DueKind.SCHEDULE | DueKind.DEAD:
                record = records.get(entry.offset)
                if record is not None:
                    delivery = delivery_of(owned, entry, record, now_ms, same=same)
                else:
                    delivery = EntryDelivery(entry)
                    log.warning(
                        "%s: the record at %d was deleted before it was due",
                        owned.partition,
                        entry.offset,
                    )
            case DueKind.SPENT:
                delivery = EntryDelivery(entry)
            case DueKind.CANCELLED:
                delivery = EntryDelivery(entry, outcome=Outcome.CANCELLED)
            case DueKind.CANCEL:
                delivery = EntryDelivery(entry)
                if entry.origin in waiting:
                    delivery.also_cancelled = entry.origin
            case _:
                assert_never(entry.kind)
        planned.append(delivery)
    cancelled = {each.also_cancelled for each in planned}
    return [each for each in planned if each.entry.offset not in cancelled]


def delivery_of(
    owned: DelayPartition, entry: Entry, record: Record, now_ms: int, *, same: bool
) -> EntryDelivery:
    """The delivery of a due record; `same`: it keeps its partition."""
    route, partition = owned.route, owned.partition
    verdict: Verdict
    if entry.kind is DueKind.RECORD and isinstance(route, DelayRoute):
        verdict = WaitUntil(entry.due_ms)  # judged when it arrived
    else:
        verdict = judge(record, partition, route, now_ms)
    if entry.kind is DueKind.DEAD and not isinstance(verdict, Dead):
        # It was too far ahead when it was read, and no longer is: delivery now would be too early.
        verdict = Dead("its due time could not be used when it was read")
    if isinstance(verdict, Dead | Cancel):
        dead = verdict if isinstance(verdict, Dead) else Dead("a cancellation is not delivered")
        return EntryDelivery(entry, letter(owned, record, dead), is_dead=True)
    if isinstance(verdict, WaitUntil) and verdict.due_ms != entry.due_ms:
        verdict = replace(verdict, due_ms=entry.due_ms)  # computed when the record arrived
    target = ProducerRecord(
        route.to,
        record.value,
        record.key,
        delivered_headers(record, partition, verdict),
        partition.partition if same else None,
        record.timestamp,
    )
    if not isinstance(verdict, Recur):
        return EntryDelivery(entry, target)
    try:
        headers = recurring_headers(record, verdict, now_ms)
    except ConfigError as error:
        log.error("%s at %d: the schedule ends: %s", partition, entry.offset, error)
        return EntryDelivery(entry, target)
    onward = ProducerRecord(
        partition.topic, record.value, record.key, headers, partition.partition, now_ms
    )
    return EntryDelivery(entry, target, onward)


def rejected(
    owned: DelayPartition, entry: Entry, record: ProducerRecord, refused: BrokerRefused
) -> ProducerRecord:
    """The dead letter of a record that its target refuses; the due attempt does not count."""
    origin = Record(
        entry.offset, record.timestamp or 0, record.key, record.value, list(record.headers)
    )
    attempt = None
    if isinstance(owned.route, RetryRoute):
        attempt = max(0, int(dict(record.headers).get(ATTEMPT) or b"1") - 1)
    return letter(owned, origin, Dead(f"{record.topic} rejected it: {refused}", attempt))


def letter(owned: DelayPartition, record: Record, dead: Dead) -> ProducerRecord:
    return ProducerRecord(
        owned.route.dead_letters,
        record.value,
        record.key,
        dead_headers(record, owned.partition, owned.route, dead),
        None,
        record.timestamp,
    )
