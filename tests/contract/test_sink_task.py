"""Tasks of the Spark sink against brokers, without Spark: what is written when something fails."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.process import free_ports, wait_until
from penstock.errors import KafkaError
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.delivery import NotWritten
from penstock.spark.sink.epoch import (
    FINGERPRINTS,
    EpochCommit,
    EpochFailed,
    EpochMarker,
    NothingToCommit,
    SparkTransaction,
    TaskReport,
    to_commit,
)
from penstock.spark.sink.marker import committed_markers
from penstock.spark.sink.rows import BadRow
from penstock.spark.sink.settings import SinkSettings, read_sink_settings
from penstock.spark.sink.task import write, write_in_transaction
from penstock.spark.sink.transaction import (
    abort,
    commit,
    open_transaction,
    participants,
)
from penstock.types import TopicPartition
from support.transactions.committed_values import committed

TYPES = {"key": "string", "value": "string", "partition": "int"}
PARTITIONS = 4
QUERY = "a-query"


@pytest.fixture(scope="module")
def penstock() -> Iterator[str]:
    with PenstockBroker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    with KafkaCluster() as cluster:
        yield cluster.bootstrap


@pytest.fixture(params=["penstock", pytest.param("kafka", marks=pytest.mark.peer)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    name = f"{request.node.originalname}-{random.randrange(1 << 30)}"
    return make_topic(bootstrap, name)


def make_topic(
    bootstrap: str, name: str, config: dict[str, str] | None = None, partitions: int = PARTITIONS
) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    made = NewTopic(name, partitions, config=config or {})
    admin.create_topics([made])[name].result(30)
    return name


def settings(bootstrap: str, topic: str, **given: str) -> SinkSettings:
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    options |= {name.replace("_", "."): value for name, value in given.items()}
    types = {name: TYPES[name] for name in ("key", "value", "partition")}
    return read_sink_settings(options, types, streaming=True)[0]


def exactly_once(bootstrap: str, topic: str, **given: str) -> SinkSettings:
    more = {"transactional": "true", "transactionalId": f"sink-{topic}", "kafka_batch_size": "400"}
    return settings(bootstrap, topic, **(more | given))


def rows(values: list[int], partition: int | None = None) -> pa.RecordBatch:
    chosen_partitions = [value % PARTITIONS if partition is None else partition for value in values]
    return pa.record_batch(
        {
            "key": pa.array([f"{value:06}" for value in values]),
            "value": pa.array([f"{value:06}" for value in values]),
            "partition": pa.array(chosen_partitions, pa.int32()),
        }
    )


def opened(of: SinkSettings) -> SparkTransaction:
    assert of.transactional_id is not None
    with BlockingClient(of.client) as client:
        return open_transaction(client, of.transactional_id, of.transaction_timeout_ms)


def task(
    of: SinkSettings, transaction: SparkTransaction, *batches: pa.RecordBatch, batch_id: int = 0
) -> TaskReport:
    return write_in_transaction(
        iter(batches), of, transaction, query=QUERY, batch_id=batch_id, task=0
    )


def end(of: SinkSettings, *reports: TaskReport, batch_id: int = 0) -> None:
    decided = to_commit(reports, batch_id, of.topic)
    assert isinstance(decided, EpochCommit)
    with BlockingClient(of.client) as client:
        commit(client, decided)


def seen(bootstrap: str, topic: str, *, while_open: bool = False) -> list[list[int]]:
    found = committed(bootstrap, topic, PARTITIONS, while_open=while_open)
    return [[int(value) for value in each] for each in found]


def flat(found: list[list[int]]) -> list[int]:
    return [each for partition in found for each in partition]


def test_rows_are_written_in_order_and_once_while_the_broker_is_killed(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    count, kills = 60_000, 4
    ready = [threading.Event() for _ in range(kills)]

    def batches() -> Iterator[pa.RecordBatch]:
        for index, start in enumerate(range(0, count, 1000)):
            if index % 12 == 6 and index // 12 < kills:
                ready[index // 12].set()
            yield rows(list(range(start, start + 1000)))

    with PenstockBroker("--port", str(port), folder=tmp_path) as broker:
        make_topic(broker.bootstrap, "kept")
        of = settings(broker.bootstrap, "kept", kafka_batch_size="4000")
        # The broker dies with the thread that started it, so the writer gets the extra thread.
        with ThreadPoolExecutor() as threads:
            writing: Future[int] = threads.submit(write, batches(), of)
            for event in ready:
                assert event.wait(60)
                broker.kill(0)
                broker.start(0)
            assert writing.result(60) == count
        found = seen(broker.bootstrap, "kept")
    assert found == [list(range(each, count, PARTITIONS)) for each in range(PARTITIONS)]


def test_an_epoch_is_visible_once_it_is_committed(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    transaction = opened(of)
    report = task(of, transaction, rows(list(range(100))), rows(list(range(100, 150))))
    assert sum(report.rows.values()) == 150
    assert seen(bootstrap, topic, while_open=True) == [[], [], [], []]
    end(of, report)
    assert seen(bootstrap, topic) == [list(range(each, 150, 4)) for each in range(4)]
    with BlockingClient(of.client) as client:
        (marker,) = committed_markers(client, transaction.id)
    assert marker == EpochMarker(QUERY, 1, 150, report.fingerprint % FINGERPRINTS)


def test_a_commit_may_be_retried(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    transaction = opened(of)
    decided = to_commit([task(of, transaction, rows([1, 2, 3]))], 0)
    assert isinstance(decided, EpochCommit)
    with BlockingClient(of.client) as client:
        commit(client, decided)
        # The commit is refused or repeated, depending on how many markers the broker has written.
        with suppress(EpochFailed):
            commit(client, decided)
    assert sorted(flat(seen(bootstrap, topic))) == [1, 2, 3]
    again = task(of, opened(of), rows([1, 2, 3]))
    assert again.skipped
    assert to_commit([again], 0) == NothingToCommit()


def test_a_retried_task_resumes_after_its_written_rows(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    transaction = opened(of)
    task(of, transaction, rows(list(range(90))))
    report = task(of, transaction, rows(list(range(60))), rows(list(range(60, 200))))
    end(of, report)
    assert seen(bootstrap, topic) == [list(range(each, 200, 4)) for each in range(4)]


def test_a_retry_with_other_rows_fails_and_the_next_run_is_exact(
    bootstrap: str, topic: str
) -> None:
    of = exactly_once(bootstrap, topic)
    transaction = opened(of)
    task(of, transaction, rows(list(range(50))))
    with pytest.raises(EpochFailed, match="row 0 of this attempt is not the one"):
        task(of, transaction, rows(list(range(50, 100))))
    with pytest.raises(EpochFailed, match="this attempt has 5 rows, but 13 are written"):
        task(of, transaction, rows(list(range(20))))
    end(of, task(of, opened(of), rows(list(range(20)))))
    assert seen(bootstrap, topic) == [list(range(each, 20, 4)) for each in range(4)]


def test_rows_of_a_lost_attempt_on_another_partition_fail_the_commit(
    bootstrap: str, topic: str
) -> None:
    of = exactly_once(bootstrap, topic)
    transaction = opened(of)
    task(of, transaction, rows([1, 2], partition=3))
    with pytest.raises(EpochFailed, match="-3 has 2 rows of the epoch that no task reported"):
        end(of, task(of, transaction, rows([1, 2], partition=0)))


def test_two_tasks_on_one_partition_fail_with_advice(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    transaction = opened(of)
    task(of, transaction, rows([1, 2], partition=0))
    with pytest.raises(EpochFailed, match=r"another task writes .*repartitionById"):
        task(of, transaction, rows([3, 4, 5], partition=0))


def test_an_older_run_is_fenced(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    old = opened(of)
    report = task(of, old, rows([1, 2, 3]))
    new = opened(of)
    with pytest.raises(KafkaError, match="newer run of this query"):
        task(of, old, rows([1, 2, 3, 4]))
    with pytest.raises(KafkaError):
        end(of, report)
    end(of, task(of, new, rows([1, 2, 3])))
    assert sorted(flat(seen(bootstrap, topic))) == [1, 2, 3]


def test_an_aborted_epoch_is_never_visible(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    transaction = opened(of)
    report = task(of, transaction, rows([1, 2, 3]))
    with BlockingClient(of.client) as client:
        abort(client, transaction)
        abort(client, transaction)
    with pytest.raises(KafkaError):
        end(of, report)
    assert seen(bootstrap, topic) == [[], [], [], []]


def test_another_checkpoint_is_another_query(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    for _ in range(2):
        with pytest.raises(EpochFailed, match="ifMarkerIsMissing"):
            task(of, opened(of), rows([1]), batch_id=7)  # as if all its traces had expired
    all_the_same = exactly_once(bootstrap, topic, ifMarkerIsMissing="write")
    end(of, task(all_the_same, opened(of), rows([1]), batch_id=7), batch_id=7)
    assert task(of, opened(of), rows([1]), batch_id=7).skipped
    other = write_in_transaction(
        iter([rows([2])]), of, opened(of), query="another", batch_id=0, task=0
    )
    assert not other.skipped
    end(of, other)
    assert sorted(flat(seen(bootstrap, topic))) == [1, 2]
    again = write_in_transaction(
        iter([rows([2])]), of, opened(of), query="another", batch_id=0, task=0
    )
    assert again.skipped
    with pytest.raises(EpochFailed, match="left no marker"):
        task(of, opened(of), rows([1]), batch_id=8)


def test_an_older_copy_of_a_checkpoint_loses_no_rows(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    for batch_id in range(3):
        end(of, task(of, opened(of), rows([batch_id]), batch_id=batch_id), batch_id=batch_id)
    with pytest.raises(EpochFailed, match="its checkpoint is an older copy"):
        task(of, opened(of), rows([1, 2, 3]), batch_id=1)
    with pytest.raises(EpochFailed, match="1 rows as micro-batch 2 before, but now it has 2"):
        end(of, task(of, opened(of), rows([2, 3]), batch_id=2), batch_id=2)
    with pytest.raises(EpochFailed, match="micro-batch 2 before, but now it has 1 others"):
        end(of, task(of, opened(of), rows([3]), batch_id=2), batch_id=2)
    again = task(of, opened(of), rows([2]), batch_id=2)
    assert again.skipped
    assert to_commit([again], 2, of.topic) == NothingToCommit()
    assert sorted(flat(seen(bootstrap, topic))) == [0, 1, 2]


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_attempts_that_run_side_by_side_never_mix(
    bootstrap: str, topic: str, seed: int, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the same rows in different orders: an attempt that succeeds must find its own rows
    in the log.

    This must hold even if both cut their rows into equal batches, so that the leader takes the
    batches of one for those of the other.
    """
    if alike:
        monkeypatch.setattr("penstock.spark.sink.task.varied", lambda size: lambda: size)
    of = exactly_once(bootstrap, topic, kafka_batch_size="3000")
    transaction = opened(of)
    dice = random.Random(seed)
    orders = [dice.sample(range(2000), 2000) for _ in range(2)]
    start = threading.Barrier(2)

    def attempt(order: list[int]) -> TaskReport:
        start.wait(30)
        return task(of, transaction, *(rows(order[at : at + 200]) for at in range(0, 2000, 200)))

    with ThreadPoolExecutor() as threads:
        futures = [threads.submit(attempt, order) for order in orders]
        failures = [future.exception(60) for future in futures]
    assert all(isinstance(each, KafkaError | None) for each in failures), failures
    ended = [index for index, failure in enumerate(failures) if failure is None]
    assert len(ended) <= 1
    for index in ended:
        end(of, futures[index].result())
        expected = [[each for each in orders[index] if each % 4 == part] for part in range(4)]
        assert seen(bootstrap, topic) == expected


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_other_clients_read_rows_of_every_codec(bootstrap: str, topic: str, codec: str) -> None:
    of = settings(bootstrap, topic, kafka_compression_type=codec)
    assert write(iter([rows(list(range(1000)))]), of) == 1000
    assert seen(bootstrap, topic) == [list(range(each, 1000, 4)) for each in range(4)]


