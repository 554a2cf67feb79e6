"""Brings groups of many members to the stable state, with the classic or the consumer protocol."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.crowd import Crowd, checked, framed, read

from peers.process import PeerError
from penstock.errors import ErrorCode
from penstock.types import Uuid, uuid_text
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

JOIN, SYNC, HEARTBEAT, COMMIT, CONSUMER, FIND = 3, 2, 2, 7, 1, 4
"""Versions of the APIs. JoinGroup 3 gives out a member id without a second request."""
LONG_MS = 300_000


@dataclass(slots=True)
class Seat:
    """A member: its group, and what the coordinator has assigned to it."""

    group: str
    member_id: str = ""
    epoch: int = 0
    owned: tuple[TopicPartitions, ...] = ()


def find(people: Crowd, groups: Iterable[str]) -> None:
    """Has the internal topic created; waits until each group's coordinator is available."""
    for group in groups:
        frame = framed(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), FIND)
        for _ in range(200):
            answer = people.ask({0: frame})[0]
            found = read(answer, FindCoordinatorRequest, FindCoordinatorResponse, FIND)
            if not found.coordinators[0].error_code:
                break
            time.sleep(0.1)
        else:
            raise PeerError(f"{group} has no coordinator")


def join_classic(
    people: Crowd, seats: Sequence[Seat], topic: str, note: bytes = b"", over_s: float = 0
) -> float:
    """All members join and the leaders assign; returns the seconds it took.

    A member that joins again needs a new `note`: without a change the coordinator starts no
    rebalance.
    """
    began_s = time.monotonic()
    wanted = ConsumerProtocolSubscription(topics=[topic], user_data=note)
    subscription = b"\0\0" + encode(wanted, 0)
    waiting = dict(enumerate(seats))
    leaders: dict[str, list[str]] = {}
    while waiting:
        frames = {
            number: framed(
                JoinGroupRequest(
                    group_id=seat.group,
                    session_timeout_ms=LONG_MS,
                    rebalance_timeout_ms=LONG_MS,
                    member_id=seat.member_id,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequestProtocol("range", subscription)],
                ),
                JOIN,
            )
            for number, seat in waiting.items()
        }
        for number, answer in people.ask(frames, over_s).items():
            joined = read(answer, JoinGroupRequest, JoinGroupResponse, JOIN)
            if joined.error_code in {ErrorCode.NOT_COORDINATOR, 14, 15}:
                continue
            checked([joined.error_code], "JoinGroup")
            seats[number].member_id, seats[number].epoch = joined.member_id, joined.generation_id
            if joined.leader == joined.member_id:
                leaders[joined.member_id] = [each.member_id for each in joined.members]
            waiting.pop(number)
    frames = {
        number: framed(
            SyncGroupRequest(
                group_id=seat.group,
                generation_id=seat.epoch,
                member_id=seat.member_id,
                assignments=[
                    SyncGroupRequestAssignment(member, b"share")
                    for member in leaders.get(seat.member_id, ())
                ],
            ),
            SYNC,
        )
        for number, seat in enumerate(seats)
    }
    synced = people.ask(frames).values()
    checked(
        (read(each, SyncGroupRequest, SyncGroupResponse, SYNC).error_code for each in synced),
        "SyncGroup",
    )
    return time.monotonic() - began_s


def heartbeat(seat: Seat) -> bytes:
    return framed(
        HeartbeatRequest(group_id=seat.group, generation_id=seat.epoch, member_id=seat.member_id),
        HEARTBEAT,
    )


def commit(seat: Seat, topic: str, partition: int) -> bytes:
    where = OffsetCommitRequestPartition(partition_index=partition, committed_offset=1)
    return framed(
        OffsetCommitRequest(
            group_id=seat.group,
            generation_id_or_member_epoch=seat.epoch,
            member_id=seat.member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[where])],
        ),
        COMMIT,
    )


def join_consumer(people: Crowd, seats: Sequence[Seat], topic: str, per_member: int) -> float:
    """All members join, then send heartbeats without pause until each has its partitions."""
    began_s = time.monotonic()
    for number, seat in enumerate(seats):
        seat.member_id = uuid_text(Uuid(number.to_bytes(16, "big")))
    lacking = set(range(len(seats)))
    while lacking:
        frames = {number: framed(_beat(seats[number], topic), CONSUMER) for number in lacking}
        for number, answer in people.ask(frames).items():
            reported = read(
                answer, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, CONSUMER
            )
            if reported.error_code in {ErrorCode.NOT_COORDINATOR, 14, 15}:
                continue
            checked([reported.error_code], "ConsumerGroupHeartbeat")
            seat = seats[number]
            seat.epoch = reported.member_epoch
            if reported.assignment is not None:
                seat.owned = tuple(reported.assignment.topic_partitions)
        counts = [sum(len(each.partitions) for each in seat.owned) for seat in seats]
        epochs: dict[str, set[int]] = {}
        for seat in seats:
            epochs.setdefault(seat.group, set()).add(seat.epoch)
        lacking = {
            number
            for number, seat in enumerate(seats)
            if counts[number] != per_member or len(epochs[seat.group]) > 1
        }
        if time.monotonic() > began_s + 60:
            raise PeerError(f"{len(lacking)} members have no share")
    return time.monotonic() - began_s


def _beat(seat: Seat, topic: str) -> ConsumerGroupHeartbeatRequest:
    joins = seat.epoch == 0
    return ConsumerGroupHeartbeatRequest(
        group_id=seat.group,
        member_id=seat.member_id,
        member_epoch=seat.epoch,
        rebalance_timeout_ms=LONG_MS if joins else -1,
        subscribed_topic_names=[topic] if joins else None,
        topic_partitions=list(seat.owned),
    )


def consumer_heartbeat(seat: Seat) -> bytes:
    request = ConsumerGroupHeartbeatRequest(
        group_id=seat.group, member_id=seat.member_id, member_epoch=seat.epoch
    )
    return framed(request, CONSUMER)
