"""Keeps a member in its group, in the background: joins, heartbeats, changes of topics.

`client/membership/` decides what to send; the consumer carries out changes of the assignment.
"""

import asyncio
from contextlib import suppress
from typing import Final, assert_never
from uuid import uuid4

import re2

from penstock.client.cluster import Client
from penstock.client.errors import ALWAYS_RETRIABLE, RETRIABLE
from penstock.client.group_settings import GroupProtocol, GroupSettings
from penstock.client.membership.classic import ClassicMembership, ClassicSettings
from penstock.client.membership.consumer import ConsumerMembership, ConsumerSettings
from penstock.client.membership.member import Change, Left, LookUp, Membership, Send, Wait
from penstock.client.route import ToCoordinator
from penstock.clock import Clock
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.types import Uuid, uuid_text

CLOSE_S: Final = 5.0
LOOK_UP_AGAIN_S: Final = 0.05


class GroupMember:
    """Runs from `start` to `stop`, in one task; `leave` follows.

    The consumer reports its actions and errors by `polled`, `settled` and `fenced`.
    """

    def __init__(self, client: Client, group: str, settings: GroupSettings, clock: Clock) -> None:
        self._client, self._group, self._settings = client, group, settings
        self._clock = clock
        # Joins wait at the broker, so they must not share a connection with other requests.
        self.coordinator = client.twin()
        self.membership = _membership(group, settings, client.request_timeout_ms)
        self._topics: frozenset[str] = frozenset()
        self._pattern: str | None = None
        self._watched: frozenset[str] = frozenset()
        """Topics whose partition counts matter; for the group's leader, those of all members."""
        self._refresh_ms = 0
        self._wake, self._news = asyncio.Event(), asyncio.Event()
        self._failure: Exception | None = None
        self._tasks = asyncio.TaskGroup()
        self._driver: asyncio.Task[None] | None = None

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def subscribe(self, names: frozenset[str], pattern: str | None) -> None:
        """Subscribe to these topics, or to all whose whole name matches an RE2 pattern."""
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
            self.membership.subscribe(names, pattern)
        self._wake.set()

    def polled(self) -> None:
        """The consumer is alive. Raises an error from the background task."""
        if self._failure is not None:
            raise self._failure
        self.membership.polled(self._now_ms())
        self._wake.set()

    def settled(self, change: Change) -> None:
        """The consumer has carried out the change."""
        self.membership.changed(change, self._now_ms())
        self._wake.set()

    def fenced(self, code: ErrorCode) -> None:
        """A request of the consumer was refused: its membership has changed."""
        self.membership.fenced(code)
        self._wake.set()

    async def wait_for_news(self, wait_ms: int) -> None:
        self._news.clear()
        if self.membership.change is not None or self._failure is not None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._news.wait()

    async def start(self) -> None:
        await self._tasks.__aenter__()
        self._driver = self._tasks.create_task(self._run())

    async def stop(self) -> None:
        assert self._driver is not None
        self._driver.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def _run(self) -> None:
        """Keep the member in its group; the next poll raises any error."""
        try:
            await self._drive()
        except Exception as error:  # noqa: BLE001  a supervised background loop
            self._failure = error
        finally:
            self._news.set()

    async def _drive(self) -> None:
        while True:
            if self._pattern is not None and self._refresh_ms == 0:
                await self._look_up()  # the first join must name topics
                continue
            action = self.membership.next(self._now_ms())
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
            if self.membership.change is not None:
                self._news.set()

    async def _send(self, action: Send) -> None:
        try:
            connection = await self.coordinator.connection(ToCoordinator(self._group))
            response = await connection.call(
                action.request, action.response_type, timeout_ms=action.timeout_ms
            )
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            self.coordinator.forget()
            self.membership.failed(self._now_ms())
            return
        if getattr(response, "error_code", ErrorCode.NONE) in ALWAYS_RETRIABLE:
            self.coordinator.forget()
        self.membership.received(response, self._now_ms())

    async def _wait(self, until_ms: int | None) -> None:
        """Wait until that time or an event; refreshes the topics when due."""
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
            topics = await self.coordinator.existing_topics(None if everything else self._watched)
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            self.coordinator.forget()
            await asyncio.sleep(LOOK_UP_AGAIN_S)
            return
        self._refresh_ms = self._now_ms() + self._settings.metadata_max_age_ms
        if self._pattern is not None and self._settings.protocol is GroupProtocol.CLASSIC:
            pattern = re2.compile(self._pattern)
            self.membership.subscribe(
                each.name
                for each in topics
                if pattern.fullmatch(each.name) and not each.is_internal
            )
        self.membership.topics_found(
            {each.name: len(each.partitions) for each in topics},
            {each.id: each.name for each in topics},
        )

    async def leave(self) -> None:
        # Another connection: a join may wait on the old one.
        await self.coordinator.close()
        self.coordinator = self._client.twin()
        self.membership.failed(self._now_ms())
        self.membership.leave()
        self._pattern = None
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._drive()
        except (KafkaError, TimeoutError):
            pass  # the coordinator removes the member when its session times out
        finally:
            await self.coordinator.close()

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
