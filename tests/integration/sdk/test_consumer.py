"""The SDK's consumer against a broker."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import Consumer as Plain
from confluent_kafka import TopicPartition

from penstock.sdk.async_consumer import AsyncConsumer
from penstock.sdk.commit_mode import AsyncCommit, AutoCommit, ManualCommit, SyncCommit
from penstock.sdk.consumer import Consumer
from penstock.sdk.errors import ConsumerFailed, DeserializationFailed
from penstock.sdk.interceptor import ConsumerInterceptor
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing, PartitionId, Record, TimestampType
from penstock.sdk.serde import STRING
from penstock.sdk.transactions import Transactions
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records


def config(broker: EmbeddedBroker, group: str) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }


def written(
    broker: EmbeddedBroker,
    topic: str,
    values: Sequence[str],
    partitions: int = 1,
    **topic_config: str,
) -> None:
    """Writes records of 1970 to a topic without retention, which would delete them during a test: a
    broker checks half a minute after its start, whichever test runs then.
    """
    configs = {name.replace("_", "."): value for name, value in topic_config.items()}
    broker.create_topic(topic, partitions, configs={"retention.ms": "-1", **configs})
    with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0}, value=STRING) as out:
        out.send_all(
            Outgoing(topic, value, partition=at % partitions, timestamp_ms=1000 + at)
            for at, value in enumerate(values)
        )


def committed(broker: EmbeddedBroker, group: str, topic: str, partition: int = 0) -> int:
    plain = Plain({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
    offset = plain.committed([TopicPartition(topic, partition)], 10)[0].offset
    plain.close()
    return offset


@pytest.mark.row("A040", "A041")
@pytest.mark.parametrize(
    "mode",
    [AutoCommit(), SyncCommit(), AsyncCommit(every_ms=0, sync_every=2)],
    ids=lambda m: type(m).__name__,
)
def test_exactly_the_processed_records_are_committed(
    shared_broker: EmbeddedBroker, mode: Any
) -> None:
    topic = f"processed-{type(mode).__name__}"
    written(shared_broker, topic, ["0", "1", "2", "3"])
    with Consumer(config(shared_broker, topic), [topic], value=STRING, commit=mode) as consumer:
        read = list(islice(consumer, 3))  # the third is still being processed when the loop ends
        assert [each.value for each in read] == ["0", "1", "2"]
    assert committed(shared_broker, topic, topic) == 2
    with Consumer(config(shared_broker, topic), [topic], commit=mode) as consumer:
        while not (batch := consumer.batch()):
            pass
        assert [each.offset for each in batch] == [2, 3]
        assert batch[0].timestamp_type is TimestampType.CREATE_TIME
        assert batch[0].timestamp_ms == 1002
    assert committed(shared_broker, topic, topic) == 4


def test_an_explicit_commit_covers_the_current_record(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "said", ["0", "1", "2", "3"])
    settings = config(shared_broker, "said")
    with Consumer(settings, ["said"], commit=ManualCommit()) as consumer:
        for record in consumer:
            if record.offset == 1:
                consumer.commit()
                break
    assert committed(shared_broker, "said", "said") == 2
    with Consumer(settings, ["said"], commit=ManualCommit()) as consumer:
        while not consumer.batch():
            pass
        consumer.commit()
    assert committed(shared_broker, "said", "said") == 4


def test_a_batch_whose_block_raised_is_not_committed(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "raised", ["0", "1"])

    def failing() -> None:
        with Consumer(config(shared_broker, "raised"), ["raised"], commit=SyncCommit()) as consumer:
            while not consumer.batch():
                pass
            raise RuntimeError("out")

    with pytest.raises(RuntimeError, match="out"):
        failing()
    assert committed(shared_broker, "raised", "raised") < 0


@pytest.mark.row("A036")
def test_a_custom_deserializer_is_used_and_a_poison_record_raises(
    shared_broker: EmbeddedBroker,
) -> None:
    class Whole:
        def deserialize(self, data: bytes, /) -> int:
            return int(data)

    written(shared_broker, "whole", ["1", "x", "3"])
    settings = config(shared_broker, "whole")
    with Consumer(settings, ["whole"], value=Whole(), commit=SyncCommit()) as consumer:
        while not (batch := consumer.batch()):
            pass
        assert [each.value for each in batch] == [1]
        with pytest.raises(DeserializationFailed, match="value of whole-0 at 1") as failed:
            consumer.batch()
        assert (failed.value.offset, failed.value.data) == (1, b"x")
    assert committed(shared_broker, "whole", "whole") == 2


@pytest.mark.row("A037")
def test_interceptors_see_batches_and_commits_and_a_broken_one_is_logged(
    shared_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    class OnlyEven(ConsumerInterceptor):
        def __init__(self) -> None:
            self.commits: list[Mapping[PartitionId, int]] = []

        def on_consume(self, records: list[Record[Any, Any]], /) -> list[Record[Any, Any]]:
            return [each for each in records if int(str(each.value)) % 2 == 0]

        def on_commit(self, offsets: Mapping[PartitionId, int], /) -> None:
            self.commits.append(offsets)

    class Broken(ConsumerInterceptor):
        def on_consume(self, _: list[Record[Any, Any]], /) -> list[Record[Any, Any]]:
            raise RuntimeError("no")

    even = OnlyEven()
    written(shared_broker, "even", ["0", "1", "2", "3"])
    with Consumer(
        config(shared_broker, "even"),
        ["even"],
        value=STRING,
        commit=SyncCommit(),
        interceptors=[Broken(), even],
    ) as consumer:
        assert [each.value for each in islice(consumer.records(5), 2)] == ["0", "2"]
        consumer.processed_to({("even", 0): 4})
    assert even.commits[-1] == {("even", 0): 4}
    assert any(
        "Broken.on_consume" in each.message
        for each in caplog.records
        if each.levelno == logging.ERROR
    )


def test_positions_are_set_by_offset_time_and_distance(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "positions", [str(each) for each in range(10)])
    with Consumer(
        config(shared_broker, "positions"), commit=ManualCommit(), value=STRING
    ) as consumer:
        consumer.assign({("positions", 0): 3})

        def following() -> str | None:
            return next(consumer.records(10)).value

        assert following() == "3"
        consumer.seek("positions", 0, 7)
        assert following() == "7"
        consumer.seek_to_time(1005)
        assert following() == "5"
        consumer.seek("positions", 0, 4)
        assert following() == "4"
        consumer.seek_to_beginning()
        assert following() == "0"
        consumer.seek("positions", 0, 5)
        consumer.seek_by(-3)
        assert following() == "2"
        consumer.pause()
        consumer.resume()


def test_a_seek_inside_the_loop_takes_effect_with_the_next_record(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "inside", [str(each) for each in range(10)])
    with Consumer(config(shared_broker, "inside"), ["inside"], commit=SyncCommit()) as consumer:
        seen = []
        for record in consumer.records(5):
            seen.append(record.offset)
            if seen == [0, 1, 2]:
                consumer.seek_by(4)  # from 3, the next record
            if len(seen) == 5:
                break
    assert seen == [0, 1, 2, 7, 8]
    assert committed(shared_broker, "inside", "inside") == 8


def test_asyncio_reads_by_iteration_and_in_batches(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "looped", [str(each) for each in range(20)], 2)

    async def reading() -> list[str | None]:
        found: list[str | None] = []
        assigned: list[PartitionId] = []
        consumer = Consumer(
            config(shared_broker, "looped"),
            ["looped"],
            value=STRING,
            commit=SyncCommit(),
            on_assign=assigned.extend,
        )
        async with AsyncConsumer(consumer) as reader:
            async for record in reader:
                found.append(record.value)
                if len(found) == 20:
                    await reader.commit()
                    break
        assert sorted(assigned) == [("looped", 0), ("looped", 1)]
        return found

    assert sorted(asyncio.run(reading()), key=lambda v: int(v or 0)) == [str(n) for n in range(20)]


@pytest.mark.row("A176")
def test_a_missing_position_may_be_an_error(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "strict", ["x"])
    settings = {**config(shared_broker, "strict"), "auto.offset.reset": "error"}
    with (
        Consumer(settings, ["strict"]) as consumer,
        pytest.raises(ConsumerFailed, match="AUTO_OFFSET"),
    ):
        next(consumer.records(10))


@pytest.mark.row("A115")
def test_a_batch_and_its_results_are_one_transaction(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "in", [str(each) for each in range(6)])
    shared_broker.create_topic("out", 1)
    settings = {"bootstrap.servers": shared_broker.bootstrap, "log_level": 0, "linger.ms": 0}

    def copy(fail_at: str) -> None:
        with Transactions(
            settings, ["in"], group="copiers", instance="1", value=STRING, batch=2
        ) as transactions:
            for records, output in transactions.batches(idle_s=1):
                for record in records:
                    output.send("out", f"{record.value}!".encode())
                    if record.value == fail_at:
                        output.flush()
                        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        copy("3")
    copy("none")
    found = [each.value() for each in all_records(shared_broker.bootstrap, "out")]
    assert found == [f"{each}!".encode() for each in range(6)]
    dirty = all_records(shared_broker.bootstrap, "out", isolation="read_uncommitted")
    assert len(dirty) > 6
