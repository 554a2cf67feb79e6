"""Watches a group for some seconds, for `why`, through the protocol and the brokers' HTTP pages."""

import asyncio
from collections.abc import Collection, Mapping

import msgspec

from penstock.advice.broker_page import page_of
from penstock.advice.group_lag import GroupProgress, PartitionProgress
from penstock.client.cluster import Client
from penstock.client.group_description import GroupDescription
from penstock.client.groups import committed_offsets, describe_group, find_coordinator
from penstock.client.listing import LATEST
from penstock.client.offsets import list_offsets
from penstock.client.record_times import next_batches
from penstock.client.route import ToCoordinator
from penstock.clock import Clock, SystemClock
from penstock.coordinator.group.activity import GroupActivity
from penstock.types import Offset, TopicPartition


class FetchesPage(msgspec.Struct, frozen=True):
    """A partition, from its leader's page `/fetches`."""

    topic: str
    partition: int
    bytes_out: int
    waiting_fetches: int


class _Look(msgspec.Struct, frozen=True):
    """A group's offsets and the ends of its partitions at one moment."""

    committed: Mapping[TopicPartition, Offset]
    ends: Mapping[TopicPartition, Offset]
    pages: Mapping[TopicPartition, FetchesPage]


async def group_progress(
    client: Client, group: str, seconds: float, *, patience_ms: int = 30_000
) -> GroupProgress:
    """Watch the group. Data of pages that cannot be read, as with Apache Kafka or behind a
    firewall, is left unknown.
    """
    described = await describe_group(client, group)
    before = await _look(client, described)
    await asyncio.sleep(seconds)
    after = await _look(client, described)
    coordinator = await find_coordinator(client, ToCoordinator(group))
    activity = await page_of(
        client, coordinator, "/groups/activity", {"group": group}, GroupActivity
    )
    times = {
        TopicPartition(each.topic, each.partition): each.commit_ms
        for each in (activity.commits if activity else ())
    }
    holders = {tp: member.id for member in described.members for tp in member.partitions}
    standing = {tp: at for tp, at in after.committed.items() if at == before.committed.get(tp)}
    behind = {tp: at for tp, at in standing.items() if at < after.ends.get(tp, 0)}
    batches = await next_batches(client, behind)
    clock: Clock = SystemClock()
    return GroupProgress(
        group,
        clock.now_ms(),
        {each.id: each.client_id for each in described.members},
        [
            PartitionProgress(
                tp,
                end,
                max(end - after.committed.get(tp, Offset(0)), 0),
                end - before.ends.get(tp, end),
                after.committed.get(tp, Offset(0)) - before.committed.get(tp, Offset(0)),
                holders.get(tp),
                times.get(tp),
                _fetched(before, after, tp),
                after.pages[tp].waiting_fetches if tp in after.pages else None,
                batches[tp].size_bytes if tp in batches else None,
            )
            for tp, end in sorted(after.ends.items())
        ],
        activity.history if activity else None,
        activity.refused_commits if activity else (),
        patience_ms if activity else int(seconds * 1000),
    )


def _fetched(before: _Look, after: _Look, tp: TopicPartition) -> int | None:
    if tp not in before.pages or tp not in after.pages:
        return None
    return after.pages[tp].bytes_out - before.pages[tp].bytes_out


async def _look(client: Client, group: GroupDescription) -> _Look:
    committed = {
        tp: each.offset for tp, each in (await committed_offsets(client, group.id)).items()
    }
    every = {*committed, *(tp for member in group.members for tp in member.partitions)}
    ends = await list_offsets(client, dict.fromkeys(every, LATEST))
    pages = await _fetches(client, every)
    return _Look(committed, {tp: each.offset for tp, each in ends.items()}, pages)


async def _fetches(
    client: Client, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, FetchesPage]:
    brokers = (await client.cluster()).brokers
    found: dict[TopicPartition, FetchesPage] = {}
    for leader, led in (await client.by_leader(partitions)).items():
        for topic in sorted({each.topic for each in led}):
            query, kind = {"topic": topic}, list[FetchesPage]
            page = await page_of(client, brokers[leader], "/fetches", query, kind)
            found |= {TopicPartition(each.topic, each.partition): each for each in page or ()}
    return found
