"""Moves a group's offsets: target, partitions, and whether it is possible.

These are the committed offsets or, for a share group, the start offsets of its partitions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.groups import alter_committed, committed_offsets, describe_group
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.partition_scope import chosen_partitions
from penstock.client.position import Found, Position, find_offsets
from penstock.client.share_groups import alter_share_offsets, is_share_group, share_offsets
from penstock.errors import ConfigError, ErrorCode
from penstock.types import Offset, TopicPartition

Before: TypeAlias = Mapping[TopicPartition, Offset | None]
"""The offsets of a group; None where a share group has not started to read."""


@dataclass(frozen=True, slots=True)
class Target:
    """One of: a position in each partition, a shift from the committed offset, given offsets."""

    position: Position | None = None
    shift: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None


async def offsets_before(client: Client, group: str) -> Before:
    if not await is_share_group(client, group):
        return {tp: each.offset for tp, each in (await committed_offsets(client, group)).items()}
    return {
        tp: Offset(each.start) if each.start >= 0 else None
        for tp, each in (await share_offsets(client, group)).items()
    }


async def offsets_of(
    client: Client,
    partitions: Sequence[TopicPartition],
    target: Target,
    before: Before,
) -> dict[TopicPartition, Found]:
    """The new offset of each partition, within the partition's range."""
    if target.position is not None:
        return await find_offsets(
            client, partitions, target.position, IsolationLevel.READ_UNCOMMITTED
        )
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    found = {}
    for each in partitions:
        low, high = starts[each].offset, ends[each].offset
        if target.offsets is not None:
            wanted = target.offsets[each]
        else:  # relative to its offset, or without one to the end, where a consumer would start
            at = before.get(each)
            wanted = (high if at is None else at) + (target.shift or 0)
        found[each] = Found(wanted, Offset(min(max(wanted, low), high)))
    return found


async def in_scope(
    client: Client,
    group: str,
    scope: Sequence[str],
    target: Target,
    before: Before,
) -> list[TopicPartition]:
    """The partitions to move: those named, else those in the file, else those with offsets."""
    if not scope:
        partitions = sorted(before if target.offsets is None else target.offsets)
        if not partitions:
            raise ConfigError(f"group {group} has no offsets: name the topics with --topic")
        return partitions
    partitions = await chosen_partitions(client, scope)
    if target.offsets is not None:
        partitions = [each for each in partitions if each in target.offsets]
    return partitions


async def state_with_members(client: Client, group: str) -> str | None:
    """The state of a group whose offsets cannot be reset now; None if they can."""
    try:
        state = (await describe_group(client, group)).state
    except BrokerRefused as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise
    return None if state in {"Empty", "Dead"} else state


async def commit(client: Client, group: str, offsets: dict[TopicPartition, Offset]) -> None:
    """Set the offsets. Fails while the group has members, which would commit their own again."""
    try:
        if await is_share_group(client, group):
            await alter_share_offsets(client, group, offsets)
        else:
            await alter_committed(client, group, offsets)
    except BrokerRefused as error:
        if error.code not in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NON_EMPTY_GROUP}:
            raise
        state = (await describe_group(client, group)).state
        raise BrokerRefused(
            ErrorCode.NON_EMPTY_GROUP,
            f"group {group}",
            f"it is {state}: stop its consumers first",
        ) from None
