"""ConsumerGroupHeartbeat: a member joins, lives, hears of its share, or leaves."""

import msgspec

from penstock.coordinator.group.consumer.group import ConsumerGroup, GroupState
from penstock.coordinator.group.consumer.member import (
    LEFT_FOR_NOW,
    NOTHING,
    ConsumerMember,
    MemberState,
    Share,
)
from penstock.coordinator.group.consumer.refusal import (
    AssignorFailed,
    FencedMemberEpoch,
    InvalidHeartbeat,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from penstock.coordinator.group.consumer.turn import ConsumerTurn, World
from penstock.coordinator.group.refusal import (
    FencedInstanceId,
    GroupMaxSizeReached,
    UnknownMemberId,
)

JOINS, LEAVES = 0, -1
"""Epochs that mean something to the coordinator; `LEFT_FOR_NOW` is the third."""

RECONCILING_INTERVAL_MS = 500
"""While partitions are on their way, members are asked to come more often."""


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a member says; None: the same as before."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Share | None = None

    @property
    def is_full(self) -> bool:
        """After an error a member says everything again, and wants to hear everything again."""
        return (
            self.rebalance_timeout_ms >= 0
            and (self.topics is not None or self.regex is not None)
            and self.owned is not None
        )

    @property
    def is_bare(self) -> bool:
        """The member lives and says nothing more, as mostly."""
        return (
            self.rebalance_timeout_ms < 0
            and self.topics is None
            and self.regex is None
            and self.assignor is None
            and self.rack_id is None
        )


class HeartbeatReply(msgspec.Struct, frozen=True):
    """What a member is told; without a share, it has not changed."""

    member_id: str
    epoch: int
    interval_ms: int
    share: Share | None = None


def check(asked: Heartbeat, world: World) -> None:
    """Refuse what no member may say, whatever its group."""
    if not asked.member_id:
        raise InvalidHeartbeat("MemberId can't be empty.")
    if asked.instance_id == "":
        raise InvalidHeartbeat("InstanceId can't be empty.")
    if asked.rack_id == "":
        raise InvalidHeartbeat("RackId can't be empty.")
    match asked.epoch:
        case 0:
            if asked.rebalance_timeout_ms < 0:
                raise InvalidHeartbeat("RebalanceTimeoutMs must be provided in first request.")
            if asked.owned is None or asked.owned:
                raise InvalidHeartbeat("TopicPartitions must be empty when (re-)joining.")
            if asked.topics is None and asked.regex is None:
                raise InvalidHeartbeat(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                    "(re-)joining."
                )
        case -2 if asked.instance_id is None:
            raise InvalidHeartbeat("InstanceId can't be null.")
        case epoch if epoch < LEFT_FOR_NOW:
            raise InvalidHeartbeat("MemberEpoch is invalid.")
    if asked.assignor is not None and asked.assignor not in world.assignors.by_name:
        offered = ", ".join(world.assignors.by_name)
        raise UnsupportedAssignor(
            f"ServerAssignor {asked.assignor} is not supported. Supported assignors: {offered}."
        )


def lives(group: ConsumerGroup, asked: Heartbeat, world: World) -> ConsumerMember | None:
    """The member as it is heard of, if it says no more and nothing is to be done for its group.

    Most heartbeats are such, and `heartbeat` would come to the same.
    """
    member = group.members.get(asked.member_id)
    if (
        member is None
        or not asked.is_bare
        or not _is_from(member, asked)
        or not JOINS < asked.epoch == member.epoch == group.target_epoch == group.epoch
        or member.state is not MemberState.STABLE
        or group.rebalance_reason
        or not world.is_known_to(group)
    ):
        return None
    deadline_ms = world.now.steady_ms + world.settings.consumer_session_timeout_ms
    if deadline_ms < member.deadline_ms:
        return None  # the timeout was set shorter
    return msgspec.structs.replace(member, deadline_ms=deadline_ms)


def heartbeat(turn: ConsumerTurn, asked: Heartbeat) -> HeartbeatReply:
    """Join or go on; the reply has the member's share if it is news."""
    known = _known(turn, asked)
    if known is None and len(turn.group.members) >= turn.world.config.group_consumer_max_size:
        raise GroupMaxSizeReached(f"{turn.world.config.group_consumer_max_size} members")
    had = known.assigned if known is not None else NOTHING
    epoch = turn.group.epoch
    turn.subscribed(known, _updated(known or ConsumerMember(id=asked.member_id), asked))
    bring_up_to_date(turn, is_news=turn.group.epoch > epoch)
    turn.reconcile(asked.member_id, asked.owned)
    turn.heard(asked.member_id)
    turn.finish()
    member = turn.group.members[asked.member_id]
    tells = asked.epoch == JOINS or asked.is_full or member.assigned != had
    return HeartbeatReply(
        member.id,
        member.epoch,
        interval_ms(turn.group, turn.world),
        member.assigned if tells else None,
    )


def bring_up_to_date(turn: ConsumerTurn, *, is_news: bool) -> None:
    """Notice what changed, and work the target out if it is time."""
    turn.look_at_topics()
    try:
        turn.assign()
    except AssignorFailed:
        if is_news:
            raise
        # The member only lives: it keeps what it has until the assignor is up to its work.
        turn.put_off()


def interval_ms(group: ConsumerGroup, world: World) -> int:
    usual_ms = world.settings.consumer_heartbeat_interval_ms
    if group.state is GroupState.STABLE:
        return usual_ms
    return min(usual_ms, RECONCILING_INTERVAL_MS)


def _updated(member: ConsumerMember, asked: Heartbeat) -> ConsumerMember:
    timeout_ms = asked.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        instance_id=asked.instance_id or member.instance_id,
        rack_id=asked.rack_id or member.rack_id,
        client_id=asked.client_id,
        client_host=asked.client_host,
        topics=member.topics if asked.topics is None else asked.topics,
        regex=member.regex if asked.regex is None else asked.regex or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms < 0 else timeout_ms,
        assignor=asked.assignor or member.assignor,
        classic=None,
    )


