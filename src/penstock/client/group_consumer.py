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
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Final, Self, assert_never
from uuid import uuid4

import re2

from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, OffsetOutOfRange, SimpleConsumer
from penstock.client.errors import ALWAYS_RETRIABLE, RETRIABLE, BrokerRefused
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel, by_topic
from penstock.client.member_offsets import (
    check_member_commit,
    committed_to,
    member_commit_request,
    member_offsets_request,
)
from penstock.client.membership.assignor import ASSIGNORS, Assignor
from penstock.client.membership.classic import ClassicMembership, ClassicSettings
from penstock.client.membership.consumer import ConsumerMembership, ConsumerSettings
from penstock.client.membership.member import (
    Assign,
    Change,
    GroupMetadata,
    Left,
    LookUp,
    Lose,
    Membership,
    Revoke,
    Send,
    Wait,
)
from penstock.client.offsets import list_offsets
from penstock.client.route import ToCoordinator
from penstock.clock import Clock, SystemClock
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.types import Offset, TopicPartition, Uuid, uuid_text
from penstock.wire.messages.offset_commit import OffsetCommitResponse
from penstock.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

CLOSE_S: Final = 5.0
STALE_EPOCH_S: Final = 0.05
CHECK_MS: Final = 1_000
COMMIT_ATTEMPTS: Final = 20
NO_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
NOT_A_MEMBER: Final = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)


class GroupProtocol(Enum):
    """Kafka's `group.protocol`."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848: the coordinator assigns; rebalances do not stop the other members."""


class OffsetReset(Enum):
    """Kafka's `auto.offset.reset`: where to start without a committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Kafka's consumer settings, with its defaults; but nothing is committed unless asked."""

    protocol: GroupProtocol = GroupProtocol.CLASSIC
    offset_reset: OffsetReset = OffsetReset.LATEST
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    auto_commit_interval_ms: int | None = None
    """Commit what earlier polls returned, in a poll after this time; None: `commit` only."""
    instance_id: str | None = None
    """Static membership: a restart within the session timeout causes no rebalance (KIP-345)."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    metadata_max_age_ms: int = 300_000
    assignors: tuple[Assignor, ...] = (ASSIGNORS["range"], ASSIGNORS["cooperative-sticky"])
    """Classic protocol: the leader uses the first one that all members offer."""
    server_assignor: str | None = None
    """Consumer protocol: `uniform` or `range`; None leaves it to the coordinator."""


class RebalanceListener:
    """Override what is needed; each is called inside `poll` or `close`."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """New partitions, before their first records; `seek` works here."""

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions that go to other members afterwards; `commit` works here."""

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions that others may have already. A commit would be refused."""


class CommitFailed(BrokerRefused):
    """The member's partitions have moved, so their records will be read again by others."""


