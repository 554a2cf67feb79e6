"""What members ask: to join, to live, to have their share, to leave."""

from penstock.coordinator.group import join as joins
from penstock.coordinator.group import membership
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer import heartbeat as beats
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import Heartbeat, HeartbeatReply
from penstock.coordinator.group.consumer.turn import ConsumerTurn
from penstock.coordinator.group.decision import Decision, Refused, decided, decided_consumer
from penstock.coordinator.group.join import Joining
from penstock.coordinator.group.member import Joined, Synced
from penstock.coordinator.group.membership import Leaving, Syncing
from penstock.coordinator.group.records import GroupRecord, StoredRecord
from penstock.coordinator.group.refusal import (
    GroupIdNotFound,
    InconsistentGroupProtocol,
    UnknownMemberId,
)
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.state import State
from penstock.coordinator.outcome import Done, Now, Ticket, answer


def join(
    shard: GroupShard, now: Now, ticket: Ticket[Joined], group: str, asked: Joining
) -> Decision:
    known = shard.groups.get(group)
    if known is None and asked.member_id:
        raise UnknownMemberId(f"there is no group {group}")
    other = shard.consumer_groups.get(group)
    if other is not None and other.members:
        raise InconsistentGroupProtocol(f"the members of {group} speak the consumer protocol")
    turn = shard.turn(known or ClassicGroup(group), now)
    turn.stored = known is None
    joins.join(turn, asked, ticket)
    return decided(turn, tuple(other.tombstones()) if other is not None else ())


def sync(
    shard: GroupShard, now: Now, ticket: Ticket[Synced], group: str, asked: Syncing
) -> Decision:
    turn = shard.turn(_members_of(shard, group), now)
    membership.sync(turn, asked, ticket)
    return decided(turn)


def heartbeat(
    shard: GroupShard, now: Now, ticket: Ticket[Done], group: str, who: Leaving, generation: int
) -> Decision:
    turn = shard.turn(_members_of(shard, group), now)
    refused = membership.heartbeat(turn, who.member_id, who.instance_id, generation)
    turn.answer(ticket, refused or Done())
    return decided(turn)


def leave(
    shard: GroupShard,
    now: Now,
    ticket: Ticket[tuple[Refused, ...]],
    group: str,
    leaving: tuple[Leaving, ...],
) -> Decision:
    turn = shard.turn(_members_of(shard, group), now)
    turn.answer(ticket, membership.leave(turn, leaving))
    return decided(turn)


def _members_of(shard: GroupShard, group: str) -> ClassicGroup:
    known = shard.groups.get(group)
    if known is None:
        raise UnknownMemberId(f"there is no group {group}")
    return known


def consumer_heartbeat(
    shard: GroupShard, now: Now, ticket: Ticket[HeartbeatReply], group: str, asked: Heartbeat
) -> Decision:
    world = shard.world(now)
    beats.check(asked, world)
    known = shard.consumer_groups.get(group)
    if known is None and asked.epoch != beats.JOINS:
        raise GroupIdNotFound(f"there is no consumer group {group}")
    turn = ConsumerTurn(known or ConsumerGroup(group), world)
    act = beats.heartbeat if asked.epoch >= beats.JOINS else beats.leave
    reply = act(turn, asked)
    return decided_consumer(turn, _replaced(shard, group), (answer(ticket, reply),))


def _replaced(shard: GroupShard, group: str) -> tuple[StoredRecord, ...]:
    """A classic group without members gives way; its offsets stay."""
    classic = shard.groups.get(group)
    if classic is None:
        return ()
    if classic.state is not State.EMPTY or classic.pending:
        raise GroupIdNotFound(f"the members of {group} speak the classic protocol")
    return (GroupRecord(group, None),)
