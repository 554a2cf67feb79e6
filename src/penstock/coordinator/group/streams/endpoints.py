"""The partitions at each endpoint, for interactive queries."""

from collections.abc import Set
from typing import NamedTuple

from penstock.coordinator.group.consumer.group import Topics
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.member import StreamsEndpoint
from penstock.coordinator.group.streams.task import TaskId
from penstock.coordinator.group.streams.topology import sources


class EndpointPartitions(NamedTuple):
    """An endpoint, and the partitions of its active and its standby tasks."""

    endpoint: StreamsEndpoint
    active: dict[str, list[int]]
    standby: dict[str, list[int]]


def partitions_by_endpoint(group: StreamsGroup, topics: Topics) -> list[EndpointPartitions]:
    """One entry per endpoint: threads of a process share it, and clients keep the last entry."""
    active: dict[StreamsEndpoint, set[TaskId]] = {}
    standby: dict[StreamsEndpoint, set[TaskId]] = {}
    for member in group.members.values():
        if member.endpoint is not None:
            active.setdefault(member.endpoint, set()).update(member.assigned.active)
            standby.setdefault(member.endpoint, set()).update(member.assigned.standby)
    return [
        EndpointPartitions(
            endpoint,
            _partitions(group, tasks, topics),
            _partitions(group, standby[endpoint], topics),
        )
        for endpoint, tasks in active.items()
    ]


def _partitions(group: StreamsGroup, tasks: Set[TaskId], topics: Topics) -> dict[str, list[int]]:
    assert group.topology is not None, "a group with members has a topology"
    read = {each.subtopology_id: sources(each) for each in group.topology.subtopologies}
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        for name in read.get(subtopology, ()):
            if name in topics and partition in topics[name].partitions:
                found.setdefault(name, []).append(partition)
    return found
