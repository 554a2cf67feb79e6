"""The rules of the consumer protocol: epochs, revoke before assign, static members, time-outs."""

import pytest

from penstock.config.regex import InvalidRegularExpression
from penstock.coordinator.group.consumer.errors import (
    FencedMemberEpoch,
    InvalidHeartbeat,
    NotServed,
    StaleMemberEpoch,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from penstock.coordinator.group.consumer.group import ConsumerGroupState
from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat
from penstock.coordinator.group.consumer.member import (
    NO_PARTITIONS,
    ConsumerGroupMember,
    MemberState,
)
from penstock.coordinator.group.consumer.offsets import OffsetReader
from penstock.coordinator.group.consumer.records import member_record
from penstock.coordinator.group.errors import (
    FencedInstanceId,
    NonEmptyGroup,
    UnknownMemberId,
)
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.records import GroupFormat
from penstock.types import TopicPartition
from support.groups.consumer_members import Cluster, Consumer, settle
from support.groups.group_transcript import GROUP

TOPIC_PARTITION = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def a(cluster: Cluster) -> Consumer:
    return Consumer(cluster, "a")


@pytest.fixture
def b(cluster: Cluster) -> Consumer:
    return Consumer(cluster, "b")


def commit(cluster: Cluster, epoch: int, member_id: str, *, knows_epochs: bool = True) -> object:
    committer = Committer(generation=epoch, member_id=member_id, knows_epochs=knows_epochs)
    return cluster.groups.commit(GROUP, committer, ((TOPIC_PARTITION, CommittedOffset(7)),)).reply


def test_a_repeated_heartbeat_waits_until_the_assignment_is_committed(cluster: Cluster) -> None:
    """Otherwise a fail-over could take back what the member has been told."""
    cluster.log.commits = False
    joining = ConsumerHeartbeat(
        member_id="a",
        epoch=0,
        rebalance_timeout_ms=5000,
        topics=frozenset({"t"}),
        owned=NO_PARTITIONS,
    )
    first = cluster.groups.consumer_heartbeat(GROUP, joining)
    again = cluster.groups.consumer_heartbeat(GROUP, joining)
    for pending in (first, again):
        assert cluster.groups.runtime.reply(pending) is None
    cluster.log.commit()
    for pending in (first, again):
        assert cluster.groups.runtime.reply(pending) is not None


def test_the_first_member_gets_all_partitions_at_once(cluster: Cluster, a: Consumer) -> None:
    reply = a.join()
    assert len(reply.assignment or ()) == 4
    assert reply.epoch == 2
    assert cluster.group.state is ConsumerGroupState.STABLE


def test_a_partition_is_assigned_only_once_its_owner_has_revoked_it(
    cluster: Cluster, a: Consumer, b: Consumer
) -> None:
    a.join()
    all_of_it = a.has
    assert b.join().assignment == NO_PARTITIONS
    assert cluster.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS

    reply = a.beat()
    assert len(reply.assignment or ()) == 2
    assert reply.epoch == 2, "the new epoch comes once it has revoked what it must"
    assert b.beat().assignment is None, "not revoked yet"

    assert a.beat().epoch == 3
    assert b.beat().assignment == all_of_it - a.has
    assert cluster.group.state is ConsumerGroupState.STABLE


def test_a_member_that_has_not_revoked_blocks_the_next_owner(
    cluster: Cluster, a: Consumer, b: Consumer
) -> None:
    a.join()
    everything = a.has
    b.join()
    a.beat()
    a.beat(owned=everything)
    a.beat(owned=None)
    assert b.beat().assignment is None
    assert cluster.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS


def test_a_member_that_does_not_revoke_in_time_is_removed(
    cluster: Cluster, a: Consumer, b: Consumer
) -> None:
    a.join()
    b.join()
    a.beat(owned=a.has)
    cluster.pass_ms(4999)
    b.beat()
    assert "a" in cluster.group.members
    cluster.pass_ms(2)
    assert "a" not in cluster.group.members
    assert len(b.beat().assignment or ()) == 4
    with pytest.raises(UnknownMemberId):
        a.beat()


def test_a_silent_member_is_removed_when_its_session_ends(
    cluster: Cluster, a: Consumer, b: Consumer
) -> None:
    a.join()
    b.join()
    settle(a, b)
    for _ in range(9):
        cluster.pass_ms(5000)
        b.beat()
    cluster.pass_ms(1)
    b.beat()
    assert len(b.has) == 4


def test_the_partitions_of_a_leaving_member_are_reassigned(
    cluster: Cluster, a: Consumer, b: Consumer
) -> None:
    a.join()
    b.join()
    settle(a, b)
    b.leave()
    assert len(a.beat().assignment or ()) == 4
    a.leave()
    assert cluster.group.state is ConsumerGroupState.EMPTY


def test_a_heartbeat_in_a_stable_group_writes_nothing_and_returns_no_assignment(
    cluster: Cluster, a: Consumer
) -> None:
    a.join()
    before = cluster.log.end_offset
    reply = a.beat(owned=None)
    assert reply.assignment is None
    assert reply.interval_ms == 5000
    assert cluster.log.end_offset == before


def test_a_member_that_waits_for_partitions_writes_nothing(
    cluster: Cluster, a: Consumer, b: Consumer
) -> None:
    """It sends heartbeats twice per second until the other revokes, which may take minutes."""
    a.join()
    b.join()
    written, member = len(cluster.log.batches), cluster.group.members["b"]
    assert member.state is MemberState.UNRELEASED_PARTITIONS
    b.beat()
    assert len(cluster.log.batches) == written
    assert cluster.group.members["b"].previous_epoch == member.previous_epoch < member.epoch


def test_a_full_heartbeat_gets_the_whole_assignment(a: Consumer) -> None:
    a.join()
    again = a.beat(rebalance_timeout_ms=5000, topics=frozenset({"t"}))
    assert again.assignment == a.has


def test_a_wrong_epoch_is_fenced_but_the_previous_one_is_not(
    cluster: Cluster, a: Consumer, b: Consumer
) -> None:
    a.join()
    b.join()
    settle(a, b)
    kept = a.has
    with pytest.raises(FencedMemberEpoch):
        cluster.beat(member_id="a", epoch=a.epoch + 1, owned=kept)
    before = cluster.group.members["a"].previous_epoch
    with pytest.raises(FencedMemberEpoch):
        cluster.beat(member_id="a", epoch=before, owned=kept | b.has)
    assert cluster.beat(member_id="a", epoch=before, owned=kept).epoch == a.epoch


def test_a_fenced_member_joins_again_under_its_id(a: Consumer) -> None:
    a.join()
    assert len(a.join().assignment or ()) == 4


def test_a_static_member_that_returns_keeps_its_assignment(cluster: Cluster, b: Consumer) -> None:
    old = Consumer(cluster, "old", instance_id="i")
    old.join()
    b.join()
    settle(old, b)
    had, epoch = old.has, cluster.group.epoch
    old.leave(-2)
    b.beat()
    assert len(b.has) == 2, "its partitions wait for it while it is away"
    new = Consumer(cluster, "new", instance_id="i")
    assert new.join().assignment == had
    assert cluster.group.epoch == epoch
    with pytest.raises(FencedInstanceId):
        cluster.beat(member_id="old", instance_id="i", epoch=epoch)


def test_a_member_that_becomes_static_under_its_id_begins_no_epoch(
    cluster: Cluster, a: Consumer
) -> None:
    a.join()
    epoch, had = cluster.group.epoch, a.has
    a.instance_id = "i"
    assert a.join().assignment == had
    assert cluster.group.epoch == epoch
    static = cluster.group.static_member("i")
    assert static is not None
    assert static.id == a.id


def test_a_late_heartbeat_does_not_bring_a_static_member_back(
    cluster: Cluster, b: Consumer
) -> None:
    """Its next process would be refused until its session ends."""
    old = Consumer(cluster, "old", instance_id="i")
    old.join()
    b.join()
    settle(old, b)
    late = cluster.group.members["old"].previous_epoch
    assert 0 < late < old.epoch
    old.leave(-2)
    with pytest.raises(FencedMemberEpoch):
        cluster.beat(member_id="old", instance_id="i", epoch=late, owned=NO_PARTITIONS)
    Consumer(cluster, "new", instance_id="i").join()


def test_an_instance_id_in_use_is_refused(cluster: Cluster) -> None:
    Consumer(cluster, "old", instance_id="i").join()
    with pytest.raises(UnreleasedInstanceId):
        Consumer(cluster, "new", instance_id="i").join()


def test_a_static_member_that_does_not_return_is_removed(cluster: Cluster, b: Consumer) -> None:
    old = Consumer(cluster, "old", instance_id="i")
    old.join()
    old.leave(-2)
    cluster.pass_ms(45_001)
    assert len(b.join().assignment or ()) == 4


def test_new_partitions_and_topics_reach_the_group(cluster: Cluster, a: Consumer) -> None:
    a.topics = frozenset({"t", "later"})
    a.join()
    cluster.set_topics(t=6)
    assert len(a.beat().assignment or ()) == 6
    cluster.set_topics(t=6, later=2, other=9)
    assert len(a.beat().assignment or ()) == 8
    cluster.set_topics(later=2)
    a.beat()
    assert len(a.has) == 2


def test_a_regex_finds_topics_that_are_created_later(cluster: Cluster, a: Consumer) -> None:
    cluster.set_topics(t1=1, x=5)
    assert len(a.join(topics=None, regex="t[0-9]+").assignment or ()) == 1
    cluster.set_topics(t1=1, t22=2, xt3=5)
    assert len(a.beat().assignment or ()) == 3
    a.beat(regex="")
    a.beat()
    assert a.has == NO_PARTITIONS
    assert cluster.group.regexes == {}


def test_an_invalid_regex_is_refused(cluster: Cluster, a: Consumer) -> None:
    with pytest.raises(InvalidRegularExpression):
        a.join(topics=None, regex="t(")
    assert GROUP not in cluster.shard.consumer_groups


@pytest.mark.parametrize(
    "fields",
    [
        {"member_id": ""},
        {"rebalance_timeout_ms": -1},
        {"owned": None},
        {"topics": None},
        {"epoch": -3},
        {"epoch": -2},
        {"instance_id": ""},
    ],
    ids=str,
)
def test_an_invalid_heartbeat_is_refused(cluster: Cluster, fields: dict[str, object]) -> None:
    sound = {
        "member_id": "a",
        "epoch": 0,
        "rebalance_timeout_ms": 1,
        "owned": NO_PARTITIONS,
        "topics": frozenset({"t"}),
    }
    cluster.beat(**sound)
    with pytest.raises(InvalidHeartbeat):
        cluster.beat(**sound | fields)


def test_an_unknown_assignor_is_refused(a: Consumer) -> None:
    with pytest.raises(UnsupportedAssignor):
        a.join(assignor="best")


def test_members_vote_for_the_assignor(cluster: Cluster, a: Consumer, b: Consumer) -> None:
    cluster.set_topics(t=3, u=3)
    for each in (a, b):
        each.topics = frozenset({"t", "u"})
        each.join(assignor="range")
    settle(a, b)
    assert sorted(index for _, index in a.has) == [0, 0, 1, 1]


def test_only_members_of_the_current_epoch_commit(cluster: Cluster, a: Consumer) -> None:
    a.join()
    assert commit(cluster, 2, "a") == (None,)
    assert isinstance(commit(cluster, 1, "a"), StaleMemberEpoch)
    assert isinstance(commit(cluster, 2, "b"), UnknownMemberId)
    assert isinstance(commit(cluster, -1, ""), UnknownMemberId)
    assert isinstance(commit(cluster, 2, "a", knows_epochs=False), NotServed)
    a.leave()
    assert commit(cluster, -1, "") == (None,)


def test_only_current_members_and_administrators_fetch_offsets(
    cluster: Cluster, a: Consumer
) -> None:
    a.join()
    commit(cluster, 2, "a")

    def fetched(**fields: object) -> object:
        return cluster.groups.fetch(GROUP, [TOPIC_PARTITION], OffsetReader(**fields)).reply  # type: ignore[arg-type]  # by name

    assert fetched() == fetched(member_id="a", epoch=2) == {TOPIC_PARTITION: CommittedOffset(7)}
    assert isinstance(fetched(member_id="a", epoch=3), StaleMemberEpoch)
    assert isinstance(fetched(member_id="b", epoch=2), UnknownMemberId)


def test_an_empty_classic_group_becomes_a_consumer_group_with_its_offsets(
    cluster: Cluster, a: Consumer
) -> None:
    commit(cluster, -1, "")
    assert GROUP in cluster.shard.classic_groups
    a.join()
    assert GROUP not in cluster.shard.classic_groups
    cluster.start()
    assert GROUP not in cluster.shard.classic_groups
    assert cluster.groups.fetch(GROUP, [TOPIC_PARTITION]).reply == {
        TOPIC_PARTITION: CommittedOffset(7)
    }


def test_only_an_empty_group_is_deleted_and_it_leaves_no_records(
    cluster: Cluster, a: Consumer
) -> None:
    a.join(topics=None, regex="t")
    commit(cluster, 2, "a")
    assert isinstance(cluster.groups.delete_group(GROUP).reply, NonEmptyGroup)
    a.leave()
    cluster.groups.delete_group(GROUP)
    for _ in range(2):
        assert not cluster.shard.consumer_groups
        assert not cluster.shard.classic_groups
        assert not cluster.shard.offsets
        cluster.start()


def test_offsets_of_topics_without_subscribers_expire(cluster: Cluster, a: Consumer) -> None:
    a.join()
    commit(cluster, 2, "a")
    week_ms = cluster.config.offsets_retention_minutes * 60_000
    for _ in range(week_ms // 40_000 + 20):
        cluster.pass_ms(40_000)
        a.beat()
    assert cluster.shard.offsets
    a.leave()
    cluster.pass_ms(700_000)
    assert not cluster.shard.offsets
    assert not cluster.shard.consumer_groups


def test_a_rebalance_is_logged_with_its_reason(cluster: Cluster, a: Consumer, b: Consumer) -> None:
    a.join()
    b.join()
    settle(a, b)
    first, second = cluster.shard.rebalances.of(GROUP)
    assert (first.generation, first.reason) == (2, "a joined")
    assert (second.generation, second.reason, second.members) == (3, "b joined", 2)


def test_a_consumer_member_is_written_with_null_classic_metadata() -> None:
    """Kafka reads a missing field as an empty struct and would see a classic member."""
    raw = GroupFormat().encode(member_record(GROUP, ConsumerGroupMember(id="a")))
    assert raw.value is not None
    assert raw.value.endswith(b"\x01\x00\x01\x00"), "one tag, its number, one byte: null"
