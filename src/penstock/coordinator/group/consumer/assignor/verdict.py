"""What an assignor answered, held against what can be: it may be anybody's code."""

import logging
from collections.abc import Mapping

from penstock.coordinator.group.consumer.assignor.assignor import Assignor
from penstock.coordinator.group.consumer.assignor.subscriber import Shares, Subscriber
from penstock.coordinator.group.consumer.member import NOTHING, Share, TopicIdPartition
from penstock.coordinator.group.consumer.refusal import AssignorFailed
from penstock.types import Uuid

logger = logging.getLogger(__name__)


class Impossible(Exception):
    """Shares that members cannot have."""


def worked_out(
    name: str,
    assignor: Assignor,
    subscribers: Mapping[str, Subscriber],
    partitions: Mapping[Uuid, int],
) -> Shares:
    """The share of each subscriber. Refused, and logged, if the assignor fails at it."""
    try:
        return possible(assignor(subscribers, partitions), subscribers, partitions)
    except Exception as error:  # the boundary around user code
        logger.exception("assignor %s failed; the group keeps its shares", name)
        raise AssignorFailed(f"assignor {name} failed: {type(error).__name__}: {error}") from error


def possible(
    shares: Shares, subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]
) -> Shares:
    """A share for each subscriber, if all exist, are asked for, and are given out once.

    Partitions may be left over; members that are not named get nothing.
    """
    strangers = sorted(shares.keys() - subscribers.keys())
    if strangers:
        raise Impossible(f"there are no members {', '.join(strangers)}")
    found: dict[str, Share] = dict.fromkeys(subscribers, NOTHING)
    holders: dict[TopicIdPartition, str] = {}
    for member_id, share in shares.items():
        found[member_id] = frozenset(TopicIdPartition(*each) for each in share)
        for each in found[member_id]:
            if each.topic_id not in subscribers[member_id].topics:
                raise Impossible(f"{member_id} does not read topic {each.topic_id.hex()}")
            if not 0 <= each.partition < partitions.get(each.topic_id, 0):
                raise Impossible(f"topic {each.topic_id.hex()} has no partition {each.partition}")
            holder = holders.setdefault(each, member_id)
            if holder != member_id:
                raise Impossible(f"{holder} and {member_id} both have partition {each.partition}")
    return found
