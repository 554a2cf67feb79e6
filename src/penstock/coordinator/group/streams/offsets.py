"""Offsets of a streams group: who may commit and fetch them."""

from collections.abc import Iterable

from penstock.coordinator.group.consumer.errors import NotServed, StaleMemberEpoch
from penstock.coordinator.group.consumer.offsets import OffsetReader
from penstock.coordinator.group.errors import IllegalGeneration, UnknownMemberId
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.member import StreamsGroupMember
from penstock.coordinator.group.streams.task import TaskId
from penstock.coordinator.group.streams.topology import sources
from penstock.types import TopicPartition


def check_streams(
    group: StreamsGroup,
    reader: OffsetReader,
    partitions: Iterable[TopicPartition] = (),
    *,
    members_only: bool = False,
) -> None:
    """Refuse a member with another epoch; with `members_only`, also non-members while there are
    members.

    A commit of an older epoch is accepted for tasks that the member has had since (KIP-1251):
    epochs move on while it commits.
    """
    is_member = reader.epoch >= 0 or reader.member_id
    if not is_member and not (members_only and group.members):
        return
    if reader.epoch < 0 and not group.members:
        return
    member = group.members.get(reader.member_id)
    if member is None:
        raise UnknownMemberId(f"Member {reader.member_id} is not a member of group {group.id}.")
    if member.is_classic:
        if reader.epoch != member.epoch:
            raise IllegalGeneration(f"{member.id} is at generation {member.epoch}")
        return
    if not reader.knows_epochs:
        raise NotServed(
            "OffsetCommit version 9 or above must be used by members using the streams group "
            "protocol"
        )
    if reader.epoch == member.epoch:
        return
    listed = list(partitions)
    if reader.epoch > member.epoch or not listed:
        raise StaleMemberEpoch(
            f"The received member epoch {reader.epoch} does not match the expected member epoch "
            f"{member.epoch}."
        )
    _check_tasks(group, member, reader.epoch, listed)


def _check_tasks(
    group: StreamsGroup,
    member: StreamsGroupMember,
    epoch: int,
    partitions: Iterable[TopicPartition],
) -> None:
    topology = group.topology
    read = {
        name: each.subtopology_id
        for each in (() if topology is None else topology.subtopologies)
        for name in sources(each)
    }
    for topic, partition in partitions:
        if topic not in read:
            raise StaleMemberEpoch(f"Topic {topic} is not in the topology.")
        task = TaskId(read[topic], partition)
        since = member.epochs.get(task)
        if since is None:
            raise StaleMemberEpoch(
                f"Task {task.subtopology}-{partition} is not assigned or pending revocation for "
                "member."
            )
        if epoch < since:
            raise StaleMemberEpoch(
                f"Received member epoch {epoch} is older than assignment epoch {since} for task "
                f"{task.subtopology}-{partition}."
            )