def test_acks_1_needs_no_producer_id(bootstrap: str, topic: str) -> None:
    assert write(iter([rows([5])]), settings(bootstrap, topic, kafka_acks="1")) == 1
    assert seen(bootstrap, topic) == [[], [5], [], []]


def test_the_error_about_a_too_large_row_names_its_topic(bootstrap: str) -> None:
    name = make_topic(bootstrap, f"small-{random.randrange(1 << 30)}", {"max.message.bytes": "500"})
    with pytest.raises(NotWritten, match=f"rows to {name}-0: MESSAGE_TOO_LARGE .*kafka.batch.size"):
        write(iter([rows(list(range(0, 400, 4)))]), settings(bootstrap, name))


def test_the_error_about_an_unknown_partition_names_topic_and_partition(
    bootstrap: str, topic: str
) -> None:
    with pytest.raises(BadRow, match=f"partition has 9, but topic {topic} has partitions 0 to 3"):
        write(iter([rows([1], partition=9)]), settings(bootstrap, topic))


def test_topics_named_by_a_column_may_have_different_partition_counts(
    bootstrap: str, topic: str
) -> None:
    narrow = make_topic(bootstrap, f"{topic}-narrow", partitions=1)
    types = {"value": "string", "topic": "string", "partition": "int"}
    of = read_sink_settings({"kafka.bootstrap.servers": bootstrap}, types, streaming=True)[0]
    batch = pa.record_batch(
        {
            "value": pa.array(["1", "2", "3"]),
            "topic": pa.array([topic, narrow, topic]),
            "partition": pa.array([3, 0, 1], pa.int32()),
        }
    )
    assert write([batch], of) == 3
    assert seen(bootstrap, topic) == [[], [3], [], [1]]
    assert committed(bootstrap, narrow, 1) == [["2"]]