def _is_from(member: ConsumerMember, asked: Heartbeat) -> bool:
    """Whether it comes from the client that the member was last, in the protocol that it spoke."""
    return (
        asked.client_id == member.client_id
        and asked.client_host == member.client_host
        and asked.instance_id in {None, member.instance_id}
        and member.classic is None
    )


def _known(turn: ConsumerTurn, asked: Heartbeat) -> ConsumerMember | None:
    """The member as it is, after a static one has taken its place again; None: it is new."""
    group = turn.group
    if asked.epoch != JOINS:
        member = checked_member(group, asked.member_id, asked.instance_id)
        _check_epoch(member, asked)
        return member
    if asked.instance_id is None:
        return group.members.get(asked.member_id)
    static = group.static_member(asked.instance_id)
    if static is None:
        return None
    if static.id != asked.member_id:
        # One of the classic protocol cannot say that it leaves for a while: it is just replaced.
        if not static.is_away and static.classic is None:
            raise UnreleasedInstanceId(
                f"Static member {asked.member_id} with instance id {asked.instance_id} cannot join "
                f"the group because the instance id is owned by {static.id} member."
            )
        turn.replace(static, asked.member_id)
    elif static.is_away:
        turn.put_current(msgspec.structs.replace(static, epoch=0, previous_epoch=0))
    return turn.group.members[asked.member_id]


def checked_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member, if it is who it says."""
    if instance_id is not None:
        static = group.static_member(instance_id)
        if static is None:
            raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
        if static.id != member_id:
            raise FencedInstanceId(
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{static.id}."
            )
        return static
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {group.id}.")
    return member


def _check_epoch(member: ConsumerMember, asked: Heartbeat) -> None:
    if asked.epoch == member.epoch:
        return
    # The answer with the newer epoch was lost, if the member has nothing that is not its own.
    missed_one = asked.epoch == member.previous_epoch and asked.owned is not None
    if not missed_one or not (asked.owned or NOTHING) <= member.assigned:
        which = "greater" if asked.epoch > member.epoch else "smaller"
        raise FencedMemberEpoch(
            f"The consumer group member has a {which} member epoch ({asked.epoch}) than the one "
            f"known by the group coordinator ({member.epoch}). The member must abandon all its "
            "partitions and rejoin."
        )


def leave_for_now(turn: ConsumerTurn, member: ConsumerMember) -> None:
    """Its share waits for it until its session ends."""
    turn.put_current(
        msgspec.structs.replace(
            member, epoch=LEFT_FOR_NOW, state=MemberState.STABLE, revoking=NOTHING
        )
    )
    turn.keep(member.id, act_by_ms=None)
    turn.finish()


def late(group: ConsumerGroup, now_ms: int) -> list[tuple[ConsumerMember, str]]:
    """Who was not heard of, or has not done what it must, in time; and what that was."""
    found = []
    for member in group.members.values():
        if member.deadline_ms <= now_ms:
            found.append((member, f"{member.id} timed out"))
        elif member.act_by_ms is not None and member.act_by_ms <= now_ms:
            due = "give up its partitions" if member.classic is None else "join or sync"
            found.append((member, f"{member.id} did not {due} in time"))
    return found


def begin(turn: ConsumerTurn) -> None:
    """A new coordinator: members have their whole times again to be heard of."""
    for member in list(turn.group.members.values()):
        turn.heard(member.id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            turn.keep(member.id, act_by_ms=turn.now_ms + member.rebalance_timeout_ms)
