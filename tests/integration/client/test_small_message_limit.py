"""A topic whose `max.message.bytes` is far below the producer's batch size."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pytest

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.produce import IdempotentProducer, ProducedRecord, ProducerRecord
from penstock.client.producer_session import ProducerSession
from penstock.client.record_sender import RecordSender
from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.produce import PartitionProduceResponse

LIMIT = 1000
HALVINGS = 9
"""From the batch size of 256 KiB down to less than the limit."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    settings = {"message.max.bytes": str(LIMIT), "num.partitions": "2"}
    with EmbeddedBroker(settings=settings) as broker:
        yield broker.bootstrap


class CountingSender(RecordSender):
    """Counts the brokers' responses by error code."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, create_topics=True)
        self.answers: Counter[int] = Counter()

    async def _produced(
        self,
        leader: BrokerId,
        partitions: Iterable[TopicPartition],
        queues: object,
        session: ProducerSession,
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        answers = await super()._produced(leader, partitions, queues, session)  # type: ignore[arg-type]
        self.answers.update(each.error_code for each in answers.values())
        return answers


def delivered(
    bootstrap: str, sent: Sequence[Sequence[ProducerRecord]]
) -> tuple[list[ProducedRecord | BrokerRefused | None], Counter[int]]:
    async def main() -> tuple[list[ProducedRecord | BrokerRefused | None], Counter[int]]:
        async with Client(parse_addresses(bootstrap), client_id="test") as client:
            producer = IdempotentProducer(client)
            producer._sender = sender = CountingSender(client)
            results = [
                each
                for records in sent
                for each in await producer.deliver(records, past_refused=True)
            ]
            return results, sender.answers

    return asyncio.run(main())


def test_the_accepted_batch_size_is_found_only_once(bootstrap: str) -> None:
    sent = [
        [ProducerRecord("once", b"v" * 90, partition=number % 2) for number in range(2000)]
        for _ in range(3)
    ]
    results, answers = delivered(bootstrap, sent)
    offsets = [each.offset for each in results if isinstance(each, ProducedRecord)]
    assert offsets == [number // 2 for number in range(6000)]
    assert answers[ErrorCode.MESSAGE_TOO_LARGE] <= 2 * HALVINGS
    accepted = answers[ErrorCode.NONE]
    assert accepted <= 6000 / (LIMIT / 2 / 120), "batches are at least half of what is accepted"


@pytest.mark.parametrize("size", [1000, 3000, 300_000])
def test_only_a_record_that_is_itself_too_large_is_refused(bootstrap: str, size: int) -> None:
    values = [b"v" * 90] * 500
    values[100] = values[101] = values[499] = b"w" * size
    results, _ = delivered(bootstrap, [[ProducerRecord(f"alone-{size}", each) for each in values]])
    refused = [
        index
        for index, each in enumerate(results)
        if isinstance(each, BrokerRefused) and each.code is ErrorCode.MESSAGE_TOO_LARGE
    ]
    assert refused == [100, 101, 499]
    written = sum(isinstance(each, ProducedRecord) for each in results)
    assert written == len(values) - len(refused)
