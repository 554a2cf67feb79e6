"""Runs an assignor and validates what it returns: it may be user code."""

import logging
from collections.abc import Mapping

from penstock.coordinator.group.consumer.assignor.assignor import Assignor
from penstock.coordinator.group.consumer.assignor.subscriber import GroupAssignment, Subscriber
from penstock.coordinator.group.consumer.errors import AssignorFailed
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, Assignment
from penstock.types import TopicIdPartition, Uuid

logger = logging.getLogger(__name__)


class InvalidAssignment(Exception):
    """The assignor returned assignments that members cannot have."""


def computed_assignment(
    name: str,
    assignor: Assignor,
    subscribers: Mapping[str, Subscriber],
    partitions: Mapping[Uuid, int],
) -> GroupAssignment:
    """The assignment of each subscriber. Raises and logs `AssignorFailed` if the assignor fails."""
    try:
        return validated(assignor(subscribers, partitions), subscribers, partitions)
    except Exception as error:  # the boundary around user code
        logger.exception("assignor %s failed; the group keeps its assignment", name)
        raise AssignorFailed(f"assignor {name} failed: {type(error).__name__}: {error}") from error


def validated(
    assignments: GroupAssignment,
    subscribers: Mapping[str, Subscriber],
    partitions: Mapping[Uuid, int],
) -> GroupAssignment:
    """An assignment for each subscriber, if every partition exists, is subscribed to, and is
    assigned once.

    Partitions may be left out; members that are left out get none.
    """
    strangers = sorted(assignments.keys() - subscribers.keys())
    if strangers:
        raise InvalidAssignment(f"there are no members {', '.join(strangers)}")
    found: dict[str, Assignment] = dict.fromkeys(subscribers, NO_PARTITIONS)
    holders: dict[TopicIdPartition, str] = {}
    for member_id, assignment in assignments.items():
        found[member_id] = frozenset(TopicIdPartition(*each) for each in assignment)
        for each in found[member_id]:
            if each.topic_id not in subscribers[member_id].topics:
                topic = each.topic_id.hex()
                raise InvalidAssignment(f"{member_id} does not subscribe to topic {topic}")
            if not 0 <= each.partition < partitions.get(each.topic_id, 0):
                raise InvalidAssignment(
                    f"topic {each.topic_id.hex()} has no partition {each.partition}"
                )
            holder = holders.setdefault(each, member_id)
            if holder != member_id:
                raise InvalidAssignment(
                    f"{holder} and {member_id} both have partition {each.partition}"
                )
    return found
