"""Matches a topology with the cluster's topics: tasks, and internal topics to create. Pure.

A repartition topic without a partition count gets the highest count of the subtopologies that feed
it; topics that are joined must have equal counts; a changelog has one partition per task.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

import msgspec

from penstock.coordinator.group.consumer.group import Topics
from penstock.coordinator.group.streams.errors import InvalidTopology
from penstock.coordinator.group.streams.records import Topology
from penstock.coordinator.group.streams.task import TaskId
from penstock.wire.messages.streams_group_topology_value import (
    CopartitionGroup,
    Subtopology,
    TopicInfo,
)

MOST_TASKS = 20_000
"""The most tasks of a topology. They are computed in the event loop, where more would block
requests.
"""


class StatusCode(IntEnum):
    """Values are Kafka's numbers in heartbeat responses."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class GroupStatus(msgspec.Struct, frozen=True):
    """A condition of the group that its members have to know."""

    code: StatusCode
    detail: str


class StreamsInternalTopic(msgspec.Struct, frozen=True):
    """An internal topic of the application, which the coordinator creates."""

    name: str
    partitions: int
    replication_factor: int
    """0: the default of the cluster."""
    configs: Mapping[str, str]


class ConfiguredTopology(msgspec.Struct, frozen=True):
    """The topology on the present topics. Without `status`, its tasks can be assigned."""

    tasks: tuple[TaskId, ...] = ()
    missing: tuple[StreamsInternalTopic, ...] = ()
    status: GroupStatus | None = None


class _NotReadyError(Exception):
    def __init__(self, code: StatusCode, detail: str) -> None:
        self.status = GroupStatus(code, detail)


def topics_of(topology: Topology) -> frozenset[str]:
    """Every topic that the topology reads or keeps."""
    return source_topics(topology) | frozenset(
        info.name for each in topology.subtopologies for info in each.state_changelog_topics
    )


def source_topics(topology: Topology) -> frozenset[str]:
    """The topics that are read, and have committed offsets."""
    return frozenset(name for each in topology.subtopologies for name in sources(each))


def stateful(topology: Topology) -> frozenset[str]:
    """The subtopologies that keep state."""
    return frozenset(
        each.subtopology_id for each in topology.subtopologies if each.state_changelog_topics
    )


def sources(subtopology: Subtopology) -> list[str]:
    repartitioned = [info.name for info in subtopology.repartition_source_topics]
    return [*subtopology.source_topics, *repartitioned]


def named_topics(subtopology: Subtopology) -> Iterator[str]:
    """Every topic that a subtopology names, also those that it only writes."""
    yield from subtopology.source_topics
    yield from subtopology.repartition_sink_topics
    for info in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
        yield info.name


def configured(topology: Topology, topics: Topics) -> ConfiguredTopology:
    try:
        return _configured(topology, {name: len(each.partitions) for name, each in topics.items()})
    except _NotReadyError as error:
        return ConfiguredTopology(status=error.status)


def _configured(topology: Topology, existing: Mapping[str, int]) -> ConfiguredTopology:
    """`existing`: the number of partitions of each topic."""
    wanted = {name for each in topology.subtopologies for name in each.source_topics}
    internal = {
        info.name for each in topology.subtopologies for info in each.repartition_source_topics
    }
    lacking = sorted(wanted - internal - existing.keys())
    if lacking:
        detail = f"Source topics {', '.join(lacking)} are missing."
        raise _NotReadyError(StatusCode.MISSING_SOURCE_TOPICS, detail)
    counts = {name: existing[name] for name in wanted - internal}
    fixed = _repartition_counts(topology, counts)
    for each in topology.subtopologies:
        for together in each.copartition_groups:
            _copartition(each, together, counts, fixed)
    counts_of = {
        each.subtopology_id: max((counts[name] for name in sources(each)), default=0)
        for each in topology.subtopologies
    }
    expected: dict[str, tuple[TopicInfo, int]] = {}
    for each in topology.subtopologies:
        if not counts_of[each.subtopology_id]:
            raise InvalidTopology(f"No source topics found for subtopology {each.subtopology_id}")
        for info in each.repartition_source_topics:
            expected[info.name] = (info, counts[info.name])
        for info in each.state_changelog_topics:
            if info.name not in each.source_topics:
                expected[info.name] = (info, counts_of[each.subtopology_id])
    total = sum(counts_of.values())
    if total > MOST_TASKS:
        raise InvalidTopology(f"The topology has {total} tasks, at most {MOST_TASKS} are allowed.")
    missing = tuple(_missing(expected, existing))
    names = ", ".join(each.name for each in missing)
    return ConfiguredTopology(
        tuple(
            TaskId(subtopology, partition)
            for subtopology, count in counts_of.items()
            for partition in range(count)
        ),
        missing,
        GroupStatus(StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: [{names}]")
        if missing
        else None,
    )


def _missing(
    expected: Mapping[str, tuple[TopicInfo, int]], existing: Mapping[str, int]
) -> Iterable[StreamsInternalTopic]:
    for name, (info, count) in sorted(expected.items()):
        found = existing.get(name)
        if found is None:
            configs = {each.key: each.value for each in info.topic_configs}
            yield StreamsInternalTopic(name, count, info.replication_factor, configs)
        elif found != count:
            raise _NotReadyError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {count}, "
                f"found {found}",
            )


