"""A share session with one broker, in terms of topic names and offset ranges. No I/O."""

from collections.abc import Iterable, Mapping

from penstock.client.share_session import FetchLimits, ShareSessionHandler
from penstock.spark.source.share.offset_ranges import OffsetRanges
from penstock.types import TopicIdPartition, TopicPartition, Uuid
from penstock.wire.enums import AcknowledgeType
from penstock.wire.messages.share_acknowledge import AcknowledgementBatch, ShareAcknowledgeRequest
from penstock.wire.messages.share_fetch import ShareFetchRequest


class MemberSession:
    """The partitions of the session, and its next request.

    A session ends with its connection, which releases the locks that the member holds through it.
    """

    def __init__(self, session: ShareSessionHandler, ids: Mapping[str, Uuid]) -> None:
        self._session, self._ids = session, ids
        self.partitions: frozenset[TopicPartition] = frozenset()
        """Partitions where it may have locked records, even if others read them by now."""

    def fetch(self, wanted: Iterable[TopicPartition], limits: FetchLimits) -> ShareFetchRequest:
        now = frozenset(wanted)
        self.partitions |= now
        return self._session.fetch(map(self._by_id, now), limits)

    def forget(self, moved: Iterable[TopicPartition]) -> None:
        """Another broker leads them."""
        self.partitions -= frozenset(moved)

    def acknowledge(
        self, kind: AcknowledgeType, records: Mapping[TopicPartition, OffsetRanges]
    ) -> ShareAcknowledgeRequest:
        """Acknowledge all these records in the same way."""
        return self._session.acknowledge(
            {
                self._by_id(tp): [
                    AcknowledgementBatch(start, end - 1, [kind]) for start, end in each
                ]
                for tp, each in records.items()
            },
            renews=kind is AcknowledgeType.RENEW,
        )

    def _by_id(self, partition: TopicPartition) -> TopicIdPartition:
        return TopicIdPartition(self._ids[partition.topic], partition.partition)
