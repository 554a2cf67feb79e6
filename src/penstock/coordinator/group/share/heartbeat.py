"""ShareGroupHeartbeat: a member joins, stays, gets its assignment, or leaves."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.config.share import ShareConfig
from penstock.config.share_group import ShareGroupConfig
from penstock.coordinator.group.consumer.assignor.subscriber import Subscriber
from penstock.coordinator.group.consumer.errors import FencedMemberEpoch, InvalidHeartbeat
from penstock.coordinator.group.consumer.group import FIRST_EPOCH, Topics
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, Assignment
from penstock.coordinator.group.errors import GroupMaxSizeReached, UnknownMemberId
from penstock.coordinator.group.share.assignor import simple
from penstock.coordinator.group.share.group import ShareGroup, replayed_share
from penstock.coordinator.group.share.member import ShareGroupMember, StateTopic
from penstock.coordinator.group.share.records import (
    ShareGroupRecord,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    state_record,
    target_epoch_record,
    target_record,
)
from penstock.coordinator.result import Now
from penstock.types import Uuid

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
MEMBER_ID_LENGTH = 36
"""The length of a UUID as text. Clients choose their ids."""


class ShareHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A member's heartbeat; None: unchanged since the last one."""

    member_id: str
    epoch: int
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] | None = None


class ShareHeartbeatReply(msgspec.Struct, frozen=True):
    """The reply; `assignment` is None if it has not changed."""

    member_id: str
    epoch: int
    interval_ms: int
    assignment: Assignment | None = None
    without_state: Mapping[Uuid, StateTopic] = {}
    """Partitions that cannot be assigned before they have state."""


class ShareContext(msgspec.Struct, frozen=True):
    """The context of an operation on a share group."""

    config: ShareConfig
    settings: ShareGroupConfig
    topics: Topics
    now: Now


def check(request: ShareHeartbeat) -> None:
    """Refuse a request that is invalid in any group."""
    if not request.member_id:
        raise InvalidHeartbeat("MemberId can't be empty.")
    if len(request.member_id) > MEMBER_ID_LENGTH:
        raise InvalidHeartbeat(f"MemberId is longer than {MEMBER_ID_LENGTH} characters.")
    if request.rack_id == "":
        raise InvalidHeartbeat("RackId can't be empty.")
    if request.epoch == JOIN_EPOCH and not request.topics:
        raise InvalidHeartbeat("SubscribedTopicNames must be set in first request.")
    if request.epoch < LEAVE_EPOCH:
        raise InvalidHeartbeat("MemberEpoch is invalid.")


def new_group(name: str) -> ShareGroup:
    return ShareGroup(name, epoch=FIRST_EPOCH, target_epoch=FIRST_EPOCH)


class ShareGroupDraft:
    """The group as the operation changes it, and the records that make these changes."""

    def __init__(self, group: ShareGroup, context: ShareContext) -> None:
        self.group, self.context = group, context
        self.now_ms = context.now.steady_ms
        self.records: list[ShareGroupRecord] = []

    def write(self, *records: ShareGroupRecord) -> None:
        for record in records:
            after = replayed_share(self.group, record)
            assert after is not None, "an operation writes to a group that exists"
            self.group = after
        self.records += records

    def change(self, **fields: Any) -> None:
        """Change soft state."""
        self.group = msgspec.structs.replace(self.group, **fields)

    def renew_session(self, member_id: str) -> None:
        deadline_ms = self.now_ms + self.context.settings.share_session_timeout_ms
        member = msgspec.structs.replace(self.group.members[member_id], deadline_ms=deadline_ms)
        self.change(members={**self.group.members, member_id: member})

    def bump_epoch(self) -> None:
        """Start a new group epoch: the target assignment has to be computed again."""
        group = self.group
        self.write(epoch_record(group.id, group.epoch + 1, group.hash_of(self.context.topics)))

    def refresh_topics(self) -> None:
        """Notice topics that were created, deleted or extended since the group last looked."""
        topics = self.context.topics
        if self.group.topics_seen is topics:
            return
        self.change(topics_seen=topics)
        ids = {each.id for each in topics.values()}
        kept = {topic: known for topic, known in self.group.initialized.items() if topic in ids}
        if len(kept) < len(self.group.initialized):
            self.write(state_record(self.group.id, kept))
        if self.group.hash_of(topics) != self.group.metadata_hash:
            self.bump_epoch()

    def assign(self) -> None:
        """Compute the target assignment if it is older than the group's epoch and the interval
        since the last one has passed.
        """
        group, topics = self.group, self.context.topics
        interval_ms = self.context.settings.share_assignment_interval_ms
        is_early = group.assigned_ms is not None and self.now_ms < group.assigned_ms + interval_ms
        if group.target_epoch == group.epoch or is_early:
            return
        subscribers = {
            each.id: Subscriber(
                frozenset(topics[name].id for name in each.topics if name in topics),
                group.target.get(each.id, NO_PARTITIONS),
                None,
                each.rack_id,
            )
            for each in group.members.values()
        }
        for member_id, assignment in simple(subscribers, group.assignable()).items():
            if group.target.get(member_id) != assignment:
                self.write(target_record(group.id, member_id, assignment))
        self.write(target_epoch_record(group.id, group.epoch, self.context.now.wall_ms))
        self.change(assigned_ms=self.now_ms)

    def reconcile(self, member_id: str) -> None:
        """Give the member its target assignment at once: no member has to revoke a shared
        partition.
        """
        group = self.group
        member = group.members[member_id]
        target = group.target.get(member_id, NO_PARTITIONS)
        if member.epoch == group.target_epoch and member.assigned == target:
            return
        after = msgspec.structs.replace(
            member, epoch=group.target_epoch, previous_epoch=member.epoch, assigned=target
        )
        self.write(current_record(group.id, after))

    def remove(self, gone: Iterable[str]) -> None:
        for member_id in gone:
            self.write(*member_tombstones(self.group.id, member_id))
        self.bump_epoch()


