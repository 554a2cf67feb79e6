"""What members ask: to join, to live, to have their share, to leave."""

from penstock.coordinator.group import join as joins
from penstock.coordinator.group import membership
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer import heartbeat as beats
from penstock.coordinator.group.consumer.group import ConsumerGroup, new_group
from penstock.coordinator.group.consumer.heartbeat import Heartbeat, HeartbeatReply
from penstock.coordinator.group.consumer.member import LEFT_FOR_NOW
from penstock.coordinator.group.consumer.turn import ConsumerTurn
from penstock.coordinator.group.decision import (
    Decision,
    Refused,
    decided,
    decided_consumer,
    heard,
    heard_consumer,
)
from penstock.coordinator.group.join import Joining
from penstock.coordinator.group.member import Joined, Synced
from penstock.coordinator.group.membership import Leaving, Syncing
from penstock.coordinator.group.migration import classic_member
from penstock.coordinator.group.migration import upgrade as upgrades
from penstock.coordinator.group.migration.downgrade import without
from penstock.coordinator.group.records import GroupRecord
from penstock.coordinator.group.refusal import GroupIdNotFound, UnknownMemberId
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.state import State
from penstock.coordinator.outcome import Answer, Done, Now, Outcome, Ticket, answer


def join(
    shard: GroupShard, now: Now, ticket: Ticket[Joined], group: str, asked: Joining
) -> Decision:
    asked = asked.bounded()
    other = shard.consumer_groups.get(group)
    if other is not None and other.members:
        consumer_turn = shard.consumer_turn(other, now)
        joined = classic_member.join(consumer_turn, asked)
        return decided_consumer(consumer_turn, answers=(answer(ticket, joined),))
    known = shard.groups.get(group)
    if known is None and asked.member_id:
        raise UnknownMemberId(f"there is no group {group}")
    turn = shard.turn(known or ClassicGroup(group), now)
    turn.stored = known is None
    joins.join(turn, asked, ticket)
    return decided(turn, tuple(other.tombstones()) if other is not None else ())


def sync(
    shard: GroupShard, now: Now, ticket: Ticket[Synced], group: str, asked: Syncing
) -> Decision:
    known = _members_of(shard, group)
    if isinstance(known, ConsumerGroup):
        consumer_turn = shard.consumer_turn(known, now)
        synced = classic_member.sync(consumer_turn, asked)
        return decided_consumer(consumer_turn, answers=(answer(ticket, synced),))
    turn = shard.turn(known, now)
    membership.sync(turn, asked, ticket)
    return decided(turn)


def heartbeat(
    shard: GroupShard, now: Now, ticket: Ticket[Done], group: str, who: Leaving, generation: int
) -> Decision:
    known = _members_of(shard, group)
    if isinstance(known, ConsumerGroup):
        consumer_turn = shard.consumer_turn(known, now)
        refused = classic_member.heartbeat(consumer_turn, who, generation)
        return decided_consumer(consumer_turn, answers=(answer(ticket, refused or Done()),))
    member = known.checked_member(who.member_id, who.instance_id)
    known.check_generation(generation)
    told = answer(ticket, membership.told_by_heartbeat(known) or Done())
    return Outcome(answers=(told,), soft=heard(known, member, now.steady_ms))


def leave(
    shard: GroupShard,
    now: Now,
    ticket: Ticket[tuple[Refused, ...]],
    group: str,
    leaving: tuple[Leaving, ...],
) -> Decision:
    known = _members_of(shard, group)
    if isinstance(known, ConsumerGroup):
        consumer_turn = shard.consumer_turn(known, now)
        left = classic_member.leave(consumer_turn, leaving)
        return decided_consumer(consumer_turn, answers=(answer(ticket, left),))
    turn = shard.turn(known, now)
    turn.answer(ticket, membership.leave(turn, leaving))
    return decided(turn)


def _members_of(shard: GroupShard, group: str) -> ClassicGroup | ConsumerGroup:
    known = shard.consumer_groups.get(group) or shard.groups.get(group)
    if known is None:
        raise UnknownMemberId(f"there is no group {group}")
    return known


def _not_there(shard: GroupShard, group: str, asked: Heartbeat) -> str:
    if group in shard.groups:
        return f"Group {group} is not a consumer group."
    return f"Group {group} not found." if asked.epoch < 0 else f"Consumer group {group} not found."


def consumer_heartbeat(
    shard: GroupShard, now: Now, ticket: Ticket[HeartbeatReply], group: str, asked: Heartbeat
) -> Decision:
    known = shard.consumer_groups.get(group)
    if known is not None:
        world = shard.world(group, now)
        member = beats.lives(known, asked, world)
        if member is not None:
            reply = HeartbeatReply(member.id, member.epoch, beats.interval_ms(known, world))
            return Outcome(
                answers=(answer(ticket, reply),), soft=heard_consumer(known, member, now)
            )
    turn = shard.consumer_turn(known or new_group(group), now)
    beats.check(asked, turn.world)
    if known is None and asked.epoch != beats.JOINS:
        raise GroupIdNotFound(_not_there(shard, group, asked))
    classic = shard.groups.get(group)
    told = _taken_over(turn, classic) if classic is not None else ()
    replaced = () if classic is None else (GroupRecord(group, None),)
    reply = _heartbeat(turn, asked)
    return decided_consumer(turn, replaced, (*told, answer(ticket, reply)))


def _taken_over(turn: ConsumerTurn, classic: ClassicGroup) -> tuple[Answer, ...]:
    """A classic group gives way to one of the same name; its offsets stay."""
    if classic.state is State.EMPTY:
        return ()
    upgrades.check(classic, turn.world.config)
    return upgrades.upgrade(turn, classic)


def _heartbeat(turn: ConsumerTurn, asked: Heartbeat) -> HeartbeatReply:
    if asked.epoch >= beats.JOINS:
        return beats.heartbeat(turn, asked)
    member = beats.checked_member(turn.group, asked.member_id, asked.instance_id)
    if asked.epoch == LEFT_FOR_NOW:
        beats.leave_for_now(turn, member)
    else:
        without(turn, [member], f"{member.id} left")
    return HeartbeatReply(member.id, asked.epoch, 0)
