"""Endpoints sent to classic members of a streams group, for interactive queries."""

from uuid import UUID

import pytest

from penstock.coordinator.group.streams.member import StreamsEndpoint
from support.groups.classic_streams_members import ClassicThread, told_hosts
from support.groups.streams_members import StreamsCluster, StreamsThread, settle

ONE, TWO, THREE = (str(UUID(int=number)) for number in (1, 2, 3))


def joined(cluster: StreamsCluster, *threads: ClassicThread) -> StreamsThread:
    """A member of the streams protocol beside classic ones, once the group is stable."""
    new = StreamsThread(cluster, "new", process=TWO)
    new.join(endpoint=StreamsEndpoint("new", 1))
    settled(new, *threads)
    return new


def settled(new: StreamsThread, *threads: ClassicThread) -> None:
    for _ in range(40):
        for each in threads:
            each.step()
        new.beat()
    assert new.cluster.group.state.value == "Stable"
    assert all(each.next == each.beat for each in threads), "nobody has to join again"


def test_all_classic_members_learn_the_final_location_of_every_task() -> None:
    cluster = StreamsCluster()
    a = ClassicThread(cluster, ONE, "a:1", new_id="a", waits_ms=0)
    b = ClassicThread(cluster, THREE, "b:1", new_id="b", waits_ms=0)
    new = joined(cluster, a, b)
    truth = {
        "new:1": sorted(task.partition for task in new.has.active),
        "a:1": sorted(a.has),
        "b:1": sorted(b.has),
    }
    assert sorted(map(len, truth.values())) == [1, 1, 2]
    assert dict(told_hosts(a.reported)) == dict(told_hosts(b.reported)) == truth
    reported = a.reported, b.reported
    settled(new, a, b)
    assert a.reported is reported[0], "once is enough"
    assert b.reported is reported[1]


@pytest.mark.parametrize(
    ("stated", "reported"),
    [
        ("http://a:1", "a:1"),
        ("[::1]:1", "::1:1"),
        ("my-app://[fe80::1%25eth0]:1", "fe80::1%25eth0:1"),
    ],
)
def test_a_classic_member_finds_its_own_endpoint_among_those_sent(
    stated: str, reported: str
) -> None:
    """Kafka Streams compares host and port, and rejoins until it finds them."""
    cluster = StreamsCluster()
    a = ClassicThread(cluster, ONE, stated, new_id="a", waits_ms=0)
    joined(cluster, a)
    assert sorted(host for host, _ in told_hosts(a.reported)) == sorted([reported, "new:1"])


def test_threads_of_one_process_share_an_entry() -> None:
    """Of two entries, Kafka Streams would use only the last."""
    cluster = StreamsCluster()
    a = ClassicThread(cluster, ONE, "a:1", new_id="a", waits_ms=0)
    b = ClassicThread(cluster, ONE, "a:1", new_id="b", waits_ms=0)
    new = joined(cluster, a, b)
    mine = sorted(task.partition for task in new.has.active)
    wanted = [("a:1", sorted(a.has | b.has)), ("new:1", mine)]
    assert sorted(told_hosts(a.reported)) == wanted
    assert sorted(told_hosts(b.reported)) == wanted


def test_threads_of_one_process_share_an_entry_in_the_streams_protocol_too() -> None:
    cluster, endpoint = StreamsCluster(), StreamsEndpoint("a", 1)
    a, b = (StreamsThread(cluster, name, process=ONE) for name in "ab")
    a.join(endpoint=endpoint)
    b.join(endpoint=endpoint)
    settle(a, b)
    assert a.has.active
    assert b.has.active
    (entry,) = a.beat(endpoint_epoch=-1).endpoints or ()
    assert entry == (endpoint, {"t": [0, 1, 2, 3]}, {})


def test_the_endpoint_of_a_leaving_member_is_removed() -> None:
    cluster = StreamsCluster()
    a = ClassicThread(cluster, ONE, "a:1", new_id="a", waits_ms=0)
    new = joined(cluster, a)
    other = StreamsThread(cluster, "other", process=THREE)
    other.join(endpoint=StreamsEndpoint("other", 1))
    other.beat(epoch=-1)
    settled(new, a)
    assert sorted(host for host, _ in told_hosts(a.reported)) == ["a:1", "new:1"]
