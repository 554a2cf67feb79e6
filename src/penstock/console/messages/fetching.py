"""Fetches batches of a topic in bounded pieces, with the next pieces requested ahead."""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, check
from penstock.client.isolation import visible_batches
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.route import ToLeader
from penstock.console.messages.search import DECOMPRESSED_BYTES, Batch
from penstock.errors import ErrorCode, KafkaError
from penstock.types import Buffer, TopicPartition
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

PIECE_BYTES: Final = 1 << 20
"""Small enough not to disturb the broker's other clients."""
AHEAD: Final = 4
"""The most pieces in flight."""
THROTTLED_MS: Final = 10
"""The shortest wait when a throttling broker sends an empty response."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Whole batches from an offset on; `end` is the offset up to which consumers may read."""

    batches: list[Batch]
    log_start: int
    end: int

    @property
    def size_bytes(self) -> int:
        return sum(each.header.size_bytes for each in self.batches)


class TopicFetcher:
    """Reads one topic. Only one task may use it. `close` cancels requests in flight."""

    def __init__(self, client: Client, topic: str, *, committed: bool) -> None:
        self._client, self._topic = client, topic
        self._isolation = IsolationLevel(int(committed))
        self._ahead: OrderedDict[tuple[int, int], asyncio.Future[FetchResponse]] = OrderedDict()

    async def fetch(self, partition: int, offset: int) -> Fetched:
        """Batches from `offset` on. Without batches, `log_start` and `end` say what
        the partition has.
        """
        sent = self._ahead.pop((partition, offset), None)
        if sent is not None:
            # On an error, such as a changed leader, fall through to a new request with retries.
            with suppress(KafkaError):
                if (found := await self._answer(partition, sent)) is not None:
                    return found

        async def attempt() -> Fetched:
            while (
                found := await self._answer(partition, await self._send(partition, offset))
            ) is None:
                pass
            return found

        return await self._client.retrying(attempt)

    async def ahead(self, partition: int, offset: int) -> None:
        """Send the request that `fetch` will need next. Ignores errors, because `fetch` retries."""
        if (partition, offset) in self._ahead:
            return
        with suppress(KafkaError):
            self._ahead[partition, offset] = await self._send(partition, offset)
        while len(self._ahead) > AHEAD:
            self._ahead.popitem(last=False)[1].cancel()

    def close(self) -> None:
        while self._ahead:
            self._ahead.popitem()[1].cancel()

    async def _send(self, partition: int, offset: int) -> asyncio.Future[FetchResponse]:
        topic = await self._client.topic(self._topic)
        connection = await self._client.connection(ToLeader(TopicPartition(self._topic, partition)))
        wanted = FetchPartition(
            partition=partition,
            current_leader_epoch=topic.partitions[partition].leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=PIECE_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=PIECE_BYTES,
            isolation_level=self._isolation,
            topics=[FetchTopic(topic=self._topic, topic_id=topic.id, partitions=[wanted])],
        )
        return connection.send(request, FetchResponse)

    async def _answer(self, partition: int, sent: asyncio.Future[FetchResponse]) -> Fetched | None:
        """The result of a sent request. None if the console is over its quota; the throttle time
        has then passed.
        """
        try:
            async with asyncio.timeout(self._client.request_timeout_ms / 1000):
                response = await sent
        except TimeoutError:
            text = f"fetch of {self._topic}-{partition}: no answer in time"
            raise BrokerRefused(ErrorCode.REQUEST_TIMED_OUT, text) from None
        check(response.error_code, f"fetch of {self._topic}")
        if not response.responses:
            await asyncio.sleep(max(response.throttle_time_ms, THROTTLED_MS) / 1000)
            return None
        (data,) = (each for topic in response.responses for each in topic.partitions)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._nothing(TopicPartition(self._topic, partition))
        check(data.error_code, f"fetch of {self._topic}-{partition}")
        return fetched(data, self._isolation)

    async def _nothing(self, tp: TopicPartition) -> Fetched:
        """An empty result. Kafka's response to an offset out of range does not name the log's
        start and end.
        """
        start = await list_offsets(self._client, {tp: EARLIEST})
        end = await list_offsets(self._client, {tp: LATEST}, isolation=self._isolation)
        return Fetched([], start[tp].offset, end[tp].offset)


def fetched(data: PartitionData, isolation: IsolationLevel) -> Fetched:
    committed = isolation is IsolationLevel.READ_COMMITTED
    aborted = data.aborted_transactions if committed else ()
    assert isinstance(data.records, Buffer | None), "a decoded response is in memory"
    found = visible_batches(data.records or b"", aborted, DECOMPRESSED_BYTES)
    return Fetched(
        [Batch(header, batch) for header, batch in found],
        data.log_start_offset,
        data.last_stable_offset if committed else data.high_watermark,
    )
