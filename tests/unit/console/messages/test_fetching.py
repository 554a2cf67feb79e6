"""A failed prefetch is repeated when the data is needed."""

import asyncio
from collections.abc import Iterator

from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.console.messages.fetching import TopicFetcher
from penstock.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData


def test_a_failed_prefetch_is_not_an_error_yet() -> None:
    async def ahead() -> None:
        async with Client([Address("127.0.0.1", 1)]) as client:
            fetcher = TopicFetcher(client, "t", committed=False)
            await fetcher.ahead(0, 0)
            fetcher.close()

    asyncio.run(ahead())


class Answers(TopicFetcher):
    """Returns the responses of a broker in order."""

    responses: Iterator[FetchResponse]

    async def _send(self, *_: int) -> asyncio.Future[FetchResponse]:
        sent = asyncio.get_running_loop().create_future()
        sent.set_result(next(self.responses))
        return sent


def test_a_throttled_search_waits_and_asks_again() -> None:
    data = PartitionData(partition_index=0, high_watermark=7, log_start_offset=3)
    found = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])

    async def fetched() -> int:
        async with Client([Address("127.0.0.1", 1)]) as client:
            fetcher = Answers(client, "t", committed=False)
            fetcher.responses = iter([FetchResponse(throttle_time_ms=1)] * 3 + [found])
            await fetcher.ahead(0, 3)
            return (await fetcher.fetch(0, 3)).end

    assert asyncio.run(fetched()) == 7
