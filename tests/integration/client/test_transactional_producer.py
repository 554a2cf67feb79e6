"""Transactions against our broker, in both protocol versions: atomic visibility, fencing,
offsets.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import pytest

from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.errors import BrokerRefused
from penstock.client.group_consumer import GroupConsumer
from penstock.client.group_settings import GroupSettings, OffsetReset
from penstock.client.groups import committed_offsets
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.membership.member import GroupMetadata
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.client.transaction import ClientTransactions, ProducerFenced, TransactionMustAbort
from penstock.client.transactional_producer import TransactionalProducer
from penstock.errors import ConfigError, ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.types import Offset, TopicPartition

_numbers = count()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0", "message.max.bytes": "10000"}
    with EmbeddedBroker(settings=settings) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic() -> str:
    return f"t{next(_numbers)}"


@pytest.fixture(params=["explicit", "implicit"], autouse=True)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both protocols: before the second part of KIP-890, as on a cluster with the older level, and
    with it.
    """
    if request.param == "explicit":
        known = ClientTransactions.initialized
        monkeypatch.setattr(
            ClientTransactions, "initialized", lambda self, response, _: known(self, response, {})
        )


def run(bootstrap: str, topic: str, scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Client(parse_addresses(bootstrap)) as client:
            await create_topic(client, NewTopic(name=topic, partitions=2))
            await scenario(client)

    asyncio.run(main())


def record(topic: str, value: bytes, partition: int = 0) -> ProducerRecord:
    return ProducerRecord(topic, value, partition=partition)


async def committed_values(client: Client, topic: str) -> list[bytes | None]:
    places = [TopicPartition(topic, index) for index in range(2)]
    level = IsolationLevel.READ_COMMITTED
    starts = await list_offsets(client, dict.fromkeys(places, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(places, LATEST), isolation=level)
    async with SimpleConsumer(
        client,
        {place: each.offset for place, each in starts.items()},
        ends={place: each.offset for place, each in ends.items()},
        isolation=level,
    ) as reader:
        return sorted([each.record.value async for each in reader], key=str)


async def failing(producer: TransactionalProducer, step: Callable[[], Awaitable[object]]) -> None:
    """A transaction that fails after the step."""
    async with producer.transaction():
        await producer.send([])
        await step()
        raise ZeroDivisionError


@pytest.mark.row("A110")
def test_transactions_are_visible_completely_or_not_at_all(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        async with TransactionalProducer(client, topic) as producer:
            async with producer.transaction():
                await producer.send([record(topic, b"a"), record(topic, b"b", 1)])
                assert await committed_values(client, topic) == []
            assert await committed_values(client, topic) == [b"a", b"b"]
            with pytest.raises(ZeroDivisionError):
                await failing(producer, lambda: producer.send([record(topic, b"never")]))
            for value in (b"c", b"d"):
                async with producer.transaction():
                    await producer.send([record(topic, value)])
                    await producer.send([record(topic, value, 1)])
            async with producer.transaction():
                pass
        assert await committed_values(client, topic) == [b"a", b"b", b"c", b"c", b"d", b"d"]

    run(bootstrap, topic, scenario)


@pytest.mark.row("A113")
def test_a_new_producer_fences_the_former_one(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        async with (
            TransactionalProducer(client, topic) as former,
            TransactionalProducer(client, topic) as successor,
        ):
            await former.begin()
            await former.send([record(topic, b"lost")])
            await successor.init()
            with pytest.raises(ProducerFenced, match="another producer uses this"):
                await former.commit()
            with pytest.raises(ProducerFenced, match="make a new one"):
                await former.begin()
            async with successor.transaction():
                await successor.send([record(topic, b"kept")])
        assert await committed_values(client, topic) == [b"kept"]

    run(bootstrap, topic, scenario)


@pytest.mark.row("A113")
def test_a_fenced_send_has_its_own_error(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        former = TransactionalProducer(client, topic)
        await former.begin()
        await former.send([record(topic, b"lost")])
        await TransactionalProducer(client, topic).init()
        with pytest.raises((ProducerFenced, BrokerRefused)):
            await former.send([record(topic, b"late")])
        with pytest.raises(ProducerFenced):
            await former.abort()

    run(bootstrap, topic, scenario)


@pytest.mark.row("A110")
def test_offsets_are_committed_with_the_records(bootstrap: str, topic: str) -> None:
    place = TopicPartition(topic, 0)

    async def scenario(client: Client) -> None:
        await IdempotentProducer(client).send(record(topic, b"%d" % n) for n in range(3))
        wanted = GroupSettings(offset_reset=OffsetReset.EARLIEST)
        async with (
            GroupConsumer(client, topic, wanted) as consumer,
            TransactionalProducer(client, topic) as producer,
        ):
            consumer.subscribe([topic])
            read = 0
            while read < 3:
                read += len(await consumer.poll())
            member = consumer.group_metadata
            with pytest.raises(ZeroDivisionError):
                await failing(producer, lambda: producer.send_offsets({place: Offset(1)}, member))
            assert place not in await committed_offsets(client, topic)
            async with producer.transaction():
                await producer.send([record(topic, b"out", 1)])
                offsets = {place: consumer.position(place)}
                await producer.send_offsets(offsets, consumer.group_metadata)
            assert (await committed_offsets(client, topic))[place].offset == 3
            await producer.begin()
            former = GroupMetadata(topic, member.member_id, 99)
            with pytest.raises(BrokerRefused, match="ILLEGAL_GENERATION"):
                await producer.send_offsets({place: Offset(0)}, former)
            with pytest.raises(TransactionMustAbort):
                await producer.commit()
            await producer.abort()

    run(bootstrap, topic, scenario)


def test_after_a_rejected_record_the_next_transaction_works(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        async with TransactionalProducer(client, topic) as producer:
            with pytest.raises(BrokerRefused) as caught:
                await failing(producer, lambda: producer.send([record(topic, b"x" * 20_000)]))
            assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
            async with producer.transaction():
                await producer.send([record(topic, b"kept")])
        assert await committed_values(client, topic) == [b"kept"]

    run(bootstrap, topic, scenario)


def test_a_cancelled_send_is_aborted(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        async with TransactionalProducer(client, topic) as producer:
            await producer.begin()
            await producer.send([record(topic, b"before")])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await producer.send([record(topic, b"cut")])
            with pytest.raises(TransactionMustAbort, match="interrupted"):
                await producer.commit()
        async with TransactionalProducer(client, topic) as producer, producer.transaction():
            await producer.send([record(topic, b"after")])
        assert await committed_values(client, topic) == [b"after"]

    run(bootstrap, topic, scenario)


def test_a_cancelled_commit_of_offsets_is_aborted(bootstrap: str, topic: str) -> None:
    place = TopicPartition(topic, 0)

    async def scenario(client: Client) -> None:
        async with TransactionalProducer(client, topic) as producer:
            await producer.begin()
            await producer.send([record(topic, b"without its offset")])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await producer.send_offsets({place: Offset(1)}, GroupMetadata(topic, "", -1))
            with pytest.raises(TransactionMustAbort, match="interrupted"):
                await producer.commit()
        assert await committed_values(client, topic) == []

    run(bootstrap, topic, scenario)


def test_a_transactional_id_is_required() -> None:
    client = Client([])
    with pytest.raises(ConfigError, match=r"transactional\.id must not be empty"):
        TransactionalProducer(client, "")