def heartbeat(draft: ShareGroupDraft, request: ShareHeartbeat) -> ShareHeartbeatReply:
    known = _known(draft.group, request)
    if request.epoch == LEAVE_EPOCH:
        draft.remove([request.member_id])
        return ShareHeartbeatReply(request.member_id, LEAVE_EPOCH, 0)
    most = draft.context.config.group_share_max_size
    if known is None and len(draft.group.members) >= most:
        raise GroupMaxSizeReached(
            f"The share group has reached its maximum capacity of {most} members."
        )
    had = NO_PARTITIONS if known is None else known.assigned
    member = _updated(known or ShareGroupMember(id=request.member_id), request)
    if member != known:
        draft.write(member_record(draft.group.id, member))
    if known is None or known.topics != member.topics:
        draft.bump_epoch()
    draft.refresh_topics()
    draft.assign()
    draft.reconcile(member.id)
    draft.renew_session(member.id)
    member = draft.group.members[member.id]
    is_full = request.epoch == JOIN_EPOCH or request.topics is not None
    return ShareHeartbeatReply(
        member.id,
        member.epoch,
        draft.context.settings.share_heartbeat_interval_ms,
        member.assigned if is_full or member.assigned != had else None,
        draft.group.without_state(draft.context.topics),
    )


def _updated(member: ShareGroupMember, request: ShareHeartbeat) -> ShareGroupMember:
    return msgspec.structs.replace(
        member,
        rack_id=request.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=member.topics if request.topics is None else request.topics,
    )


def _known(group: ShareGroup, request: ShareHeartbeat) -> ShareGroupMember | None:
    member = group.members.get(request.member_id)
    if request.epoch == JOIN_EPOCH:
        return member
    if member is None:
        raise UnknownMemberId(f"Member {request.member_id} is not a member of group {group.id}.")
    if request.epoch > LEAVE_EPOCH and request.epoch not in {member.epoch, member.previous_epoch}:
        which = "greater" if request.epoch > member.epoch else "smaller"
        raise FencedMemberEpoch(
            f"The share group member has a {which} member epoch ({request.epoch}) than the one "
            f"known by the group coordinator ({member.epoch}). The member must abandon all its "
            "partitions and rejoin."
        )
    return member


def late_members(group: ShareGroup, now_ms: int) -> list[str]:
    return [each.id for each in group.members.values() if each.deadline_ms <= now_ms]


def with_state(draft: ShareGroupDraft, topics: Mapping[Uuid, StateTopic]) -> None:
    """Record that these partitions have state; the next heartbeat may assign them at once."""
    known = dict(draft.group.initialized)
    for topic_id, (name, partitions) in topics.items():
        before = known.get(topic_id)
        had = frozenset[int]() if before is None else before.partitions
        known[topic_id] = StateTopic(name, had | partitions)
    if known == draft.group.initialized:
        return
    draft.write(state_record(draft.group.id, known))
    if draft.group.members:
        draft.bump_epoch()
        draft.change(assigned_ms=None)


def without_topics(draft: ShareGroupDraft, topics: Iterable[Uuid]) -> None:
    """Record that the state of these topics is deleted."""
    gone = set(topics)
    kept = {each: known for each, known in draft.group.initialized.items() if each not in gone}
    if len(kept) < len(draft.group.initialized):
        draft.write(state_record(draft.group.id, kept))
