"""The driver side of a share group as a stream, called as Spark calls it but without Spark."""

import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from penstock.client.errors import BrokerRefused
from penstock.spark.options import Options
from penstock.spark.source.data_loss import DataLoss
from penstock.spark.source.settings import stream_settings
from penstock.spark.source.share.reader import ShareStreamReader
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from support.brokers.wire_link import WireLink
from support.groups.share_member import (
    ACCEPT,
    ShareMember,
    configure_group,
    make_topic,
    produce,
)
from support.sdk.waiting import wait_until

ALL = ReadAllAvailable()
LOCK_S = 1.0
SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


def prepared(broker: EmbeddedBroker, name: str, count: int, **settings: str) -> None:
    with WireLink(broker.bootstrap) as link:
        make_topic(link, name)
        more = {each.replace("_", "."): value for each, value in settings.items()}
        configure_group(link, name, {"share.auto.offset.reset": "earliest", **more})
        for _ in range(0, count, 10):
            produce(link, name, 10)


def remade(broker: EmbeddedBroker, name: str, count: int) -> None:
    """Deletes the topic, and creates another one of the same name."""
    with WireLink(broker.bootstrap) as link:
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name)], timeout_ms=5000)
        reply = link.ask(gone)
        assert isinstance(reply, DeleteTopicsResponse)
        assert not reply.responses[0].error_code
        make_topic(link, name)
        for _ in range(0, count, 10):
            produce(link, name, 10)


@contextmanager
def reading(broker: EmbeddedBroker, name: str, **options: object) -> Iterator[ShareStreamReader]:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": name, "shareGroup": name}
    given |= {"kafka.fetch.max.wait.ms": "100"} | {k: str(v) for k, v in options.items()}
    reader = ShareStreamReader(stream_settings(Options(given))[0], name)
    try:
        yield reader
    finally:
        reader.stop()


