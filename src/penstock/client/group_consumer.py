"""A consumer that shares the partitions of its topics with the other members of its group.

    async with GroupConsumer(client, "billing") as consumer:
        consumer.subscribe(["payments"])
        while True:
            for each in await consumer.poll():
                ...
            await consumer.commit()

Rebalances happen inside `poll`: between two polls the partitions stay the member's own, as long as
polls come within `max_poll_interval_ms`. Heartbeats go on in the background.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Final, Self, assert_never

from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, PositionOutOfRange, SimpleConsumer
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.group_member import GroupMember
from penstock.client.group_offsets import NOT_A_MEMBER, STALE_EPOCH_S, CommitFailed, GroupOffsets
from penstock.client.group_settings import GroupSettings
from penstock.client.listing import by_topic
from penstock.client.membership.member import (
    Assign,
    Change,
    GroupMetadata,
    Lose,
    Revoke,
)
from penstock.clock import Clock, SystemClock
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.types import Offset, TopicPartition

CHECK_MS: Final = 1_000
NO_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class RebalanceListener:
    """Override what is needed; each is called inside `poll` or `close`."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Called with new partitions, before their first records; `seek` works here."""

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Called before partitions go to other members; `commit` works here."""

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Called for partitions that others may own already: a commit would be refused."""


