"""Who may commit and read the offsets of a group of the consumer protocol; when they go."""

from typing import Self

import msgspec

from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import checked_member
from penstock.coordinator.group.consumer.refusal import NotServed, StaleMemberEpoch
from penstock.coordinator.group.offsets import Committer, Offsets
from penstock.coordinator.group.refusal import IllegalGeneration
from penstock.types import TopicPartition


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks; an administrator is no member and has no epoch."""

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
            # Whoever has no generation speaks of none: any version will do. A transaction's
            # commits are a request of their own, whose versions tell nothing of it.
            knows_epochs=committer.knows_epochs
            or committer.is_transactional
            or committer.generation < 0,
        )


ADMINISTRATOR = Reader()


def check_consumer(group: ConsumerGroup, reader: Reader, *, members_only: bool = False) -> None:
    """Refuse members of another epoch; and on demand, while there are members, everybody else."""
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
        raise NotServed("members of the consumer protocol commit by version 9 or later")
    if reader.epoch != member.epoch:
        raise StaleMemberEpoch(f"{member.id} is at epoch {member.epoch}, not {reader.epoch}")


def forgotten(
    group: ConsumerGroup, offsets: Offsets, now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """The partitions that nobody reads and nobody has committed for the retention time."""
    read = group.subscribed_topics
    return [
        where
        for where, committed in offsets.items()
        if where.topic not in read
        and (
            now_ms >= committed.expire_ms
            if committed.expire_ms >= 0
            else now_ms - committed.commit_ms >= retention_ms
        )
    ]