def _repartition_counts(topology: Topology, counts: dict[str, int]) -> frozenset[str]:
    """Add the partition counts of repartition topics to `counts`; returns the topics that state
    one.
    """
    said = {
        info.name: info.partitions
        for each in topology.subtopologies
        for info in each.repartition_source_topics
    }
    counts |= {name: count for name, count in said.items() if count > 0}
    fed = {name for each in topology.subtopologies for name in each.repartition_sink_topics}
    open_ = {name for name, count in said.items() if count <= 0}
    if not open_ <= fed:
        raise InvalidTopology(
            "Failed to compute number of partitions for all repartition topics, because a "
            "repartition source topic is never used as a sink topic."
        )
    _settle(topology, open_, counts)
    if not open_ <= counts.keys():
        raise InvalidTopology(
            "Failed to compute number of partitions for all repartition topics. There may be "
            "loops in the topology that cannot be resolved."
        )
    return frozenset(name for name, count in said.items() if count > 0)


def _settle(topology: Topology, open_: set[str], counts: dict[str, int]) -> None:
    """Add the counts of the topics in `open_`: the most partitions of whatever feeds them.

    Visits each subtopology once, when all its sources are known: a topology may be long. Only in
    a loop, such as a subtopology that reads what it writes, do sources count that are known so
    far, as in Kafka.
    """
    sinks = {id(each): {*each.repartition_sink_topics} & open_ for each in topology.subtopologies}
    unknown = {id(each): {*sources(each)} & open_ for each in topology.subtopologies}
    readers: dict[str, list[Subtopology]] = {}
    feeders: dict[str, list[Subtopology]] = {}
    for each in topology.subtopologies:
        for name in unknown[id(each)]:
            readers.setdefault(name, []).append(each)
        for name in sinks[id(each)]:
            feeders.setdefault(name, []).append(each)
    waiting = Counter({name: len(feeding) for name, feeding in feeders.items()})
    ready = [each for each in topology.subtopologies if not unknown[id(each)]]
    partly = [
        name
        for each in topology.subtopologies
        if any(source in counts for source in sources(each))
        for name in sinks[id(each)]
    ]

    def settle(name: str) -> None:
        counts[name] = max(
            (
                counts[source]
                for each in feeders[name]
                for source in sources(each)
                if source in counts
            ),
            default=0,
        )
        for reader in readers.get(name, ()):
            unknown[id(reader)].discard(name)
            if not unknown[id(reader)]:
                ready.append(reader)
            partly.extend(sinks[id(reader)])

    while ready or partly:
        if ready:
            for name in sinks[id(ready.pop())]:
                waiting[name] -= 1
                if not waiting[name] and name not in counts:
                    settle(name)
        elif (name := partly.pop()) not in counts:
            settle(name)


def _copartition(
    subtopology: Subtopology,
    together: CopartitionGroup,
    counts: dict[str, int],
    fixed: frozenset[str],
) -> None:
    """Topics that are joined get the same number of partitions, or must have it."""
    plain = [subtopology.source_topics[index] for index in together.source_topics]
    internal = [
        subtopology.repartition_source_topics[index].name
        for index in together.repartition_source_topics
    ]
    said = [name for name in internal if name in fixed]
    deciding = plain or said or internal
    if not deciding:
        return
    if len({counts[name] for name in plain or said}) > 1:
        raise _NotReadyError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: "
            f"[{{{', '.join(f'{name}={counts[name]}' for name in sorted(plain or said))}}}]",
        )
    count = max(counts[name] for name in deciding)
    for name in internal:
        if name in fixed and counts[name] != count:
            raise _NotReadyError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{counts[name]}] of repartition topic [{name}] doesn't "
                f"match number of partitions [{count}] of the source topic.",
            )
        counts[name] = count
