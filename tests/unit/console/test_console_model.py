"""How the console presents a snapshot of a cluster."""

import re
from dataclasses import replace

import msgspec
from starlette.routing import Route

from penstock.advice.snapshot import ClusterSnapshot, GroupState
from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.client.group_description import GroupDescription, MemberDescription
from penstock.client.log_dirs import LogDirDescription, ReplicaInfo
from penstock.client.metadata import BrokerNode, ClusterMetadata, PartitionMetadata, TopicMetadata
from penstock.clock import SystemClock
from penstock.console import model
from penstock.console.api import described
from penstock.console.app import console
from penstock.console.render import number, seconds, size, time_text
from penstock.console.replicas import ReplicaPage, picture
from penstock.console.watch import ClusterLook, ClusterWatch, lag_seconds, leader_sizes, rates
from penstock.http.access import HttpAccess
from penstock.types import BrokerId, LeaderEpoch, TopicPartition, Uuid

ONE = BrokerId(1)
TP = TopicPartition("t", 0)
PARTITION = PartitionMetadata(0, ONE, LeaderEpoch(3), (ONE, BrokerId(2)), (ONE,), ())
TOPIC = TopicMetadata("t", Uuid(bytes(16)), is_internal=False, partitions={0: PARTITION})
MEMBER = MemberDescription("m", None, "c", "h", (TP,))
GROUP = GroupState(
    GroupDescription("g", "Stable", "consumer", "range", (MEMBER,)), {TP: 7}, {TP: 4_000}
)
DIRECTORY = LogDirDescription("/d", None, {TP: ReplicaInfo(500, 0, is_future=False)}, 100, 40)
SNAPSHOT = ClusterSnapshot(
    ClusterMetadata("c", ONE, {ONE: BrokerNode(ONE, Address("h", 9092), None)}),
    [TOPIC],
    log_dirs={ONE: [DIRECTORY]},
    groups=[GROUP],
)
LOOK = ClusterLook(10_000, SNAPSHOT, {TP: 5}, {TP: 25}, {"t": 4.0}, (), {TP: 500}, {"t": 80.0})


def test_a_snapshot_becomes_figures() -> None:
    found = model.cluster(LOOK)
    assert (found.topics, found.partitions, found.groups, found.records_per_second) == (1, 1, 1, 4)
    assert found.brokers == [model.Broker(1, "h", 9092, None, True, 100, 40)]
    assert model.topics(LOOK) == [model.Topic("t", False, 1, 2, 1, 20, 500, 4.0, 1, 7, 80.0)]
    assert model.partitions(LOOK, "t") == [model.Partition("t", 0, 1, 3, [1, 2], [1], 5, 25)]
    assert model.partitions(LOOK, "none") is None


def test_a_group_is_shown_with_its_members_and_offsets() -> None:
    detail = model.group(LOOK, "g")
    assert detail is not None
    assert detail.group == model.groups(LOOK)[0]
    assert detail.offsets == [model.GroupOffset("t", 0, 7, "c", 6.0)]
    assert detail.members == [model.Member("m", "c", "h", ["t-0"])]
    assert (detail.group.unread_since_ms, detail.group.lag_seconds) == (4_000, 6.0)
    assert model.group(LOOK, "none") is None


def test_lag_in_seconds_is_zero_at_the_end_and_unknown_without_a_time() -> None:
    assert lag_seconds(GroupState(GROUP.group, {TP: 0}), 9_000) == 0.0
    assert lag_seconds(GroupState(GROUP.group, {TP: 3}), 9_000) is None
    assert lag_seconds(GroupState(GROUP.group, {TP: 3}, {TP: 20_000}), 9_000) == 0.0, "clocks"


def test_rates_count_new_records_between_two_snapshots() -> None:
    ends = LOOK.ends
    assert rates(None, {}, {TP: 25}, 10_000) == {"t": 0.0}
    assert rates(LOOK, ends, {TP: 35, TopicPartition("t", 1): 99}, 12_000) == {"t": 5.0}
    assert rates(LOOK, ends, {TP: 3}, 12_000) == {"t": 0.0}, "a topic made anew"


def test_sizes_are_those_of_the_leader() -> None:
    other = LogDirDescription("/d", None, {TP: ReplicaInfo(900, 0, is_future=False)}, 100, 40)
    seen = replace(SNAPSHOT, log_dirs={BrokerId(2): [other], ONE: [DIRECTORY]})
    assert leader_sizes(seen) == {TP: 500}
    assert leader_sizes(replace(seen, log_dirs={})) == {}


def test_replicas_are_drawn_on_one_scale() -> None:
    (partition,) = model.partitions(LOOK, "t") or []
    bars = picture(partition, [ReplicaPage(1, 0, 3, 100, 150, 200), ReplicaPage(1, 9, 3, 0, 0, 0)])
    assert [(bar.broker, bar.role, bar.in_sync) for bar in bars] == [
        (1, "leader", True),
        (2, "follower", False),
    ]
    assert (bars[0].start, bars[0].high_watermark, bars[0].end) == (0, 50, 100)
    assert bars[1].replica is None


def test_the_api_document_describes_every_route_and_every_type() -> None:
    found = described()
    reported = {(method, path) for path, each in found["paths"].items() for method in each}
    watch = ClusterWatch(Client([Address("127.0.0.1", 1)]), SystemClock())
    served = {
        (method.lower(), route.path)
        for route in console(watch, HttpAccess(None)).routes
        if isinstance(route, Route) and route.path.startswith("/api/v1/")
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert reported == served
    named = set(re.findall(r"#/components/schemas/(\w+)", msgspec.json.encode(found).decode()))
    assert named == set(found["components"]["schemas"])
    (topic,) = found["paths"]["/api/v1/topics/{topic}/partitions"]["get"]["parameters"]
    assert (topic["in"], topic["required"]) == ("path", True)
    schemes = found["components"]["securitySchemes"]
    assert {name for each in found["security"] for name in each} == set(schemes)


def test_numbers_are_readable() -> None:
    assert [size(each) for each in (0, 1023, 1536, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 TiB",
    ]
    assert [number(each) for each in (1234567, 0.25, 1234.5)] == ["1,234,567", "0.2", "1,234"]
    assert time_text(0) == "1970-01-01 00:00:00 UTC"
    times = (None, 0.25, 128.4, 3000, 12_000, 200_000)
    assert [seconds(each) for each in times] == [
        "-",
        "0.2 s",
        "128 s",
        "50 min",
        "3 h 20 min",
        "2 d 7 h",
    ]
