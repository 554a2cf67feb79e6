"""The client's side of a share session with one broker (KIP-932), and its requests. No I/O."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from penstock.types import TopicIdPartition, Uuid
from penstock.wire.enums import AcknowledgeType
from penstock.wire.messages import share_acknowledge as acknowledging
from penstock.wire.messages import share_fetch as fetching

LAST_EPOCH: Final = 2**31 - 1
FINAL_EPOCH: Final = -1
FETCH_BYTES: Final = 50 * 1024 * 1024
RECORD_LIMIT: Final = 1


class FetchLimits(NamedTuple):
    """How much a fetch may return, and how long it waits for a record."""

    records: int
    wait_ms: int
    bytes: int = FETCH_BYTES
    is_strict: bool = False
    """Never more than `records`; otherwise whole batches are locked (KIP-1206)."""


Acknowledged: TypeAlias = Mapping[TopicIdPartition, list[acknowledging.AcknowledgementBatch]]
"""Acknowledgements by partition."""


class ShareSessionHandler:
    """Numbers a member's requests to one broker; closing the session releases its locks."""

    def __init__(self, group: str, member: str) -> None:
        self._group, self._member = group, member
        self._epoch = 0
        self.partitions: frozenset[TopicIdPartition] = frozenset()

    def fetch(
        self, partitions: Iterable[TopicIdPartition], limits: FetchLimits
    ) -> fetching.ShareFetchRequest:
        """The next fetch; names only partitions that were added to the session or left it."""
        now = frozenset(partitions)
        forgotten, added = self.partitions - now, now - self.partitions
        self.partitions = now
        return fetching.ShareFetchRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=self._numbered(),
            max_wait_ms=limits.wait_ms,
            min_bytes=1,
            max_bytes=limits.bytes,
            max_records=limits.records,
            batch_size=limits.records,
            share_acquire_mode=RECORD_LIMIT if limits.is_strict else 0,
            topics=[
                fetching.FetchTopic(topic, [fetching.FetchPartition(each) for each in indexes])
                for topic, indexes in _by_topic(added).items()
            ],
            forgotten_topics_data=[
                fetching.ForgottenTopic(topic, indexes)
                for topic, indexes in _by_topic(forgotten).items()
            ],
        )

    def acknowledge(
        self, records: Acknowledged, *, renews: bool = False, is_last: bool = False
    ) -> acknowledging.ShareAcknowledgeRequest:
        """The next request with acknowledgements; the last one ends the session."""
        return acknowledging.ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=FINAL_EPOCH if is_last else self._numbered(),
            is_renew_ack=renews,
            topics=[
                acknowledging.AcknowledgeTopic(
                    topic,
                    [
                        acknowledging.AcknowledgePartition(
                            each, records[TopicIdPartition(topic, each)]
                        )
                        for each in indexes
                    ],
                )
                for topic, indexes in _by_topic(records).items()
            ],
        )

    def _numbered(self) -> int:
        """The next session epoch. After the largest comes 1, since 0 opens a session."""
        epoch = self._epoch
        self._epoch = 1 if epoch == LAST_EPOCH else epoch + 1
        return epoch


def batches(decided: Mapping[int, AcknowledgeType]) -> list[acknowledging.AcknowledgementBatch]:
    """Runs of neighbouring offsets with the same type, in the order that brokers require."""
    runs: list[tuple[int, int, AcknowledgeType]] = []
    for offset in sorted(decided):
        kind = decided[offset]
        if runs and runs[-1][1:] == (offset - 1, kind):
            runs[-1] = runs[-1][0], offset, kind
        else:
            runs.append((offset, offset, kind))
    return [acknowledging.AcknowledgementBatch(first, last, [kind]) for first, last, kind in runs]


def _by_topic(partitions: Iterable[TopicIdPartition]) -> dict[Uuid, list[int]]:
    found: dict[Uuid, list[int]] = {}
    for each in sorted(partitions):
        found.setdefault(each.topic_id, []).append(each.partition)
    return found
