"""The data of the REST API and the pages. Pure: derived from the last look at the cluster."""

from collections.abc import Mapping

from msgspec import Struct

from penstock.advice.finding import Finding
from penstock.advice.snapshot import GroupState
from penstock.client.metadata import NO_LEADER, TopicMetadata
from penstock.console.watch import ClusterLook, lag_seconds
from penstock.types import TopicPartition


class Broker(Struct, frozen=True):
    """A broker and the space in its log directories; -1: unknown."""

    id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    disk_bytes: int
    free_bytes: int


class Cluster(Struct, frozen=True):
    """A summary of the cluster at `at_ms`."""

    cluster_id: str
    at_ms: int
    controller: int
    brokers: list[Broker]
    topics: int
    partitions: int
    groups: int
    records_per_second: float
    problems: int
    bytes_per_second: float
    """Growth of the leaders' logs."""


class Topic(Struct, frozen=True):
    """A topic. Sizes count all replicas; lag is the sum over all groups."""

    name: str
    is_internal: bool
    partitions: int
    replicas: int
    under_replicated: int
    records: int
    size_bytes: int
    records_per_second: float
    groups: int
    lag: int
    bytes_per_second: float
    """Growth of the leaders' logs."""


class Partition(Struct, frozen=True):
    """A partition: its leader, its replicas, and the range of offsets that consumers can read."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    start: int
    end: int


class Group(Struct, frozen=True):
    """A group. `unread_since_ms` is the timestamp of its oldest unread record; `lag_seconds` is the
    age of that record: 0 without lag, null if unknown.
    """

    id: str
    state: str
    type: str
    members: int
    partitions: int
    lag: int
    unread_since_ms: int | None
    lag_seconds: float | None


class Member(Struct, frozen=True):
    """A member of a group."""

    id: str
    client_id: str
    host: str
    partitions: list[str]


class GroupOffset(Struct, frozen=True):
    """A group's lag in a partition, in records and in seconds."""

    topic: str
    partition: int
    lag: int
    client_id: str | None
    lag_seconds: float | None


class GroupDetail(Struct, frozen=True):
    """A group with its members and its lag in each partition."""

    group: Group
    members: list[Member]
    offsets: list[GroupOffset]


class Problem(Struct, frozen=True):
    """A problem: since when it exists, what it means, what to do."""

    level: str
    check: str
    subject: str
    since_ms: int | None
    what: str
    meaning: str
    advice: str


class Session(Struct, frozen=True):
    """The current user. Requests without an Authorization header must repeat the
    token in X-CSRF-Token.
    """

    user: str
    role: str
    csrf_token: str


class Why(Struct, frozen=True):
    """Why a group lags, in a sentence."""

    group: str
    cause: str
    sentence: str
    advice: str


def cluster(look: ClusterLook) -> Cluster:
    seen = look.snapshot
    return Cluster(
        seen.cluster.id or "",
        look.at_ms,
        seen.cluster.controller,
        [_broker(look, each) for each in sorted(seen.cluster.brokers)],
        len(seen.topics),
        sum(len(each.partitions) for each in seen.topics),
        len(seen.groups),
        sum(look.rates.values()),
        len(look.problems),
        sum(look.byte_rates.values()),
    )


def _broker(look: ClusterLook, number: int) -> Broker:
    seen = look.snapshot
    node = next(each for each in seen.cluster.brokers.values() if each.id == number)
    dirs = [each for each in seen.log_dirs.get(node.id, ()) if each.error is None]
    return Broker(
        node.id,
        node.address.host,
        node.address.port,
        node.rack,
        node.id == seen.cluster.controller,
        sum(each.total_bytes for each in dirs) if dirs else -1,
        sum(each.usable_bytes for each in dirs) if dirs else -1,
    )


def topics(look: ClusterLook) -> list[Topic]:
    sizes: dict[str, int] = {}
    for dirs in look.snapshot.log_dirs.values():
        for each in dirs:
            for tp, replica in each.replicas.items():
                sizes[tp.topic] = sizes.get(tp.topic, 0) + replica.size
    readers: dict[str, int] = {}
    lags: dict[str, int] = {}
    for state in look.snapshot.groups:
        for topic in {tp.topic for tp in state.lags}:
            readers[topic] = readers.get(topic, 0) + 1
        for tp, lag in state.lags.items():
            lags[tp.topic] = lags.get(tp.topic, 0) + lag
    return [
        _topic(look, each, sizes, readers, lags)
        for each in sorted(look.snapshot.topics, key=lambda each: each.name)
    ]


def _topic(
    look: ClusterLook,
    topic: TopicMetadata,
    sizes: Mapping[str, int],
    readers: Mapping[str, int],
    lags: Mapping[str, int],
) -> Topic:
    name, partitions = topic.name, topic.partitions.values()
    tps = [TopicPartition(name, each.index) for each in partitions]
    return Topic(
        name,
        topic.is_internal,
        len(tps),
        max((len(each.replicas) for each in partitions), default=0),
        sum(each.leader == NO_LEADER or len(each.isr) < len(each.replicas) for each in partitions),
        sum(look.ends.get(tp, 0) - look.starts.get(tp, 0) for tp in tps),
        sizes.get(name, 0),
        look.rates.get(name, 0.0),
        readers.get(name, 0),
        lags.get(name, 0),
        look.byte_rates.get(name, 0.0),
    )


def partitions(look: ClusterLook, topic: str) -> list[Partition] | None:
    """The partitions of a topic; None if there is no such topic."""
    found = next((each for each in look.snapshot.topics if each.name == topic), None)
    if found is None:
        return None
    return [
        Partition(
            topic,
            index,
            each.leader,
            each.leader_epoch,
            list(each.replicas),
            list(each.isr),
            look.starts.get(TopicPartition(topic, index), -1),
            look.ends.get(TopicPartition(topic, index), -1),
        )
        for index, each in sorted(found.partitions.items())
    ]


def groups(look: ClusterLook) -> list[Group]:
    return [
        _group(each, look.at_ms)
        for each in sorted(look.snapshot.groups, key=lambda each: each.group.id)
    ]


def _group(state: GroupState, now_ms: int) -> Group:
    return Group(
        state.group.id,
        state.group.state,
        state.group.type,
        len(state.group.members),
        len(state.lags),
        sum(state.lags.values()),
        state.unread_since_ms,
        lag_seconds(state, now_ms),
    )


def group(look: ClusterLook, name: str) -> GroupDetail | None:
    """A group's details; None if there is no such group."""
    state = next((each for each in look.snapshot.groups if each.group.id == name), None)
    if state is None:
        return None
    holders = {tp: member.client_id for member in state.group.members for tp in member.partitions}
    return GroupDetail(
        _group(state, look.at_ms),
        [
            Member(each.id, each.client_id, each.host, [str(tp) for tp in each.partitions])
            for each in state.group.members
        ],
        [
            GroupOffset(*tp, lag, holders.get(tp), _seconds(state, tp, look.at_ms))
            for tp, lag in sorted(state.lags.items())
        ],
    )


def _seconds(state: GroupState, tp: TopicPartition, now_ms: int) -> float | None:
    if not state.lags[tp]:
        return 0.0
    since_ms = state.unread_ms.get(tp)
    return None if since_ms is None else max(now_ms - since_ms, 0) / 1000


def problems(look: ClusterLook) -> list[Problem]:
    return [_problem(each) for each in look.problems]


def _problem(each: Finding) -> Problem:
    return Problem(
        each.level,
        each.check,
        each.subject,
        each.since_ms,
        each.what,
        each.meaning,
        each.advice,
    )
