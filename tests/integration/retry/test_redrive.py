"""A redrive that ends at the worst moment, or races another: each dead letter goes back once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import count

import pytest

from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.errors import BrokerRefused
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.client.transactional_producer import TransactionalProducer
from penstock.errors import KafkaError
from penstock.record.dead_letter import DeadLetter, dead_letter_headers
from penstock.retry.progress import Outcome
from penstock.retry.redrive import LetterMarks, RedriveOptions, redrive
from penstock.retry.selection import EVERYTHING
from penstock.retry.state_topic import REDRIVE_TOPIC
from penstock.testing.broker import EmbeddedBroker
from penstock.types import TopicPartition

_numbers = count()
LETTERS = 20


class CrashError(Exception):
    """The process ends here."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap


def run(bootstrap: str, scenario: Callable[[Client, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Client(parse_addresses(bootstrap)) as client:
            name = f"t{next(_numbers)}"
            for each in (name, f"{name}.dlq"):
                await create_topic(client, NewTopic(name=each, partitions=1))
            letter = DeadLetter(error="e", source="sdk", topic=name, partition=0)
            headers = dead_letter_headers(letter, [])
            records = [
                ProducerRecord(f"{name}.dlq", b"%d" % n, None, headers) for n in range(LETTERS)
            ]
            await IdempotentProducer(client).send(records)
            await scenario(client, name)
            assert sorted(await values(client, name)) == list(range(LETTERS))

    asyncio.run(main())


async def values(client: Client, topic: str) -> list[int]:
    partition = TopicPartition(topic, 0)
    isolation = IsolationLevel.READ_COMMITTED
    start = await list_offsets(client, {partition: EARLIEST})
    end = await list_offsets(client, {partition: LATEST}, isolation=isolation)
    async with SimpleConsumer(
        client,
        {partition: start[partition].offset},
        ends={partition: end[partition].offset},
        isolation=isolation,
    ) as consumer:
        return [int(each.record.value or b"") async for each in consumer]


async def redrive_all(client: Client, topic: str) -> int:
    done = await redrive(client, f"{topic}.dlq", EVERYTHING, RedriveOptions())
    return done.counts.total()


@pytest.mark.parametrize("after_commit", [False, True])
def test_a_crash_around_the_commit_neither_loses_nor_repeats(
    bootstrap: str, after_commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: Client, name: str) -> None:
        commit = LetterMarks.commit

        async def crash(
            self: LetterMarks, marked: Mapping[TopicPartition, list[int]], outcome: Outcome
        ) -> None:
            if after_commit:
                await commit(self, marked, outcome)
            raise CrashError

        with monkeypatch.context() as patched:
            patched.setattr(LetterMarks, "commit", crash)
            with pytest.raises(CrashError):
                await redrive_all(client, name)
        assert await redrive_all(client, name) == (0 if after_commit else LETTERS)

    run(bootstrap, scenario)


def test_a_run_sees_what_another_committed_just_before_it_was_fenced(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that fences must know what the other one has done."""

    async def scenario(client: Client, name: str) -> None:
        init = TransactionalProducer.init
        async with Client(parse_addresses(bootstrap)) as others:

            async def late(self: TransactionalProducer) -> None:
                monkeypatch.setattr(TransactionalProducer, "init", init)
                assert await redrive_all(others, name) == LETTERS
                await init(self)

            monkeypatch.setattr(TransactionalProducer, "init", late)
            assert await redrive_all(client, name) == 0

    run(bootstrap, scenario)


def test_a_fenced_run_cannot_commit(bootstrap: str) -> None:
    async def scenario(client: Client, name: str) -> None:
        async with LetterMarks(client, f"{name}.dlq") as marks:
            await marks.producer.begin()
            await marks.producer.send([ProducerRecord(name, b"0")])
            async with Client(parse_addresses(bootstrap)) as others:
                assert await redrive_all(others, name) == LETTERS
            with pytest.raises(KafkaError):
                await marks.commit({TopicPartition(f"{name}.dlq", 0): [0]}, Outcome.DELIVERED)

    run(bootstrap, scenario)


def test_a_fenced_run_reports_that_another_has_started(bootstrap: str) -> None:
    async def scenario(client: Client, name: str) -> None:
        async def fenced() -> None:
            async with LetterMarks(client, f"{name}.dlq") as marks:
                async with Client(parse_addresses(bootstrap)) as others:
                    assert await redrive_all(others, name) == LETTERS
                await marks.producer.begin()
                await marks.producer.send([ProducerRecord(name, b"0")])

        with pytest.raises(KafkaError, match="another redrive or purge"):
            await fenced()

    run(bootstrap, scenario)


def test_a_forged_origin_does_not_override_the_given_target(bootstrap: str) -> None:
    async def scenario(client: Client, name: str) -> None:
        forged = DeadLetter(error="e", source="sdk", topic="no topic!", partition=0)
        topic = f"{name}.forged"
        await create_topic(client, NewTopic(name=topic, partitions=1))
        records = [
            ProducerRecord(topic, b"%d" % n, None, dead_letter_headers(forged, []))
            for n in range(LETTERS)
        ]
        await IdempotentProducer(client).send(records)
        done = await redrive(client, topic, EVERYTHING, RedriveOptions(to=name))
        assert (done.counts, done.refused) == ({name: LETTERS}, {})

    run(bootstrap, scenario)


def test_large_dead_letters_are_redriven_in_several_transactions(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.redrive.TRANSACTION_BYTES", 1)
    commit, sizes = LetterMarks.commit, list[int]()

    async def count_marks(
        self: LetterMarks, marked: Mapping[TopicPartition, list[int]], outcome: Outcome
    ) -> None:
        sizes.append(sum(len(each) for each in marked.values()))
        await commit(self, marked, outcome)

    async def scenario(client: Client, name: str) -> None:
        monkeypatch.setattr(LetterMarks, "commit", count_marks)
        assert await redrive_all(client, name) == LETTERS
        assert sizes == [1] * LETTERS

    run(bootstrap, scenario)


def test_a_missing_topic_is_reported_before_anything_is_created() -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(BrokerRefused, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await redrive_all(client, "missing")
        assert await client.existing_topics([REDRIVE_TOPIC]) == []

    async def main() -> None:
        with EmbeddedBroker() as broker:
            async with Client(parse_addresses(broker.bootstrap)) as client:
                await scenario(client)

    asyncio.run(main())


def test_only_allowed_targets_are_written(bootstrap: str) -> None:
    async def scenario(client: Client, name: str) -> None:
        options = RedriveOptions(only={"other"})
        done = await redrive(client, f"{name}.dlq", EVERYTHING, options)
        reason = f"{name} was found after the targets were confirmed; run it again"
        assert (done.counts, done.refused) == ({}, {reason: LETTERS})
        assert await redrive_all(client, name) == LETTERS

    run(bootstrap, scenario)
