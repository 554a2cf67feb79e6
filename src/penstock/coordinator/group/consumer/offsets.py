"""Offsets of a group of the consumer protocol: who may commit and fetch them; their expiry."""

from typing import Self

import msgspec

from penstock.coordinator.group.consumer.errors import NotServed, StaleMemberEpoch
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import checked_member
from penstock.coordinator.group.errors import IllegalGeneration
from penstock.coordinator.group.offsets import Committer, Offsets
from penstock.types import TopicPartition


class OffsetReader(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a fetch or commit; an administrator is not a member and has no epoch."""

    member_id: str = ""
    instance_id: str | None = None
    epoch: int = -1
    knows_epochs: bool = True

    @classmethod
    def of(cls, committer: Committer) -> Self:
        return cls(
            member_id=committer.member_id,
            instance_id=committer.instance_id,
            epoch=committer.generation,
            # A sender without a generation may use any version. TxnOffsetCommit is another request,
            # whose version does not tell whether the client knows epochs.
            knows_epochs=committer.knows_epochs
            or committer.is_transactional
            or committer.generation < 0,
        )


ADMINISTRATOR = OffsetReader()


def check_consumer(
    group: ConsumerGroup, reader: OffsetReader, *, members_only: bool = False
) -> None:
    """Refuse a member with another epoch; with `members_only`, also non-members while there are
    members.
    """
    is_member = reader.epoch >= 0 or reader.member_id or reader.instance_id is not None
    if not is_member and not (members_only and group.members):
        return
    if reader.epoch < 0 and not group.members:
        return
    member = checked_member(group, reader.member_id, reader.instance_id)
    if member.classic is not None:
        if reader.epoch != member.epoch:
            raise IllegalGeneration(f"{member.id} is at generation {member.epoch}")
        return
    if not reader.knows_epochs:
        raise NotServed("members of the consumer protocol commit with version 9 or later")
    if reader.epoch != member.epoch:
        raise StaleMemberEpoch(f"{member.id} is at epoch {member.epoch}, not {reader.epoch}")


def expired_consumer_offsets(
    read: frozenset[str], offsets: Offsets, now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """The partitions without a subscriber and without a commit for the retention time.

    `read` are the topics that members subscribe to.
    """
    return [
        topic_partition
        for topic_partition, committed in offsets.items()
        if topic_partition.topic not in read
        and (
            now_ms >= committed.expire_ms
            if committed.expire_ms >= 0
            else now_ms - committed.commit_ms >= retention_ms
        )
    ]
