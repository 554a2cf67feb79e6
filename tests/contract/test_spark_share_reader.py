"""A share group as a stream, without Spark, on every target broker."""

import pickle
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable

from clients.brokers import Target
from clients.librdkafka import LibrdkafkaClient
from clients.protocol import Record
from clients.referee import Referee
from penstock.spark.options import Options
from penstock.spark.source.settings import stream_settings
from penstock.spark.source.share.reader import ShareStreamReader

ALL = ReadAllAvailable()
PARTITIONS, EACH = 3, 100


def begun_with_the_first_record(bootstrap: str, group: str) -> None:
    entry = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    wanted = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})  # must live until it has answered
    for done in admin.incremental_alter_configs([wanted]).values():
        done.result(30)


def opened(target: Target, name: str) -> ShareStreamReader:
    given = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": name, "shareGroup": name}
    reader = ShareStreamReader(stream_settings(Options({**given, "minPartitions": "8"}))[0], name)
    reader.prepareForTriggerAvailableNow()
    return reader


def rows(
    reader: ShareStreamReader, start: dict[str, Any], end: dict[str, Any]
) -> set[tuple[int, int]]:
    """Partition and offset of all rows of a micro-batch."""
    copied = pickle.loads(pickle.dumps(reader))
    found = [
        each
        for task in reader.partitions(start, end)
        for batch in copied.read(task)
        for each in zip(
            batch.column("partition").to_pylist(), batch.column("offset").to_pylist(), strict=True
        )
    ]
    assert len(found) == len(set(found)), "one task reads each record"
    return set(found)


@pytest.mark.timeout(180)
def test_a_share_group_is_read_to_its_end_and_after_a_failure(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic, PARTITIONS)
    begun_with_the_first_record(target.bootstrap, topic)
    client = LibrdkafkaClient(target.bootstrap)
    client.produce(
        topic,
        [Record(b"%d" % n, partition=p) for p in range(PARTITIONS) for n in range(EACH)],
    )
    client.close()
    everything = {(p, n) for p in range(PARTITIONS) for n in range(EACH)}
    reader = opened(target, topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert len(reader.partitions(start, end)) >= 8
    assert rows(reader, start, end) == everything
    reader.stop()  # before the micro-batch is committed
    reader = opened(target, topic)
    assert rows(reader, start, end) == everything, "it runs again with the same records"
    assert reader.latestOffset(end, ALL) == end
    reader.stop()
    reader = opened(target, topic)
    assert reader.latestOffset(end, ALL) == end, "all of them are accepted"
    reader.stop()
