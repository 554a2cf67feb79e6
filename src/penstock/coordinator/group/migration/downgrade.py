"""A group becomes classic when no member of the consumer protocol is left in it."""

from collections.abc import Collection, Iterable

import msgspec

from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.embedded_protocol import CONSUMER, assignment_bytes
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.member import ClassicGroupMember
from penstock.coordinator.group.classic.rebalance import rebalance
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.draft import ConsumerGroupDraft
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, ConsumerGroupMember
from penstock.coordinator.group.migration.assignment import names_of

ALLOWED = {"downgrade", "bidirectional"}
"""The values of `group.consumer.migration.policy` that allow a downgrade."""


def remove_members(
    draft: ConsumerGroupDraft, removed: Collection[ConsumerGroupMember], reason: str
) -> None:
    """Remove members. If only members of the classic protocol stay, the group becomes classic."""
    names = {each.id for each in removed}
    staying = [each for each in draft.group.members.values() if each.id not in names]
    if may_downgrade(draft, staying):
        downgrade(draft, staying)
        assert draft.downgraded is not None
        rebalance(draft.downgraded, reason)
    else:
        draft.remove(removed, reason)
        draft.finish()


def may_downgrade(draft: ConsumerGroupDraft, staying: Collection[ConsumerGroupMember]) -> bool:
    config = draft.context.config
    return (
        0 < len(staying) <= config.group_max_size
        and all(each.classic is not None for each in staying)
        and config.group_consumer_migration_policy in ALLOWED
    )


def downgrade(draft: ConsumerGroupDraft, staying: Iterable[ConsumerGroupMember]) -> None:
    """Each member gets its target assignment; the epoch becomes the generation."""
    group, context = draft.group, draft.context
    members = [_member(each) for each in staying]
    classic = ClassicGroup(
        group.id,
        ClassicGroupState.STABLE,
        group.epoch,
        CONSUMER,
        leader=members[0].id,
        members={each.id: each for each in members},
        state_since_ms=context.now.wall_ms,
    )
    protocol = classic.elected_protocol()
    draft.downgraded = ClassicGroupDraft(
        msgspec.structs.replace(classic, protocol=protocol), context.config, context.now
    )
    for member in members:
        assignment = group.target.get(member.id, NO_PARTITIONS)
        encoded = assignment_bytes(names_of(assignment, context.topics), member.metadata(protocol))
        draft.downgraded.renew_session(msgspec.structs.replace(member, assignment=encoded))


def _member(member: ConsumerGroupMember) -> ClassicGroupMember:
    assert member.classic is not None, "a member of the consumer protocol cannot be downgraded"
    return ClassicGroupMember(
        id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
    )
