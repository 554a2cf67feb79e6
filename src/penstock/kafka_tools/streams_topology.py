"""The topics of a streams group's topology. Pure."""

from collections.abc import Iterable

from penstock.wire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Subtopology,
    TaskIds,
)


def _subtopologies(group: DescribedGroup) -> list[Subtopology]:
    return [] if group.topology is None else group.topology.subtopologies or []


def input_topics(group: DescribedGroup) -> list[str]:
    """The topics of users that the group reads, without its internal topics."""
    internal = set(internal_topics(group))
    found = {name for each in _subtopologies(group) for name in each.source_topics}
    return sorted(found - internal)


def internal_topics(group: DescribedGroup) -> list[str]:
    """The group's internal topics: repartition topics and changelogs of stores."""
    return sorted(
        {
            info.name
            for each in _subtopologies(group)
            for info in (*each.repartition_source_topics, *each.state_changelog_topics)
        }
    )


def tasks(assignment: Assignment, prefix: str = "") -> str:
    """Tasks as `ACTIVE: 0:[0,1]; STANDBY: 1:[0]; `."""
    kinds = {
        "ACTIVE": assignment.active_tasks,
        "STANDBY": assignment.standby_tasks,
        "WARMUP": assignment.warmup_tasks,
    }
    return "".join(f"{prefix}{kind}: {_spelled(ids)}" for kind, ids in kinds.items() if ids)


def _spelled(ids: Iterable[TaskIds]) -> str:
    return "".join(
        f"{each.subtopology_id}:[{','.join(map(str, sorted(each.partitions)))}]; "
        for each in sorted(ids, key=lambda task: task.subtopology_id)
    )