class GroupConsumer:
    """A member of a group; see the module. Only one task may call it at a time.

    It needs `async with`, in one task. Leaving the block leaves the group.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        settings: GroupSettings | None = None,
        *,
        listener: RebalanceListener | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not group:
            raise ConfigError("group.id must not be empty")
        self._group, self._settings = group, settings or GroupSettings()
        self._client, self._listener = client, listener or RebalanceListener()
        self._clock = clock or SystemClock()
        self._member = GroupMember(client, group, self._settings, self._clock)
        self._membership = self._member.membership
        self._offsets = GroupOffsets(client, group, self._settings, self._member)
        # Fetches wait at the broker, so they must not share a connection with other requests.
        self._fetching = client.twin()
        self._fetcher = SimpleConsumer(self._fetching, {}, isolation=self._settings.isolation)
        self._buffer: deque[ConsumedRecord] = deque()
        self._missing: dict[TopicPartition, Offset] = {}
        """Positions in topics that do not exist at the moment."""
        self._check_ms = 0
        self._commit_ms = 0
        self._is_open = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._membership.owned

    @property
    def group_metadata(self) -> GroupMetadata:
        """For `TransactionalProducer.send_offsets`."""
        return self._membership.metadata

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(self._fetcher.paused)

    def subscribe(self, topics: Iterable[str] = (), *, pattern: str | None = None) -> None:
        """Read these topics, or all whose whole name matches an RE2 pattern; replaces the previous
        subscription.

        Topics need not exist yet.
        """
        self._member.subscribe(frozenset(topics), pattern)

    async def poll(self, timeout_ms: int = 500) -> list[ConsumedRecord]:
        """The next records, at most `max_poll_records`; none if none come within the timeout.

        Carries out rebalances, with the listener's calls, which may take longer. Positions move
        past the records returned: a `commit` afterwards marks them as done.
        """
        assert self._is_open, "use `async with`"
        deadline_ms = self._now_ms() + timeout_ms
        while True:
            self._member.polled()
            while (change := self._membership.change) is not None:
                await self._carry_out(change)
            await self._commit_when_due()
            if self._buffer:
                break
            if self._missing and self._check_ms <= self._now_ms():
                await self._check_topics()
            left_ms = deadline_ms - self._now_ms()
            if self._fetcher.unfinished:
                self._buffer.extend(await self._fetched(max(0, left_ms)))
            elif left_ms > 0:
                await self._member.wait_for_news(left_ms)
            if not self._buffer and left_ms <= 0 and self._membership.change is None:
                break
        count = min(len(self._buffer), self._settings.max_poll_records)
        return [self._buffer.popleft() for _ in range(count)]

    def position(self, partition: TopicPartition) -> Offset:
        """The offset of the next record that `poll` returns; `KeyError` if not assigned."""
        return self.positions()[partition]

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Continue from this offset in an assigned partition."""
        if partition not in self._fetcher.positions:
            raise ConfigError(f"{partition} is not assigned to this member")
        self._drop_buffered({partition})
        self._fetcher.positions[partition] = offset

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Read nothing from them until `resume`; they stay assigned."""
        chosen = set(partitions) & self._fetcher.positions.keys()
        positions = self.positions()
        self._fetcher.positions |= {each: positions[each] for each in chosen}
        self._drop_buffered(chosen)
        self._fetcher.paused |= chosen

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._fetcher.paused -= set(partitions)

    async def commit(self, offsets: Mapping[TopicPartition, Offset] | None = None) -> None:
        """Commit these offsets, else the positions. Raises `CommitFailed` if partitions moved."""
        if offsets is None:
            positions = self.positions()
            committed = self._offsets.committed
            offsets = {each: at for each, at in positions.items() if committed.get(each) != at}
        if offsets:
            await self._offsets.commit(offsets)

    async def close(self) -> None:
        """Leave the group, after the listener's `on_revoked`. Commits only if
        `auto_commit_interval_ms` is set.
        """
        if not self._is_open:
            return
        self._is_open = False
        # Each step runs even if the one before it is cancelled: no connection must stay open.
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._member.leave)
            ending.push_async_callback(self._fetching.close)
            ending.callback(self._fetcher.close)
            ending.push_async_callback(self._member.stop)
            owned = sorted(self._membership.owned)
            is_lost = self._member.has_failed or isinstance(self._membership.change, Lose)
            if owned and not is_lost:
                await self._let_go(owned)

    async def __aenter__(self) -> Self:
        await self._member.start()
        self._is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _carry_out(self, change: Change) -> None:
        match change:
            case Assign(partitions):
                await self._take(change, sorted(partitions))
            case Revoke(partitions):
                await self._let_go(sorted(partitions))
                self._drop(partitions)
                self._member.settled(change)
            case Lose(partitions):
                self._drop(partitions)
                self._member.settled(change)
                await self._listener.on_lost(sorted(partitions))
            case _:
                assert_never(change)

    async def _take(self, change: Change, partitions: Sequence[TopicPartition]) -> None:
        try:
            start = await self._offsets.starting(partitions)
        except BrokerRefused as error:
            if error.code not in NOT_A_MEMBER | NO_TOPIC:
                raise
            if error.code in NOT_A_MEMBER:
                self._member.fenced(error.code)
            else:
                self._client.forget()  # the topic may have been created again
            await asyncio.sleep(STALE_EPOCH_S)
            return
        if self._membership.change is not change:
            return
        self._member.settled(change)
        self._fetcher.ids |= start.topic_ids
        self._fetcher.positions |= start.positions
        self._offsets.committed |= start.committed
        await self._listener.on_assigned(partitions)

    async def _let_go(self, partitions: Sequence[TopicPartition]) -> None:
        if self._settings.auto_commit_interval_ms is not None:
            with suppress(KafkaError):  # if it fails, others read some records again
                await self.commit()
        await self._listener.on_revoked(partitions)

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        for each in gone:
            self._fetcher.positions.pop(each, None)
            self._missing.pop(each, None)
            self._offsets.committed.pop(each, None)
        self._fetcher.paused -= gone
        self._drop_buffered(gone)

    def _drop_buffered(self, partitions: set[TopicPartition]) -> None:
        self._buffer = deque(each for each in self._buffer if each.partition not in partitions)

    def positions(self) -> dict[TopicPartition, Offset]:
        """Positions of all partitions being read."""
        positions = dict(self._fetcher.positions)
        for each in reversed(self._buffer):
            positions[each.partition] = Offset(each.record.offset)
        return positions

    async def _fetched(self, wait_ms: int) -> list[ConsumedRecord]:
        try:
            return await self._fetcher.poll(wait_ms)
        except PositionOutOfRange as error:
            self._fetcher.positions |= await self._offsets.reset([error.partition])
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            # A topic was deleted, or has no leader: others can still be read.
            self._fetching.forget()
            await self._check_topics()
        return []

    async def _check_topics(self) -> None:
        """Leave out partitions whose topic is missing, until it is back.

        A topic that was created again is another topic: the former offsets do not apply to it.
        """
        self._check_ms = self._now_ms() + CHECK_MS
        try:
            topics = await self._client.existing_topics(by_topic(self._membership.owned))
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            return
        ids = {topic.name: topic.id for topic in topics}
        positions, self._missing = self._fetcher.positions | self._missing, {}
        for each, at in positions.items():
            if ids.get(each.topic) == self._fetcher.ids[each.topic]:
                self._fetcher.positions[each] = at
            else:
                self._fetcher.positions.pop(each, None)
                self._missing[each] = at
        if new := sorted(each for each in self._missing if each.topic in ids):
            await self._start_again(new)

    async def _start_again(self, partitions: Sequence[TopicPartition]) -> None:
        try:
            start = await self._offsets.starting(partitions)
        except BrokerRefused as error:
            if error.code not in NOT_A_MEMBER | NO_TOPIC:
                raise
            return  # the next check tries again
        self._fetcher.ids |= start.topic_ids
        await self._listener.on_lost(partitions)
        self._missing = {
            at: each for at, each in self._missing.items() if at not in start.positions
        }
        self._fetcher.positions |= start.positions
        for each in partitions:
            self._offsets.committed.pop(each, None)  # belongs to the former topic
        self._offsets.committed |= start.committed
        await self._listener.on_assigned(partitions)

    async def _commit_when_due(self) -> None:
        interval_ms, now_ms = self._settings.auto_commit_interval_ms, self._now_ms()
        if interval_ms is None or now_ms < self._commit_ms:
            return
        self._commit_ms = now_ms + interval_ms
        with suppress(CommitFailed):  # the rebalance that caused it comes next
            await self.commit()

    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()
