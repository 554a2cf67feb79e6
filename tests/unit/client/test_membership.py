"""Situations of a group member that a random walk seldom reaches."""

import pytest

from penstock.client.membership.assignor import COOPERATIVE_STICKY, RANGE
from penstock.client.membership.classic import ClassicMembership, ClassicSettings
from penstock.client.membership.consumer import ConsumerMembership, ConsumerSettings
from penstock.client.membership.member import Assign, Lose, Membership, MembershipFailed, Revoke
from penstock.errors import ErrorCode
from penstock.types import TopicPartition
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.wire.messages.leave_group import LeaveGroupRequest
from support.groups.consumer_members import Cluster
from support.groups.driven_members import DrivenMember
from support.groups.group_transcript import GROUP

EVERYTHING = frozenset(TopicPartition("t", index) for index in range(4))


def eager() -> Membership:
    return ClassicMembership(GROUP, ClassicSettings(assignors=(RANGE,)))


def cooperative() -> Membership:
    return ClassicMembership(GROUP, ClassicSettings(assignors=(COOPERATIVE_STICKY,)))


def joined(cluster: Cluster, name: str, membership: Membership) -> DrivenMember:
    member = DrivenMember(cluster, name, membership)
    membership.subscribe({"t"})
    member.poll()
    for _ in range(8):
        member.step()
        cluster.pass_ms(500)
    return member


def settled(cluster: Cluster, name: str, membership: Membership) -> DrivenMember:
    member = joined(cluster, name, membership)
    for _ in range(3):
        member.poll()
        member.step()
    assert member.owned == EVERYTHING
    return member


def test_a_member_that_must_revoke_sends_heartbeats_until_it_is_polled() -> None:
    cluster = Cluster()
    one = settled(cluster, "one", eager())
    joined(cluster, "other", eager())
    one.sent.clear()
    for _ in range(90):
        one.step()
        cluster.pass_ms(100)
    assert isinstance(one.membership.change, Revoke)
    beats = [each for each in one.sent if isinstance(each, HeartbeatRequest)]
    assert beats == one.sent
    assert 2 <= len(beats) <= 4, "one every three seconds, and no more"
    one.poll()
    one.step()
    assert isinstance(one.sent[-1], JoinGroupRequest)


def test_a_cooperative_member_keeps_the_partitions_that_stay_its_own() -> None:
    cluster = Cluster()
    one = settled(cluster, "one", cooperative())
    other = joined(cluster, "other", cooperative())
    one.changes.clear()
    for _ in range(20):
        for member in (one, other):
            for _ in range(3):
                member.poll()
                member.step()
        cluster.pass_ms(1_000)
    assert one.changes == [Revoke(frozenset(sorted(EVERYTHING)[2:]))]
    assert one.owned | other.owned == EVERYTHING


def test_a_member_that_is_not_polled_leaves_and_rejoins() -> None:
    cluster = Cluster()
    one = settled(cluster, "one", eager())
    for _ in range(320):
        one.step()
        cluster.pass_ms(1_000)
    assert isinstance(one.sent[-1], LeaveGroupRequest)
    assert one.membership.change == Lose(EVERYTHING)
    for _ in range(6):
        one.poll()
        for _ in range(3):
            one.step()
        cluster.pass_ms(1_000)
    assert one.changes[-2:] == [Lose(EVERYTHING), Assign(EVERYTHING)]


def test_an_outdated_assignment_has_no_effect() -> None:
    cluster = Cluster()
    one = joined(cluster, "one", eager())
    assigned = one.membership.change
    assert isinstance(assigned, Assign)
    one.membership.fenced(ErrorCode.UNKNOWN_MEMBER_ID)
    one.membership.changed(assigned, one.now_ms)
    assert one.owned == frozenset()


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_removed_member_commits_with_its_former_id_and_generation(code: ErrorCode) -> None:
    """Transactional offsets without a member and generation are accepted from any client."""
    one = settled(Cluster(), "one", eager())
    before = one.membership.metadata
    assert before.member_id
    assert before.generation >= 0
    one.membership.fenced(code)
    assert one.membership.metadata == before


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_removed_consumer_protocol_member_commits_with_its_former_epoch(code: ErrorCode) -> None:
    """In an empty group, offsets without an epoch count as an administrator's."""
    cluster = Cluster()
    one = settled(cluster, "one", ConsumerMembership(GROUP, "one", ConsumerSettings()))
    before = one.membership.metadata
    assert before.generation > 0
    one.membership.fenced(code)
    assert one.membership.metadata == before
    late = settled(Cluster(), "two", ConsumerMembership(GROUP, "two", ConsumerSettings(10_000)))
    before = late.membership.metadata
    late.membership.next(late.now_ms + 10_001)  # not polled in time: it leaves
    assert late.membership.metadata == before


@pytest.mark.parametrize(
    "code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.FENCED_INSTANCE_ID]
)
def test_a_permanent_error_is_raised(code: ErrorCode) -> None:
    one = settled(Cluster(), "one", eager())
    with pytest.raises(MembershipFailed, match=f"group g: {code.name}"):
        one.membership.received(HeartbeatResponse(error_code=code), one.now_ms)


def test_a_loading_coordinator_is_asked_again() -> None:
    membership = eager()
    membership.subscribe({"t"})
    membership.polled(0)
    membership.next(0)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    membership.received(JoinGroupResponse(error_code=loading), 0)
    assert not isinstance(membership.next(50), JoinGroupRequest)
    assert isinstance(getattr(membership.next(100), "request", None), JoinGroupRequest)


def test_an_unanswered_heartbeat_is_followed_by_a_full_one() -> None:
    cluster = Cluster()
    one = settled(cluster, "one", ConsumerMembership(GROUP, "one", ConsumerSettings()))
    cluster.pass_ms(10_000)
    one.membership.next(one.now_ms)
    one.membership.failed(one.now_ms)
    cluster.pass_ms(200)
    one.step()
    request = one.sent[-1]
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    assert request.subscribed_topic_names == ["t"]
    assert request.topic_partitions is not None


def test_topics_by_name_replace_a_pattern() -> None:
    """The coordinator keeps a pattern that a heartbeat does not mention."""
    cluster = Cluster()
    cluster.set_topics(t=4, other=1)
    one = settled(cluster, "one", ConsumerMembership(GROUP, "one", ConsumerSettings()))
    one.membership.subscribe((), "other")
    rejoined(cluster, one)
    assert one.owned == {TopicPartition("other", 0)}
    one.membership.subscribe({"t"})
    rejoined(cluster, one)
    assert one.owned == EVERYTHING
    one.membership.fenced(ErrorCode.UNKNOWN_MEMBER_ID)  # a known member that joins again
    rejoined(cluster, one)
    assert one.owned == EVERYTHING


def rejoined(cluster: Cluster, member: DrivenMember) -> None:
    for _ in range(6):
        member.poll()
        member.step()
        cluster.pass_ms(1_000)
