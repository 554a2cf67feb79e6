"""The topics that records come from and go to: whether they exist and can be written.

Their state is refreshed once a second, not before each delivery.
"""

import logging
from collections.abc import Iterable
from typing import Final

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.metadata import NO_LEADER, TopicMetadata
from penstock.clock import Clock
from penstock.errors import ErrorCode
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

CREATION_MS: Final = 1_000
"""How long the creation of a missing target may take."""
REFUSED_MS: Final = 10_000
WRITE: Final = 1 << 4
"""The bit of AclOperation.WRITE among the operations that a broker allows."""
NOT_TOLD: Final = -(2**31)
UNUSABLE: Final = frozenset(
    {
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

log = logging.getLogger(__name__)


class TopicWaits(BrokerRefused):
    """A topic is missing or cannot be written. The records are not at fault, and wait for it."""


class Topics:
    """The known state of the topics."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[str, TopicMetadata] = {}
        self._denied: dict[str, TopicWaits] = {}
        self._refused: dict[str, tuple[int, BrokerRefused]] = {}
        """Topics that could not be created: when it may be tried again, and the error."""
        self.is_stale = False
        """The known state may be wrong: refresh it before the second is over."""

    @property
    def refused(self) -> dict[str, BrokerRefused]:
        """Topics that cannot be written now."""
        led = {name: self.leaderless(name, None) for name in self._known}
        return {
            **{name: error for name, (_, error) in self._refused.items()},
            **self._denied,
            **{name: error for name, error in led.items() if error is not None},
        }

    async def refresh(self, names: Iterable[str]) -> None:
        wanted, self.is_stale = sorted(names), False
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in wanted],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        response = await self._client.call(request, MetadataResponse)
        allowed = {
            each.name or "": each.topic_authorized_operations
            for each in response.topics
            if each.error_code == ErrorCode.NONE
        }
        found = await self._client.existing_topics(allowed) if allowed else []
        self._known = {each.name: each for each in found}
        # Forget topics that no route names any more.
        self._denied = {name: self._denied[name] for name in wanted if name in self._denied}
        self._refused = {name: self._refused[name] for name in wanted if name in self._refused}
        for name, operations in allowed.items():
            if operations == NOT_TOLD or operations & WRITE:
                self._denied.pop(name, None)
            elif name not in self._denied:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                self._denied[name] = TopicWaits(code, f"topic {name}", "WRITE is denied")

    def get(self, name: str) -> TopicMetadata | None:
        """None: it does not exist, as far as is known."""
        return self._known.get(name)

    def leaderless(self, name: str, partition: int | None) -> TopicWaits | None:
        """The error if the partition has no leader; None as partition: any of its partitions."""
        known = self._known.get(name)
        for each in () if known is None else known.partitions.values():
            if each.leader == NO_LEADER and partition in (None, each.index):
                code = ErrorCode.LEADER_NOT_AVAILABLE
                return TopicWaits(code, f"{name}-{each.index}", "it has no leader")
        return None

    async def refusal(self, name: str) -> BrokerRefused | None:
        """Why the topic cannot be written now; creates it if that is allowed."""
        if name in self._denied:
            return self._denied[name]
        if name in self._known:
            return None
        now_ms = self._clock.monotonic_ms()
        until_ms, known = self._refused.get(name, (0, None))
        if now_ms < until_ms:
            return known
        self._refused.pop(name, None)
        try:
            # Not from the cache: the client may still remember a topic that was deleted.
            (self._known[name],) = await self._client.retrying(
                lambda: self._client.topics([name], create=True),
                retry_on=RETRIABLE,
                timeout_ms=CREATION_MS,
            )
        except BrokerRefused as error:
            if error.code not in UNUSABLE:
                raise
            invalid = error.code == ErrorCode.INVALID_TOPIC_EXCEPTION
            refused = error if invalid else TopicWaits(error.code, f"topic {name}", error.text)
            self._refused[name] = now_ms + REFUSED_MS, refused
            return refused
        return None
