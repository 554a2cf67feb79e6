"""A streams group becomes classic when no member of the streams protocol is left in it."""

import msgspec

from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.embedded_protocol import CONSUMER
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.member import ClassicGroupMember
from penstock.coordinator.group.classic.rebalance import rebalance
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.streams.draft import StreamsGroupDraft
from penstock.coordinator.group.streams.member import StreamsGroupMember
from penstock.coordinator.group.streams.migration.upgrade import STREAM


def downgraded(draft: StreamsGroupDraft) -> ClassicGroupDraft:
    """The classic group of the remaining members; it rebalances, and one of them leads it.

    Members keep their tasks, in the generation that they know, until they join. Those that have not
    joined at this coordinator are unknown to the classic group and join as new members.
    """
    group, context = draft.group, draft.context
    members = [_member(each) for each in group.members.values() if each.classic is not None]
    classic = ClassicGroup(
        group.id,
        ClassicGroupState.STABLE if members else ClassicGroupState.EMPTY,
        max(each.epoch for each in group.members.values()),
        CONSUMER,
        protocol=STREAM if members else None,
        leader=members[0].id if members else None,
        members={each.id: each for each in members},
        state_since_ms=context.now.wall_ms,
    )
    after = ClassicGroupDraft(classic, context.group_config, context.now)
    for member in members:
        after.renew_session(member)
    if members:
        rebalance(after, "the last member of the streams protocol left")
    return after


def stored(group: ClassicGroup) -> ClassicGroup:
    """The group as it is stored: no member has its generation, so all rejoin after a fail-over."""
    if not group.members:
        return group
    return msgspec.structs.replace(
        group, state=ClassicGroupState.STABLE, generation=group.generation + 2
    )


def _member(member: StreamsGroupMember) -> ClassicGroupMember:
    assert member.classic is not None, "it is a classic member"
    return ClassicGroupMember(
        id=member.id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
    )
