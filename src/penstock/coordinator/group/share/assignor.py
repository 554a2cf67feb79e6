"""The simple assignor: balanced first, then as sticky as that allows.

Every partition has at least one member. With more members than partitions, each member has one
partition and the members are spread evenly over the partitions; otherwise the partitions are spread
evenly over the members.
"""

from collections.abc import Iterable, Mapping, Set

from penstock.coordinator.group.consumer.assignor.subscriber import Subscriber
from penstock.coordinator.group.consumer.member import Assignment
from penstock.types import TopicIdPartition, Uuid

NAME = "simple"


def simple(
    subscribers: Mapping[str, Subscriber], partitions: Iterable[TopicIdPartition]
) -> dict[str, Assignment]:
    """The assignment of each member; `partitions` are those that have state."""
    wanted = sorted(partitions)
    found: dict[str, set[TopicIdPartition]] = {each: set() for each in sorted(subscribers)}
    readers = {
        topic: [each for each in found if topic in subscribers[each].topics]
        for topic in {each.topic_id for each in wanted}
    }
    wanted = [each for each in wanted if readers[each.topic_id]]
    if not wanted:
        return {each: frozenset() for each in subscribers}
    _one_member_each(wanted, readers, subscribers, found)
    _one_partition_each(wanted, subscribers, found)
    return {member: frozenset(mine) for member, mine in found.items()}


def _one_member_each(
    wanted: list[TopicIdPartition],
    readers: Mapping[Uuid, list[str]],
    subscribers: Mapping[str, Subscriber],
    found: dict[str, set[TopicIdPartition]],
) -> None:
    least, larger = divmod(len(wanted), len(found))
    open_ones = []
    for partition in wanted:
        keeps = None
        for member in readers[partition.topic_id]:
            load = len(found[member])
            has_room = load < least or (load == least and larger > 0)
            if has_room and partition in subscribers[member].held:
                keeps = member
                break
        if keeps is None:
            open_ones.append(partition)
            continue
        larger -= len(found[keeps]) == least
        found[keeps].add(partition)
    # Partitions that few members can read go first: the others can even out the load.
    for partition in sorted(open_ones, key=lambda each: len(readers[each.topic_id])):
        member = min(readers[partition.topic_id], key=lambda each: (len(found[each]), each))
        found[member].add(partition)


def _one_partition_each(
    wanted: list[TopicIdPartition],
    subscribers: Mapping[str, Subscriber],
    found: dict[str, set[TopicIdPartition]],
) -> None:
    """Members that have nothing share partitions, those with the fewest members first."""
    members = dict.fromkeys(wanted, 0)
    for mine in found.values():
        for each in mine:
            members[each] += 1
    idle = [member for member, mine in found.items() if not mine]
    most = -(-len(found) // len(wanted))
    rest = []
    for member in idle:
        kept = _fewest(subscribers[member].held & members.keys(), members)
        if (
            kept is not None
            and kept.topic_id in subscribers[member].topics
            and members[kept] < most
        ):
            found[member].add(kept)
            members[kept] += 1
        else:
            rest.append(member)
    for member in rest:
        topics = subscribers[member].topics
        chosen = _fewest({each for each in wanted if each.topic_id in topics}, members)
        if chosen is not None:
            found[member].add(chosen)
            members[chosen] += 1


def _fewest(
    some: Set[TopicIdPartition], members: Mapping[TopicIdPartition, int]
) -> TopicIdPartition | None:
    return min(some, key=lambda each: (members[each], each), default=None)
