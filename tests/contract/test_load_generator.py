"""The load generator's counts are correct: checked with librdkafka on a real Kafka."""

from pathlib import Path

import pytest
from bench.batch import KB_16, KB_64, ONE_RECORD, Batch
from bench.load.generator import LoadError, built, load
from bench.topic import topic
from confluent_kafka import Consumer, TopicPartition

from peers.kafka import KafkaCluster
from peers.process import free_ports

pytestmark = pytest.mark.peer


def end_offsets(kafka: KafkaCluster, name: str, partitions: int = 1) -> list[int]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": name})
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=20)[1]
            for partition in range(partitions)
        ]
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("batch", "connections", "in_flight", "acks"),
    [(ONE_RECORD, 1, 1, -1), (ONE_RECORD, 20, 5, 1), (KB_64, 2, 3, -1)],
)
def test_every_counted_batch_is_in_the_log(
    kafka: KafkaCluster, tmp_path: Path, batch: Batch, connections: int, in_flight: int, acks: int
) -> None:
    port, file = kafka.port(0), batch.file(tmp_path)
    with topic(port, f"load-produce-{connections}-{in_flight}", partitions=2) as name:
        done = load(
            "produce",
            port,
            name,
            batch=file,
            count=200,
            partitions=2,
            connections=connections,
            in_flight=in_flight,
            acks=acks,
        )
        assert (done.requests, done.bytes) == (200, 200 * file.stat().st_size)
        assert 0 < done.p50_us <= done.p99_us < done.seconds * 1e6
        assert end_offsets(kafka, name, 2) == [100 * batch.records] * 2


def test_a_fetch_returns_what_was_produced_and_starts_over_at_the_end(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    port, file = kafka.port(0), KB_16.file(tmp_path)
    size = file.stat().st_size
    with topic(port, "load-fetch") as name:
        load("produce", port, name, batch=file, count=10)
        done = load(
            "fetch", port, name, batch=file, verify=1, count=25, max_bytes=size, connections=2
        )
    assert (done.requests, done.bytes) == (25, 25 * size)


def test_a_fetch_of_unexpected_bytes_is_an_error(kafka: KafkaCluster, tmp_path: Path) -> None:
    port, other = kafka.port(0), KB_64.file(tmp_path)
    with topic(port, "load-fetch-other") as name:
        load("produce", port, name, batch=KB_16.file(tmp_path), count=1)
        with pytest.raises(LoadError, match="another batch"):
            load("fetch", port, name, batch=other, verify=1, count=1)


def test_metadata_requests_are_repeated_for_the_given_time(kafka: KafkaCluster) -> None:
    with topic(kafka.port(0), "load-metadata") as name:
        done = load("metadata", kafka.port(0), name, seconds=0.2)
    assert done.requests > 0
    assert 0.2 <= done.seconds < 5


def test_a_record_travels_end_to_end(kafka: KafkaCluster, tmp_path: Path) -> None:
    port, file = kafka.port(0), ONE_RECORD.file(tmp_path)
    with topic(port, "load-e2e") as name:
        done = load("e2e", port, name, batch=file, count=20, interval_us=1000)
        assert end_offsets(kafka, name) == [21]  # the first record only finds the end of the log
    assert done.requests == 20
    assert 0 < done.p50_us <= done.p99_us


@pytest.mark.parametrize("workload", ["produce", "fetch", "metadata", "e2e"])
def test_an_error_code_ends_the_run(kafka: KafkaCluster, tmp_path: Path, workload: str) -> None:
    file = ONE_RECORD.file(tmp_path)
    with pytest.raises(LoadError, match="error code 3"):
        load(workload, kafka.port(0), "load-no-such-topic", batch=file, count=1)


def test_a_corrupt_batch_is_refused(kafka: KafkaCluster, tmp_path: Path) -> None:
    file = tmp_path / "corrupt"
    data = bytearray(ONE_RECORD.file(tmp_path).read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with (
        topic(kafka.port(0), "load-corrupt") as name,
        pytest.raises(LoadError, match="error code 2"),
    ):
        load("produce", kafka.port(0), name, batch=file, count=1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"count": 1, "acks": 0}, "acks is 1 or -1"),
        ({}, "seconds= or count="),
        ({"count": 1}, "batch= is needed"),
        ({"count": "x"}, "has no number"),
        ({"speed": 1}, "unknown option"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(LoadError, match=complaint):
        load("produce", 1, "t", **options)


def test_a_connection_error_names_the_port() -> None:
    with pytest.raises(LoadError, match="connect to"):
        load("metadata", free_ports(1)[0], "t", count=1)


def test_the_program_is_built_once() -> None:
    assert built() == built()


def test_a_missing_compiler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadError, match="install a compiler"):
        built()
