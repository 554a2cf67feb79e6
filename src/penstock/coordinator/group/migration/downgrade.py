"""A group of the consumer protocol becomes classic when nobody in it speaks that protocol."""

from collections.abc import Collection, Iterable

import msgspec

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.member import NOTHING, ConsumerMember
from penstock.coordinator.group.consumer.turn import ConsumerTurn
from penstock.coordinator.group.embedded import CONSUMER, assignment_bytes
from penstock.coordinator.group.member import Member
from penstock.coordinator.group.migration.share import names_of
from penstock.coordinator.group.rebalance import rebalance
from penstock.coordinator.group.state import State
from penstock.coordinator.group.turn import Turn

ALLOWED = {"downgrade", "bidirectional"}
"""The values of `group.consumer.migration.policy` with which groups are downgraded."""


def without(turn: ConsumerTurn, gone: Collection[ConsumerMember], reason: str) -> None:
    """Take members out. If only members of the classic protocol stay, they share among
    themselves from now on.
    """
    names = {each.id for each in gone}
    stay = [each for each in turn.group.members.values() if each.id not in names]
    if may_downgrade(turn, stay):
        downgrade(turn, stay)
        assert turn.downgraded is not None
        rebalance(turn.downgraded, reason)
    else:
        turn.remove(gone, reason)
        turn.finish()


def may_downgrade(turn: ConsumerTurn, stay: Collection[ConsumerMember]) -> bool:
    config = turn.world.config
    return (
        0 < len(stay) <= config.group_max_size
        and all(each.classic is not None for each in stay)
        and config.group_consumer_migration_policy in ALLOWED
    )


def downgrade(turn: ConsumerTurn, stay: Iterable[ConsumerMember]) -> None:
    """What the target gives each member is its share; the epoch is the generation."""
    group, world = turn.group, turn.world
    members = [_member(each) for each in stay]
    draft = ClassicGroup(
        group.id,
        State.STABLE,
        group.epoch,
        CONSUMER,
        leader=members[0].id,
        members={each.id: each for each in members},
        state_since_ms=world.now.wall_ms,
    )
    protocol = draft.elected_protocol()
    turn.downgraded = Turn(
        msgspec.structs.replace(draft, protocol=protocol), world.config, world.now
    )
    for member in members:
        share = group.target.get(member.id, NOTHING)
        told = assignment_bytes(names_of(share, world.topics), member.metadata(protocol))
        turn.downgraded.heard(msgspec.structs.replace(member, assignment=told))


def _member(member: ConsumerMember) -> Member:
    assert member.classic is not None, "a member of the consumer protocol cannot be downgraded"
    return Member(
        id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
    )
