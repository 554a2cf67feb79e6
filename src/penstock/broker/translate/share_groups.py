"""The shared part of requests about share groups: the state of their partitions."""

import asyncio
from collections.abc import Iterator, Mapping

from penstock.broker.context import Context
from penstock.broker.share.state_calls import DeleteState, InitializeState, SummarizeState
from penstock.broker.translate.pending_replies import replied
from penstock.coordinator.group.share.member import StateTopic
from penstock.coordinator.result import EmptyReply
from penstock.coordinator.share.state import NO_START, ShareGroupOffset, SharePartitionKey
from penstock.errors import KafkaError
from penstock.types import Uuid

EPOCHS = 1 << 30
"""First state epochs are derived from milliseconds modulo this, which is twelve days."""
NOTED_AT_A_TIME = 50
"""Partitions marked as initialized at a time: each mark is an epoch of the group."""


def lock_of(group: str, ctx: Context) -> asyncio.Lock:
    """The lock for initializing state, one request at a time: a second one would reset state that
    members already use.
    """
    locks = ctx.services.share.groups
    lock = locks.get(group)
    if lock is None:
        lock = locks[group] = asyncio.Lock()
    return lock


async def new_epoch(key: SharePartitionKey, ctx: Context) -> int | KafkaError:
    """The epoch of new state: one after the current epoch.

    Without a current one it is derived from the time. A group that was deleted and created again
    must not reuse an epoch: its dead letters would look like duplicates of the former group's, and
    be dropped.
    """
    known = await ctx.services.share.persister.call_with_retries(SummarizeState(key))
    if isinstance(known, KafkaError):
        return known
    if isinstance(known, ShareGroupOffset) and known.state_epoch > 0:
        return known.state_epoch + 1
    return ctx.services.resources.clock.now_ms() % EPOCHS + 1


async def initialize(
    group: str,
    topics: Mapping[Uuid, StateTopic],
    ctx: Context,
    starts: Mapping[tuple[Uuid, int], int] | None = None,
) -> dict[tuple[Uuid, int], KafkaError]:
    """Initialize the state of partitions, and mark them in the group; returns the failed ones.

    Partitions are marked a few at a time, since the caller may not wait for all, and those with a
    reachable coordinator come first: the others take until their calls time out.
    """
    persister = ctx.services.share.persister
    keys = [
        SharePartitionKey(group, topic_id, index)
        for topic_id, (_, partitions) in topics.items()
        for index in sorted(partitions)
    ]
    led = [each for each in keys if persister.has_coordinator(each)]
    rest = [each for each in keys if not persister.has_coordinator(each)]
    refused: dict[tuple[Uuid, int], KafkaError] = {}
    for some in (*_some_at_a_time(led), *_some_at_a_time(rest)):
        done: dict[Uuid, set[int]] = {}
        for key in some:
            topic_id, index = key.topic_id, key.partition
            start = NO_START if starts is None else starts[topic_id, index]
            epoch = await new_epoch(key, ctx)
            reply: EmptyReply | KafkaError
            if isinstance(epoch, KafkaError):
                reply = epoch
            else:
                reply = await persister.call_with_retries(InitializeState(key, epoch, start))
            if isinstance(reply, KafkaError):
                refused[topic_id, index] = reply
            else:
                done.setdefault(topic_id, set()).add(index)
        if done:
            noted = {
                topic_id: StateTopic(topics[topic_id].name, frozenset(indexes))
                for topic_id, indexes in done.items()
            }
            await replied(ctx.services.coordination.groups.share_with_state(group, noted), ctx)
    return refused


def _some_at_a_time(keys: list[SharePartitionKey]) -> Iterator[list[SharePartitionKey]]:
    for first in range(0, len(keys), NOTED_AT_A_TIME):
        yield keys[first : first + NOTED_AT_A_TIME]


async def delete_state(
    group: str, topics: Mapping[Uuid, StateTopic], ctx: Context
) -> KafkaError | None:
    """Delete the state of partitions; returns the error, if any.

    The group forgets them first: a member that joins meanwhile initializes new state.
    """
    groups = ctx.services.coordination.groups
    await replied(groups.share_without_topics(group, topics), ctx)
    left = {topic_id: set(partitions) for topic_id, (_, partitions) in topics.items()}
    for topic_id, indexes in left.items():
        while indexes:
            key = SharePartitionKey(group, topic_id, min(indexes))
            reply = await ctx.services.share.persister.call_with_retries(DeleteState(key))
            if isinstance(reply, KafkaError):
                still = {
                    each: StateTopic(topics[each].name, frozenset(kept))
                    for each, kept in left.items()
                    if kept
                }
                await replied(groups.share_with_state(group, still), ctx)
                return reply
            indexes.discard(key.partition)
    return None
