"""Which records the query has locked, and which of them Spark has processed. No I/O."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.spark.source.share.offset_ranges import OffsetRanges
from penstock.types import TopicPartition, Uuid

Records = Mapping[TopicPartition, OffsetRanges]
NONE: Final = OffsetRanges()
MAX_LOCKS: Final = 10_000
"""The largest `share.partition.max.record.locks` that brokers allow."""


class IdentifiedRecords(NamedTuple):
    """Records of one micro-batch, and the ids of their topics when they were locked."""

    records: Records
    ids: Mapping[str, Uuid]


class HeldRecords:
    """A record is *locked* from its acquisition until it is accepted or its lock is lost, and
    *finished* from the end of its micro-batch until it is accepted.

    A finished record whose lock was lost is delivered again. It is then accepted without being
    processed twice.
    """

    def __init__(self) -> None:
        self.ids: dict[str, Uuid] = {}
        """Ids of the topics: an earlier topic may have had the same name."""
        self._locked: dict[TopicPartition, OffsetRanges] = {}
        self._finished: dict[TopicPartition, OffsetRanges] = {}
        self._seen: dict[TopicPartition, int] = {}
        """The end of all offsets ever acquired."""

    def identify(self, topic: str, topic_id: Uuid) -> bool:
        """Returns whether the topic was recreated; if so, forgets records of the former one."""
        is_other = self.ids.get(topic, topic_id) != topic_id
        if is_other:
            self._forget(topic)
        self.ids[topic] = topic_id
        return is_other

    def acquired(self, tp: TopicPartition, records: OffsetRanges) -> None:
        if records:
            self._locked[tp] = self._locked.get(tp, NONE) | records
            self._seen[tp] = max(self._seen.get(tp, 0), records.end)

    def finished(self, batch: IdentifiedRecords) -> None:
        """A micro-batch with these records is committed.

        Skips records of a topic that was recreated meanwhile: the records that have their offsets
        now were not processed.
        """
        for tp, each in batch.records.items():
            known = self.ids.get(tp.topic)
            if known is None or batch.ids.get(tp.topic) != known:
                continue
            # A group never goes back further than its maximum number of locks, so older records are
            # done.
            seen = self._seen.get(tp, 0)
            recent = OffsetRanges.of([(seen - MAX_LOCKS, max(seen, each.end))])
            self._finished[tp] = (self._finished.get(tp, NONE) | each) & recent

    def accepted(self, tp: TopicPartition, records: OffsetRanges) -> None:
        """The broker has acknowledged that these are accepted."""
        self.lost(tp, records)
        self._finished[tp] = self._finished.get(tp, NONE) - records

    def lost(self, tp: TopicPartition, records: OffsetRanges) -> None:
        """Their locks ended: the group delivers them again, here or to another member."""
        self._locked[tp] = self._locked.get(tp, NONE) - records

    def _forget(self, topic: str) -> None:
        """Forget a recreated topic: its offsets mean other records now."""
        for held in (self._locked, self._finished, self._seen):
            for tp in [each for each in held if each.topic == topic]:
                del held[tp]

    def locked(self) -> dict[TopicPartition, OffsetRanges]:
        return {tp: each for tp, each in self._locked.items() if each}

    def to_accept(self) -> dict[TopicPartition, OffsetRanges]:
        found = {tp: each & self._finished.get(tp, NONE) for tp, each in self._locked.items()}
        return {tp: each for tp, each in found.items() if each}

    def to_process(
        self, ends: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, OffsetRanges]:
        """Records that the next micro-batch may process; with `ends`, only those before them."""
        found = {tp: each - self._finished.get(tp, NONE) for tp, each in self._locked.items()}
        if ends is not None:
            found = {
                tp: each & OffsetRanges.of([(0, ends.get(tp, 0))]) for tp, each in found.items()
            }
        return {tp: each for tp, each in found.items() if each}


def count(records: Records) -> int:
    return sum(each.count for each in records.values())


def at_most(limit: int | None, records: Records) -> dict[TopicPartition, OffsetRanges]:
    """The first `limit` of the records, with about the same share for each partition."""
    if limit is None or count(records) <= limit:
        return dict(records)
    found, left = {}, limit
    # The smallest come first, so that the others can use what they leave of their share.
    for index, (tp, each) in enumerate(sorted(records.items(), key=lambda pair: pair[1].count)):
        share = min(each.count, -(-left // (len(records) - index)))
        found[tp] = each.part(0, share)
        left -= share
    return {tp: each for tp, each in found.items() if each}
