"""Follows a topic: new records as server-sent events, in well under a second.

The id of each event encodes the positions after it. A browser that reconnects or resumes sends the
last id and continues from there. If too many records arrive at once, the oldest are left out and
counted.
"""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.console.messages.query import SearchQuery
from penstock.console.messages.service import Messages
from penstock.console.messages.view import Followed, Message, message
from penstock.errors import ConfigError, KafkaError
from penstock.types import Offset, TopicPartition

MOST_SHOWN: Final = 100
"""The most records in an event."""
QUIET_MS: Final = 5_000
"""After so long without records, an empty event reports the positions."""


class TopicTail:
    """The new records of a topic that match a query; the query's offset range is ignored."""

    def __init__(self, messages: Messages, query: SearchQuery, *, sees_all: bool) -> None:
        self._messages, self._query = messages, query
        self._criteria = messages.criteria(query, sees_all=sees_all)
        self._hide = messages.hiding(query.topic, sees_all=sees_all)

    async def positions(self, after: str) -> dict[TopicPartition, Offset]:
        """The start positions: after the event with this id, or the end of the topic."""
        tps = await self._messages.partitions(self._query.topic, self._query.partitions)
        ends = await list_offsets(self._messages.client, dict.fromkeys(tps, LATEST))
        if not after:
            return {tp: ends[tp].offset for tp in tps}
        starts = await list_offsets(self._messages.client, dict.fromkeys(tps, EARLIEST))
        known = positions_of(after)
        return {
            tp: Offset(min(max(known.get(tp.partition, 0), starts[tp].offset), ends[tp].offset))
            for tp in tps
        }

    async def events(
        self, positions: dict[TopicPartition, Offset], still: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        """Yield events until the client disconnects, logs out, or its role changes."""
        isolation = IsolationLevel(int(self._query.committed))
        async with (
            self._messages.client.twin() as client,
            SimpleConsumer(client, positions, isolation=isolation) as consumer,
        ):
            yield event(b"", consumer.positions)  # gives a resume its start positions
            now_s = asyncio.get_running_loop().time
            said_s = now_s()
            while True:
                try:
                    found = await consumer.poll(500)
                    followed = await asyncio.to_thread(self._followed, found) if found else None
                except (KafkaError, ConfigError) as error:  # an expression may fail on a record
                    yield failed(str(error))
                    return
                if not await still():
                    yield failed("log in again")
                    return
                if followed is not None and followed.messages:
                    said_s = now_s()
                    yield event(msgspec.json.encode(followed), consumer.positions)
                elif (now_s() - said_s) * 1000 >= QUIET_MS:
                    said_s = now_s()
                    yield event(b"", consumer.positions)

    def _followed(self, found: list[ConsumedRecord]) -> Followed:
        matches = self._criteria.matches
        wanted = [each for each in found if matches(each.partition.partition, each.record)]
        shown = [self._shown(each) for each in wanted[-MOST_SHOWN:]]
        return Followed(shown, len(wanted) - len(shown))

    def _shown(self, each: ConsumedRecord) -> Message:
        record = self._hide(each.record)
        return message(*each.partition, record, self._messages.decode)


def event(data: bytes, positions: dict[TopicPartition, Offset]) -> bytes:
    """One event. JSON has no line ends, so the data is one line."""
    known = {tp.partition: offset for tp, offset in positions.items()}
    number = urlsafe_b64encode(msgspec.msgpack.encode(known))
    return b"id: " + number + b"\ndata: " + (data or b"null") + b"\n\n"


def failed(text: str) -> bytes:
    return b"event: failed\ndata: " + msgspec.json.encode(text) + b"\n\n"


def positions_of(text: str) -> dict[int, int]:
    try:
        return msgspec.msgpack.decode(urlsafe_b64decode(text), type=dict[int, int])
    except (ValueError, msgspec.DecodeError):
        raise ConfigError("after: it is not the id of an event") from None