def batch(reader: ShareStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[list[int]]:
    """The offsets that each task of a micro-batch reads."""
    copied = pickle.loads(pickle.dumps(reader))
    return [
        [row for each in copied.read(task) for row in each.column("offset").to_pylist()]
        for task in reader.partitions(start, end)
    ]


def left_over(broker: EmbeddedBroker, name: str) -> list[tuple[int, int, int]]:
    """The records that another member gets, and their delivery counts."""
    member = ShareMember(broker.bootstrap, name, "another", name)
    member.join()
    try:
        return member.acquired(most=1000, wait_ms=300)
    finally:
        member.leave()
        member.close()


def test_records_of_one_partition_are_divided_and_accepted_after_the_micro_batch(
    broker: EmbeddedBroker,
) -> None:
    prepared(broker, "divided", 40)
    with reading(broker, "divided", minPartitions=4) as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        tasks = batch(reader, start, end)
        assert tasks == [list(range(n, n + 10)) for n in range(0, 40, 10)]
        assert batch(reader, start, end) == tasks, "a task that runs again reads the same"
        assert reader.latestOffset(end, ALL) == end
        reader.commit(end)
        assert reader.partitions(end, end) == []
    assert left_over(broker, "divided") == []


def test_an_uncommitted_micro_batch_is_delivered_again(broker: EmbeddedBroker) -> None:
    prepared(broker, "again", 20)
    with reading(broker, "again") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        assert batch(reader, start, end) == [list(range(20))]
    # The process ends here. Spark runs the micro-batch of its checkpoint again.
    with reading(broker, "again") as reader:
        assert batch(reader, start, end) == [list(range(20))]
        assert left_over(broker, "again") == [], "they are locked again"
        assert reader.latestOffset(end, ALL) == end
    assert left_over(broker, "again") == []


def test_a_micro_batch_of_an_old_checkpoint_is_accepted_too(broker: EmbeddedBroker) -> None:
    prepared(broker, "old-checkpoint", 10)
    with reading(broker, "old-checkpoint") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
    for offset in (start, end):  # as in versions without topic ids
        del offset["version"], offset["topicIds"]
    with reading(broker, "old-checkpoint") as reader:
        assert batch(reader, start, end) == [list(range(10))]
        assert reader.latestOffset(end, ALL) == end
    assert left_over(broker, "old-checkpoint") == []


def test_a_topic_recreated_during_a_micro_batch_is_read_from_its_start(
    broker: EmbeddedBroker,
) -> None:
    prepared(broker, "anew", 30)
    with reading(broker, "anew") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        assert batch(reader, start, end) == [list(range(30))]
        former = reader._joined().topic_ids()
        remade(broker, "anew", 50)

        def is_noticed() -> bool:
            consumer = reader._joined()
            with consumer._guard:
                consumer._heartbeat()
            return consumer.topic_ids() != former

        wait_until(is_noticed, "an assignment of the new topic")
        following = reader.latestOffset(end, ALL)
        assert batch(reader, end, following) == [list(range(50))]
        assert reader.latestOffset(following, ALL) == following
    assert left_over(broker, "anew") == []


def test_a_recreated_topic_is_not_read_in_place_of_the_locked_records(
    broker: EmbeddedBroker,
) -> None:
    prepared(broker, "anew-early", 30)
    with reading(broker, "anew-early") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        (task,) = reader.partitions(start, end)
        remade(broker, "anew-early", 50)
        with pytest.raises(DataLoss, match="its topic was recreated"):
            list(reader.read(task))
    with reading(broker, "anew-early", failOnDataLoss=False) as reader:
        assert batch(reader, start, end) == [[]]


def test_records_of_an_earlier_run_are_not_assumed_processed(broker: EmbeddedBroker) -> None:
    """A checkpoint cannot tell whether its last records were accepted, or the group was reset."""
    prepared(broker, "earlier", 10)
    with reading(broker, "earlier") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        assert batch(reader, start, end) == [list(range(10))]
    with reading(broker, "earlier") as reader:
        following = reader.latestOffset(end, ALL)
        assert (following["batch"], following["records"]) == (2, end["records"])
        assert following != end


def test_locks_are_renewed_while_a_micro_batch_runs(broker: EmbeddedBroker) -> None:
    prepared(broker, "renewed", 20, share_record_lock_duration_ms="1000")
    with reading(broker, "renewed") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        until = time.monotonic() + 2.2 * LOCK_S
        while time.monotonic() < until:
            assert left_over(broker, "renewed") == []
        assert batch(reader, start, end) == [list(range(20))]
        assert reader.latestOffset(end, ALL) == end
    assert left_over(broker, "renewed") == []


def test_without_renewal_a_long_micro_batch_is_redelivered_and_then_accepted(
    broker: EmbeddedBroker,
) -> None:
    name = "not-renewed"
    prepared(
        broker,
        name,
        20,
        share_record_lock_duration_ms="1000",
        share_renew_acknowledge_enable="false",
    )
    with reading(broker, name) as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        assert batch(reader, start, end) == [list(range(20))]
        until = time.monotonic() + 20 * LOCK_S
        taken: list[tuple[int, int, int]] = []
        while not taken and time.monotonic() < until:
            taken = left_over(broker, name)  # another member acquires them, and releases them
        assert taken
        assert reader.latestOffset(end, ALL) == end, "processed once, by this query"
    assert left_over(broker, name) == []


def test_a_lost_connection_does_not_lose_records(broker: EmbeddedBroker) -> None:
    prepared(broker, "cut", 20)
    with reading(broker, "cut") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        assert batch(reader, start, end) == [list(range(20))]
        consumer = reader._joined()
        for connection, _ in consumer._sessions.values():
            connection.close()
        assert reader.latestOffset(end, ALL) == end, "they came again, and were accepted"
    assert left_over(broker, "cut") == []


def test_a_trigger_takes_at_most_its_maximum(broker: EmbeddedBroker) -> None:
    prepared(broker, "limited", 30)
    with reading(broker, "limited", maxOffsetsPerTrigger=12) as reader:
        limit = reader.getDefaultReadLimit()
        assert limit == ReadMaxRows(12)
        sizes, start = [], reader.initialOffset()
        while (end := reader.latestOffset(start, limit)) != start:
            sizes += [len(each) for each in batch(reader, start, end)]
            start = end
        assert sizes == [12, 12, 6]


def test_an_available_now_run_leaves_later_records_to_the_next(broker: EmbeddedBroker) -> None:
    prepared(broker, "now", 10)
    with reading(broker, "now") as reader:
        reader.prepareForTriggerAvailableNow()
        with WireLink(broker.bootstrap) as link:
            produce(link, "now", 5)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        assert batch(reader, start, end) == [list(range(10))]
        assert reader.latestOffset(end, ALL) == end
    assert left_over(broker, "now") == [(10, 14, 1)], "their delivery did not count"


def test_a_share_group_may_have_other_members_too(broker: EmbeddedBroker) -> None:
    prepared(broker, "others", 40)
    member = ShareMember(broker.bootstrap, "others", "another", "others")
    member.join()
    ((first, last, _),) = member.acquired(most=10, share_acquire_mode=1)
    with reading(broker, "others", minPartitions=2) as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        rest = [each for each in range(40) if not first <= each <= last]
        assert sorted(chain(*batch(reader, start, end))) == rest
        assert reader.latestOffset(end, ALL) == end
    member.acknowledge((first, last, ACCEPT))
    member.close()
    assert left_over(broker, "others") == []


def test_a_missing_topic_is_an_error(broker: EmbeddedBroker) -> None:
    with (
        reading(broker, "no-such-topic") as reader,
        pytest.raises(BrokerRefused, match="topic no-such-topic does not exist"),
    ):
        reader.latestOffset(reader.initialOffset(), ALL)
