"""The consumer for asyncio: `async for record in consumer`.

librdkafka's calls, rebalance callbacks and interceptors run on one separate thread, so that the
event loop is not blocked.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, ParamSpec, Self, TypeVar

from penstock.sdk.consumer import BATCH, Consumer
from penstock.sdk.idle import POLL_S, Idle
from penstock.sdk.record import K, PartitionId, Record, V

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class AsyncConsumer(Generic[K, V]):
    """Uses a `Consumer` from an event loop; its block closes the consumer."""

    def __init__(self, consumer: Consumer[K, V]) -> None:
        self.consumer = consumer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-consumer")
        self._stopping = False

    def __aiter__(self) -> AsyncGenerator[Record[K, V], None]:
        return self.records()

    async def records(self, idle_s: float | None = None) -> AsyncGenerator[Record[K, V], None]:
        """Like `Consumer.records`."""
        idle = Idle(idle_s)
        while not self._stopping:
            batch = await self.batch(BATCH, idle.timeout_s)
            if idle.is_over(batch, has_joined=self.consumer.has_joined):
                return
            for record in self.consumer.one_by_one(batch):
                yield record

    async def batch(self, most: int = BATCH, timeout_s: float = POLL_S) -> list[Record[K, V]]:
        """Like `Consumer.batch`. If cancelled, the next call has its records or its error."""
        fetching = self._thread.submit(self.consumer.batch, most, timeout_s)
        try:
            return await asyncio.wrap_future(fetching)
        except asyncio.CancelledError:
            self._thread.submit(self._give_back, fetching)  # after it, before any later call
            raise

    def _give_back(self, fetching: Future[list[Record[K, V]]]) -> None:
        if fetching.cancelled():
            return  # it never began
        error = fetching.exception()
        if error is None:
            self.consumer.unread(fetching.result())
        else:
            logger.warning(
                "a batch failed after its caller was cancelled; the next call raises its error: %s",
                error,
            )
            self.consumer.unread_error(error)

    async def commit(self, *, wait: bool = True) -> None:
        await self.run(lambda: self.consumer.commit(wait=wait))

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        await self.run(self.consumer.seek, topic, partition, offset)

    async def seek_to_time(
        self, at_ms: int, partitions: Sequence[PartitionId] | None = None
    ) -> None:
        await self.run(self.consumer.seek_to_time, at_ms, partitions)

    async def seek_by(self, records: int, partitions: Sequence[PartitionId] | None = None) -> None:
        await self.run(self.consumer.seek_by, records, partitions)

    async def pause(self, partitions: Sequence[PartitionId] | None = None) -> None:
        await self.run(self.consumer.pause, partitions)

    async def resume(self, partitions: Sequence[PartitionId] | None = None) -> None:
        await self.run(self.consumer.resume, partitions)

    async def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a method of the consumer on its thread, for methods that are not wrapped here."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: call(*args, **kwargs))

    async def close(self) -> None:
        self._stopping = True
        await self.run(self.consumer.close)
        self._thread.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping = True
        await asyncio.shield(self.run(self.consumer.__exit__, kind, error, trace))
        self._thread.shutdown()