def test_the_error_about_a_header_without_key_names_the_topic(bootstrap: str, topic: str) -> None:
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    types = {"value": "string", "headers": "array<struct<key:string,value:binary>>"}
    of, _ = read_sink_settings(options, types, streaming=False)
    entry = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = pa.array([[{"key": None, "value": b""}]], pa.list_(entry))
    with pytest.raises(BadRow, match=f"a row to {topic}-.: a header's key is null"):
        write(iter([pa.record_batch({"value": ["x"], "headers": headers})]), of)


def test_the_error_about_a_too_long_timeout_names_the_option(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic, kafka_transaction_timeout_ms="99999999")
    with pytest.raises(KafkaError, match=r"kafka.transaction.timeout.ms = 99999999 is above"):
        opened(of)


def test_the_error_about_a_too_long_epoch_names_the_option_to_raise() -> None:
    soon = "transaction.abort.timed.out.transaction.cleanup.interval.ms=100"
    with PenstockBroker("--set", soon) as broker:
        topic = make_topic(broker.bootstrap, "late")
        of = exactly_once(broker.bootstrap, topic, kafka_transaction_timeout_ms="300")
        transaction = opened(of)
        report = task(of, transaction, rows([1, 2, 3]))
        with BlockingClient(of.client) as client:
            wait_until(lambda: not participants(client, transaction), 20, "the transaction's end")
        for late in (lambda: task(of, transaction, rows([1, 2, 3, 4])), lambda: end(of, report)):
            with pytest.raises(KafkaError, match=r"kafka\.transaction\.timeout\.ms|newer run"):
                late()
        assert seen(broker.bootstrap, topic) == [[], [], [], []]


def test_an_epoch_without_rows_leaves_a_marker(bootstrap: str, topic: str) -> None:
    of = exactly_once(bootstrap, topic)
    end(of, task(of, opened(of)))
    end(of, task(of, opened(of), rows([1]), batch_id=1), batch_id=1)
    with BlockingClient(of.client) as client:
        (marker,) = committed_markers(client, of.transactional_id or "")
    assert (marker.query, marker.next_batch, marker.rows) == (QUERY, 2, 1)
    assert flat(seen(bootstrap, topic)) == [1]


def test_partitions_are_added_by_request_if_writes_do_not_add_them(
    bootstrap: str, topic: str
) -> None:
    """As on a cluster whose transaction.version is still 1."""
    of = exactly_once(bootstrap, topic)
    new = opened(of)
    old = SparkTransaction(new.id, new.producer_id, new.producer_epoch, implicit=False)
    assert new.implicit
    task(of, old, rows(list(range(50))))
    report = task(of, old, rows(list(range(100))))
    end(of, report)
    assert seen(bootstrap, topic) == [list(range(each, 100, 4)) for each in range(4)]
    assert set(report.rows) == {TopicPartition(topic, each) for each in range(4)}