class NoOffset(KafkaError):
    """A partition has no committed offset, and `offset_reset` is NONE."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


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
        # Joins and fetches wait at the broker, so neither may share a connection with others.
        self._coordinator, self._fetching = client.twin(), client.twin()
        self._membership = _membership(group, self._settings, client.request_timeout_ms)
        self._fetcher = SimpleConsumer(self._fetching, {}, isolation=self._settings.isolation)
        self._buffer: deque[ConsumedRecord] = deque()
        self._committed: dict[TopicPartition, Offset] = {}
        """What this member committed last; positions that differ are committed next."""
        self._topics: frozenset[str] = frozenset()
        self._pattern: str | None = None
        self._watched: frozenset[str] = frozenset()
        """Topics whose partition counts matter: those of all members, for the leader."""
        self._missing: dict[TopicPartition, Offset] = {}
        """Positions in topics that are not there at the moment."""
        self._check_ms = 0
        self._refresh_ms = 0
        self._commit_ms = 0
        self._wake, self._news = asyncio.Event(), asyncio.Event()
        self._failure: Exception | None = None
        self._tasks = asyncio.TaskGroup()
        self._driver: asyncio.Task[None] | None = None

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
        """Read these topics, or all whose whole name matches an RE2 pattern; replaces the former.

        Topics need not exist yet.
        """
        names = frozenset(topics)
        if bool(names) == (pattern is not None):
            raise ConfigError("subscribe to topics or to a pattern, one of them")
        if pattern is not None:
            try:
                re2.compile(pattern)
            except re2.error as error:
                raise ConfigError(f"the pattern {pattern!r} is not RE2: {error}") from None
        self._topics, self._pattern, self._watched = names, pattern, names
        self._refresh_ms = 0
        if pattern is None or self._settings.protocol is GroupProtocol.CONSUMER:
            self._membership.subscribe(names, pattern)
        self._wake.set()

    async def poll(self, timeout_ms: int = 500) -> list[ConsumedRecord]:
        """The next records, at most `max_poll_records`; none if none come within the timeout.

        Carries out rebalances, with the listener's calls, which may take longer. Positions move
        past the records returned: a `commit` afterwards marks them as done.
        """
        assert self._driver is not None, "use `async with`"
        deadline_ms = self._now_ms() + timeout_ms
        while True:
            if self._failure is not None:
                raise self._failure
            self._membership.polled(self._now_ms())
            self._wake.set()
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
                await self._wait_for_news(left_ms)
            if not self._buffer and left_ms <= 0 and self._membership.change is None:
                break
        count = min(len(self._buffer), self._settings.max_poll_records)
        return [self._buffer.popleft() for _ in range(count)]

    def position(self, partition: TopicPartition) -> Offset:
        """The offset of the next record that `poll` returns; `KeyError` if not assigned."""
        return self._positions()[partition]

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Go on from this offset in an assigned partition."""
        if partition not in self._fetcher.positions:
            raise ConfigError(f"{partition} is not assigned to this member")
        self._drop_buffered({partition})
        self._fetcher.positions[partition] = offset

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Read nothing from them until `resume`; the member keeps them."""
        chosen = set(partitions) & self._fetcher.positions.keys()
        positions = self._positions()
        self._fetcher.positions |= {each: positions[each] for each in chosen}
        self._drop_buffered(chosen)
        self._fetcher.paused |= chosen

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._fetcher.paused -= set(partitions)

    async def commit(self, offsets: Mapping[TopicPartition, Offset] | None = None) -> None:
        """Commit these offsets, else the positions. Raises `CommitFailed` if partitions moved."""
        if offsets is None:
            positions = self._positions()
            offsets = {
                each: at for each, at in positions.items() if self._committed.get(each) != at
            }
        if not offsets:
            return
        for _ in range(COMMIT_ATTEMPTS):
            try:
                await self._commit(offsets)
                break
            except BrokerRefused as error:
                if error.code not in NOT_A_MEMBER:
                    raise
                self._membership.fenced(error.code)
                self._wake.set()
                if error.code != ErrorCode.STALE_MEMBER_EPOCH:
                    raise _commit_failed(self._group, error) from None
            await asyncio.sleep(STALE_EPOCH_S)  # the next heartbeat brings the epoch
        else:
            raise _commit_failed(self._group, BrokerRefused(ErrorCode.STALE_MEMBER_EPOCH, "commit"))
        self._committed |= offsets

    async def close(self) -> None:
        """Leave the group, after the listener's `on_revoked`; does not commit by itself, except
        with `auto_commit_interval_ms`.
        """
        if self._driver is None:
            return
        driver, self._driver = self._driver, None
        try:
            owned = sorted(self._membership.owned)
            if owned and self._failure is None and not isinstance(self._membership.change, Lose):
                await self._let_go(owned)
        finally:
            driver.cancel()
            await self._tasks.__aexit__(None, None, None)
            self._fetcher.close()
            await self._fetching.close()
            await self._leave()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._driver = self._tasks.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Inside a poll.

    async def _carry_out(self, change: Change) -> None:
        match change:
            case Assign(partitions):
                await self._take(change, sorted(partitions))
            case Revoke(partitions):
                await self._let_go(sorted(partitions))
                self._drop(partitions)
                self._membership.changed(change, self._now_ms())
            case Lose(partitions):
                self._drop(partitions)
                self._membership.changed(change, self._now_ms())
                await self._listener.on_lost(sorted(partitions))
            case _:
                assert_never(change)
        self._wake.set()

    async def _take(self, change: Change, partitions: Sequence[TopicPartition]) -> None:
        try:
            positions = await self._starting_positions(partitions)
        except BrokerRefused as error:
            if error.code not in NOT_A_MEMBER | NO_TOPIC:
                raise
            if error.code in NOT_A_MEMBER:
                self._membership.fenced(error.code)
                self._wake.set()
            else:
                self._client.forget()  # the topic may have been created again
            await asyncio.sleep(STALE_EPOCH_S)
            return
        if self._membership.change is not change:
            return
        self._membership.changed(change, self._now_ms())
        self._fetcher.positions |= positions
        self._committed |= positions
        await self._listener.on_assigned(partitions)

    async def _let_go(self, partitions: Sequence[TopicPartition]) -> None:
        if self._settings.auto_commit_interval_ms is not None:
            with suppress(KafkaError):  # then others read some records again
                await self.commit()
        await self._listener.on_revoked(partitions)

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        for each in gone:
            self._fetcher.positions.pop(each, None)
            self._missing.pop(each, None)
            self._committed.pop(each, None)
        self._fetcher.paused -= gone
        self._drop_buffered(gone)

    def _drop_buffered(self, partitions: set[TopicPartition]) -> None:
        self._buffer = deque(each for each in self._buffer if each.partition not in partitions)

    def _positions(self) -> dict[TopicPartition, Offset]:
        positions = dict(self._fetcher.positions)
        for each in reversed(self._buffer):
            positions[each.partition] = Offset(each.record.offset)
        return positions

    async def _starting_positions(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Offset]:
        ids = await self._topic_ids(partitions)
        member = self._membership.metadata

        async def attempt() -> dict[TopicPartition, Offset]:
            connection = await self._coordinator.connection(ToCoordinator(self._group))
            response = await connection.call(
                member_offsets_request(member, partitions, ids),
                OffsetFetchResponse,
                timeout_ms=self._client.request_timeout_ms,
            )
            version = connection.version_of(OffsetFetchRequest)
            return committed_to(member, response, version, ids)

        found = await self._coordinator.retrying(attempt)
        self._fetcher.ids |= ids
        missing = [each for each in partitions if each not in found]
        return found | (await self._reset(missing) if missing else {})

    async def _reset(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Offset]:
        policy = self._settings.offset_reset
        if policy is OffsetReset.NONE:
            raise NoOffset(
                f"{partitions[0]} has no valid offset of group {self._group}, "
                "and auto.offset.reset is none"
            )
        at = EARLIEST if policy is OffsetReset.EARLIEST else LATEST
        listed = await list_offsets(
            self._client, dict.fromkeys(partitions, at), isolation=self._settings.isolation
        )
        return {each: found.offset for each, found in listed.items()}

    async def _fetched(self, wait_ms: int) -> list[ConsumedRecord]:
        try:
            return await self._fetcher.poll(wait_ms)
        except OffsetOutOfRange as error:
            self._fetcher.positions |= await self._reset([error.partition])
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            # A topic that was deleted, or a leader that is missing: others can be read.
            self._fetching.forget()
            await self._check_topics()
        return []

    async def _check_topics(self) -> None:
        """Leave out partitions whose topic is missing, until it is back.

        A topic that was created again is another one: its offsets are not those of the former.
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
            positions = await self._starting_positions(partitions)
        except BrokerRefused as error:
            if error.code not in NOT_A_MEMBER | NO_TOPIC:
                raise
            return  # the next check tries it again
        await self._listener.on_lost(partitions)
        self._missing = {at: each for at, each in self._missing.items() if at not in positions}
        self._fetcher.positions |= positions
        self._committed |= positions
        await self._listener.on_assigned(partitions)

    async def _wait_for_news(self, wait_ms: int) -> None:
        self._news.clear()
        if self._membership.change is not None or self._failure is not None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._news.wait()

    async def _commit_when_due(self) -> None:
        interval_ms, now_ms = self._settings.auto_commit_interval_ms, self._now_ms()
        if interval_ms is None or now_ms < self._commit_ms:
            return
        self._commit_ms = now_ms + interval_ms
        with suppress(CommitFailed):  # the rebalance that caused it comes next
            await self.commit()

    async def _commit(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        ids, member = await self._topic_ids(offsets), self._membership.metadata
        await self._coordinator.call(
            member_commit_request(member, offsets, ids),
            OffsetCommitResponse,
            to=ToCoordinator(self._group),
            check=lambda response: check_member_commit(member, response),
        )

    async def _topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, Uuid]:
        return {
            name: (await self._client.retrying(partial(self._client.topic, name))).id
            for name in by_topic(partitions)
        }

    # In the background.

    async def _run(self) -> None:
        """Keep the member in its group; what goes wrong is raised by the next poll."""
        try:
            await self._drive()
        except Exception as error:  # noqa: BLE001  a supervised background loop
            self._failure = error
        finally:
            self._news.set()

    async def _drive(self) -> None:
        while True:
            if self._pattern is not None and self._refresh_ms == 0:
                await self._look_up()  # before the first join, which names topics
                continue
            action = self._membership.next(self._now_ms())
            match action:
                case Send():
                    await self._send(action)
                case LookUp(topics):
                    self._watched = topics | self._topics
                    await self._look_up()
                case Wait(until_ms):
                    await self._wait(until_ms)
                case Left():
                    return
                case _:
                    assert_never(action)
            if self._membership.change is not None:
                self._news.set()

    async def _send(self, action: Send) -> None:
        try:
            connection = await self._coordinator.connection(ToCoordinator(self._group))
            response = await connection.call(
                action.request, action.response_type, timeout_ms=action.timeout_ms
            )
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            self._coordinator.forget()
            self._membership.failed(self._now_ms())
            return
        if getattr(response, "error_code", ErrorCode.NONE) in ALWAYS_RETRIABLE:
            self._coordinator.forget()
        self._membership.received(response, self._now_ms())

    async def _wait(self, until_ms: int | None) -> None:
        """Until then, or until something happens; looks for changes of topics meanwhile."""
        wants_topics = bool(self._watched or self._pattern)
        if wants_topics and self._refresh_ms <= self._now_ms():
            await self._look_up()
            return
        limits = [each for each in (until_ms, self._refresh_ms if wants_topics else None) if each]
        wait_s = max(0, min(limits) - self._now_ms()) / 1000 if limits else None
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        self._wake.clear()

    async def _look_up(self) -> None:
        everything = self._pattern is not None
        try:
            topics = await self._coordinator.existing_topics(None if everything else self._watched)
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            self._coordinator.forget()
            await asyncio.sleep(STALE_EPOCH_S)
            return
        self._refresh_ms = self._now_ms() + self._settings.metadata_max_age_ms
        if self._pattern is not None and self._settings.protocol is GroupProtocol.CLASSIC:
            pattern = re2.compile(self._pattern)
            self._membership.subscribe(
                each.name
                for each in topics
                if pattern.fullmatch(each.name) and not each.is_internal
            )
        self._membership.topics_found(
            {each.name: len(each.partitions) for each in topics},
            {each.id: each.name for each in topics},
        )

    async def _leave(self) -> None:
        # Another connection: a join may wait on the old one.
        await self._coordinator.close()
        self._coordinator = self._client.twin()
        self._membership.failed(self._now_ms())
        self._membership.leave()
        self._pattern = None
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._drive()
        except (KafkaError, TimeoutError):
            pass  # the coordinator removes the member when its session times out
        finally:
            await self._coordinator.close()

    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()


def _membership(group: str, settings: GroupSettings, request_timeout_ms: int) -> Membership:
    if settings.protocol is GroupProtocol.CONSUMER:
        return ConsumerMembership(
            group,
            uuid_text(Uuid(uuid4().bytes)),
            ConsumerSettings(
                settings.max_poll_interval_ms,
                request_timeout_ms,
                settings.instance_id,
                settings.server_assignor,
            ),
        )
    return ClassicMembership(
        group,
        ClassicSettings(
            settings.session_timeout_ms,
            settings.heartbeat_interval_ms,
            settings.max_poll_interval_ms,
            request_timeout_ms,
            settings.instance_id,
            settings.assignors,
        ),
    )


def _commit_failed(group: str, error: BrokerRefused) -> CommitFailed:
    return CommitFailed(
        error.code, f"commit of group {group}", "its partitions have moved to other members"
    )
