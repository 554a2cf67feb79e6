"""The result of an operation on a group, which the runtime carries out.

A member that repeats a request must not learn of an assignment before it is committed: a fail-over
could take it back. So the answers wait for earlier records.
"""

from typing import TypeAlias

import msgspec

from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.member import ClassicGroupMember
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.draft import ConsumerGroupDraft
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.member import ConsumerGroupMember
from penstock.coordinator.group.rebalance_log import Rebalance
from penstock.coordinator.group.records import ClassicGroupRecord, GroupShardRecord, metadata_of
from penstock.coordinator.group.share.group import ShareGroup
from penstock.coordinator.group.share.heartbeat import ShareGroupDraft
from penstock.coordinator.group.streams.draft import StreamsGroupDraft
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.migration import downgrade as downgrades
from penstock.coordinator.result import Answer, CoordinatorResult, Now


class SoftState(msgspec.Struct, frozen=True):
    """Changes that are in no record: the group with its soft state, and its finished rebalances."""

    now_ms: int
    group: ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup | None = None
    finished: tuple[Rebalance, ...] = ()
    next_check_ms: int | None = None
    only_renews_session: bool = False
    """A member's session is renewed and nothing else changes, as by most heartbeats and commits.

    No deadline comes nearer, so the search for the next one, which visits every member, is skipped.
    """


GroupResult: TypeAlias = CoordinatorResult[GroupShardRecord, SoftState]


def classic_result(
    draft: ClassicGroupDraft, before: tuple[GroupShardRecord, ...] = ()
) -> GroupResult:
    """The result of an operation on a classic group."""
    group = draft.group
    records = (ClassicGroupRecord(group.id, metadata_of(group)),) if draft.must_store else ()
    soft_state = SoftState(
        draft.now_ms,
        group,
        tuple(draft.finished),
        only_renews_session=draft.only_renews_session,
    )
    return CoordinatorResult(
        (*before, *records), tuple(draft.answers), soft_state, reads_state=True
    )


def session_renewed(group: ClassicGroup, member: ClassicGroupMember, now_ms: int) -> SoftState:
    """A classic member's session is renewed and nothing else changes."""
    renewed = group.with_member(member.renewed(now_ms))
    return SoftState(now_ms, renewed, only_renews_session=True)


def consumer_session_renewed(
    group: ConsumerGroup, member: ConsumerGroupMember, now: Now
) -> SoftState:
    """`member` has its session renewed and nothing else changes."""
    members = {**group.members, member.id: member}
    renewed = msgspec.structs.replace(group, members=members)
    return SoftState(now.steady_ms, renewed, only_renews_session=True)


def consumer_result(
    draft: ConsumerGroupDraft,
    before: tuple[GroupShardRecord, ...] = (),
    answers: tuple[Answer, ...] = (),
) -> GroupResult:
    """The result of an operation on a group of the consumer protocol.

    `before` removes a classic group of the same name. Its replay drops the group's history, so the
    history is kept here.
    """
    if draft.downgraded is not None:
        return _downgraded(draft, draft.downgraded, answers)
    finished = (*draft.history, *draft.finished) if before else tuple(draft.finished)
    soft_state = SoftState(draft.now_ms, draft.group, finished)
    return CoordinatorResult((*before, *draft.records), answers, soft_state, reads_state=True)


def share_result(draft: ShareGroupDraft, answers: tuple[Answer, ...] = ()) -> GroupResult:
    """The result of an operation on a share group."""
    soft_state = SoftState(draft.now_ms, draft.group)
    return CoordinatorResult(tuple(draft.records), answers, soft_state, reads_state=True)


def streams_result(
    draft: StreamsGroupDraft,
    answers: tuple[Answer, ...] = (),
    before: tuple[GroupShardRecord, ...] = (),
) -> GroupResult:
    """The result of an operation on a streams group; `before` removes a classic group of the same
    name.
    """
    if draft.before.members and draft.group.members and draft.group.is_classic:
        return _classic_again(draft, answers)
    soft_state = SoftState(draft.now_ms, draft.group)
    return CoordinatorResult((*before, *draft.records), answers, soft_state, reads_state=True)


def _classic_again(draft: StreamsGroupDraft, answers: tuple[Answer, ...]) -> GroupResult:
    """Only classic members are left: one batch replaces the group by a classic one."""
    classic = downgrades.downgraded(draft)
    group = classic.group
    records: list[GroupShardRecord] = [*draft.before.tombstones()]
    records.append(ClassicGroupRecord(group.id, metadata_of(downgrades.stored(group))))
    soft_state = SoftState(draft.now_ms, group)
    return CoordinatorResult(tuple(records), (*answers, *classic.answers), soft_state)


def _downgraded(
    draft: ConsumerGroupDraft, classic: ClassicGroupDraft, answers: tuple[Answer, ...]
) -> GroupResult:
    """One batch removes the group of the consumer protocol and writes the classic group."""
    group = classic.group
    stored = msgspec.structs.replace(group, state=ClassicGroupState.STABLE)
    if group.state is not ClassicGroupState.STABLE:
        # The members are about to rebalance. If the coordinator is lost before that, a generation
        # that no member has makes all of them join again. Otherwise the partitions of the member
        # that left would stay unassigned.
        stored = msgspec.structs.replace(stored, generation=group.generation + 2)
    records: list[GroupShardRecord] = [*draft.before.tombstones()]
    records.append(ClassicGroupRecord(group.id, metadata_of(stored)))
    soft_state = SoftState(draft.now_ms, group, (*draft.history, *draft.finished))
    return CoordinatorResult(tuple(records), (*answers, *classic.answers), soft_state)
