"""Converts between tasks and the partitions that the classic protocol assigns."""

from collections.abc import Iterable

from penstock.coordinator.group.consumer.group import Topics
from penstock.coordinator.group.migration.assignment import NamedIndexes
from penstock.coordinator.group.streams.records import Topology
from penstock.coordinator.group.streams.task import TaskId, Tasks
from penstock.coordinator.group.streams.topology import sources
from penstock.types import TopicPartition

LAST_NUMBER = (1 << 31) - 1


def is_numbered(topology: Topology) -> bool:
    """Whether all subtopologies have numbers as ids: the classic protocol allows no others."""
    return all(_is_number(each.subtopology_id) for each in topology.subtopologies)


def _is_number(text: str) -> bool:
    """Whether the text is a non-negative Java `int`, spelled as Java does.

    Two spellings of one number would name the same task.
    """
    if len(text) > len(str(LAST_NUMBER)) or not (text.isascii() and text.isdecimal()):
        return False
    return int(text) <= LAST_NUMBER and str(int(text)) == text


def tasks_with(named: Iterable[NamedIndexes], topology: Topology) -> Tasks:
    """The tasks that any of these partitions belong to."""
    read = {name: each.subtopology_id for each in topology.subtopologies for name in sources(each)}
    return frozenset(
        TaskId(read[each.topic], index)
        for each in named
        if each.topic in read
        for index in each.partitions
    )


def partitions_of(
    tasks: Tasks, topology: Topology, topics: Topics
) -> list[tuple[TopicPartition, TaskId]]:
    """Every partition that the tasks read, with its task; in Kafka Streams' order of partitions."""
    read = {each.subtopology_id: sources(each) for each in topology.subtopologies}
    return sorted(
        (TopicPartition(name, task.partition), task)
        for task in tasks
        for name in read.get(task.subtopology, ())
        if name in topics and task.partition in topics[name].partitions
    )
