"""Produce and fetch: one scenario, many unmodified clients, none of them in a group."""

from collections.abc import Callable

import pytest
from kafka.partitioner.default import murmur2

from clients.catalog import Name, able, over
from clients.protocol import CODECS, LATEST, Acks, Client, Codec, Record, RefusedError
from penstock.errors import ErrorCode

pytestmark = pytest.mark.peer

KEYS = [b"key-%d" % number for number in range(8)]


def values(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def numbered(count: int, partition: int = 0) -> list[Record]:
    return [Record(b"%d" % number, partition=partition) for number in range(count)]


@pytest.mark.row("A028")
@pytest.mark.parametrize("codec", CODECS)
@over()
def test_records_survive_every_codec(
    client: Client,
    referee: Client,
    topic: str,
    codec: Codec,
    codec_on_disk: Callable[[str], Codec],
) -> None:
    referee.create_topic(topic)
    records = [Record(b"%d" % n * 500, key=b"k", partition=0) for n in range(5)]
    client.produce(topic, records, codec=codec)
    (read,) = client.fetch(topic, 0, (0, 5))
    assert values(read) == values(records)
    assert codec_on_disk(topic) == codec


@pytest.mark.row("A015", "A025")
@pytest.mark.parametrize("acks", [0, 1, -1])
@over()
def test_records_arrive_with_every_acks(
    client: Client, referee: Client, topic: str, acks: Acks
) -> None:
    referee.create_topic(topic)
    placed = client.produce(topic, numbered(3), acks=acks)
    if acks != 0:
        assert [place.offset for place in placed] == [0, 1, 2]
    (read,) = referee.fetch(topic, 0, (0, 3))
    assert sorted(map(str, values(read))) == ["b'0'", "b'1'", "b'2'"]


@pytest.mark.row("A007")
@over()
def test_an_idempotent_producer_writes_in_order(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    placed = client.produce(topic, numbered(20), idempotent=True)
    assert [place.offset for place in placed] == list(range(20))
    again = client.produce(topic, numbered(3), idempotent=True)
    assert [place.offset for place in again] == [20, 21, 22]
    (read,) = client.fetch(topic, 0, (0, 23))
    assert values(read) == values(numbered(20) + numbered(3))


@pytest.mark.row("A017")
@over()
def test_the_same_key_goes_to_the_same_partition(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic, partitions=4)
    first = client.produce(topic, [Record(b"1", key) for key in KEYS])
    again = client.produce(topic, [Record(b"2", key) for key in KEYS])
    assert [place.partition for place in first] == [place.partition for place in again]
    assert len({place.partition for place in first}) > 1


@pytest.mark.row("A016")
@over("murmur2")
def test_keys_are_routed_as_java_routes_them(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic, partitions=4)
    placed = client.produce(topic, [Record(b"v", key) for key in KEYS])
    expected = [(murmur2(key) & 0x7FFFFFFF) % 4 for key in KEYS]
    assert [place.partition for place in placed] == expected


@pytest.mark.row("A016")
@over()
def test_an_explicit_partition_is_used(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic, partitions=3)
    placed = client.produce(topic, [Record(b"v", b"same key", partition=n) for n in (2, 0, 1)])
    assert [place.partition for place in placed] == [2, 0, 1]
    for partition in range(3):
        assert values(client.fetch(topic, partition, (0, 1))[0]) == [b"v"]


@pytest.mark.row("A171")
@over("timestamp")
def test_a_record_keeps_the_time_its_producer_gave(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    times = [1_600_000_000_000, 1_600_000_000_001, 1_500_000_000_000]
    client.produce(topic, [Record(b"v", partition=0, timestamp_ms=at) for at in times])
    (read,) = client.fetch(topic, 0, (0, 3))
    assert [record.timestamp_ms for record in read] == times


@pytest.mark.row("A171")
@over()
def test_the_broker_stamps_records_with_log_append_time(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    client.produce(topic, [Record(b"v", partition=0, timestamp_ms=1_600_000_000_000)])
    (read,) = client.fetch(topic, 0, (0, 1))
    assert read[0].timestamp_ms is not None
    assert read[0].timestamp_ms > 1_700_000_000_000


@over()
def test_headers_keep_their_order_and_repeats(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    headers = (("trace", b"7"), ("tag", b"a"), ("tag", b"b"), ("empty", b""))
    client.produce(topic, [Record(b"v", partition=0, headers=headers)])
    (read,) = client.fetch(topic, 0, (0, 1))
    assert read[0].headers == headers


@over("bytes")
def test_keys_values_and_headers_may_be_any_bytes(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    every = bytes(range(256))
    client.produce(topic, [Record(every, every, (("raw", every),), partition=0)])
    ((read,),) = client.fetch(topic, 0, (0, 1))
    assert (read.key, read.value, read.headers) == (every, every, (("raw", every),))


@over()
def test_keys_and_values_may_be_missing(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    records = [
        Record(b"no key", None, partition=0),
        Record(None, b"tombstone", partition=0),
        Record(b"after", b"k", partition=0),
    ]
    client.produce(topic, records)
    (read,) = client.fetch(topic, 0, (0, 3))
    assert [(record.key, record.value) for record in read] == [
        (None, b"no key"),
        (b"tombstone", None),
        (b"k", b"after"),
    ]


@over()
def test_an_empty_value_is_not_a_missing_one(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    client.produce(topic, [Record(b"", b"k", partition=0), Record(None, b"k", partition=0)])
    (read,) = client.fetch(topic, 0, (0, 2))
    assert [(record.key, record.value) for record in read] == [(b"k", b""), (b"k", None)]


@over()
def test_a_record_of_900_kilobytes_passes(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    large = b"0123456789abcdef" * 56_250
    client.produce(topic, [Record(large, partition=0), Record(b"after", partition=0)])
    (read,) = client.fetch(topic, 0, (0, 2))
    assert values(read) == [large, b"after"]


@pytest.mark.row("A015", "A147")
@over()
def test_a_record_over_the_topics_limit_is_refused(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic, configs={"max.message.bytes": "1000"})
    with pytest.raises(RefusedError) as refused:
        client.produce(topic, [Record(b"x" * 2000, partition=0)])
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert referee.offset(topic, 0, LATEST) == 0


@pytest.mark.row("A004")
@over()
def test_several_topics_are_written_and_read_side_by_side(
    client: Client, referee: Client, topic: str
) -> None:
    names = [f"{topic}-{letter}" for letter in "abc"]
    for name in names:
        referee.create_topic(name)
    for name in names:
        client.produce(name, [Record(name.encode(), partition=0)])
    for name in names:
        assert values(client.fetch(name, 0, (0, 1))[0]) == [name.encode()]


def writer_and_reader_of_each_codec() -> list[object]:
    """Pairs each client with the one `step` places further: every codec, every client, few
    pairs.
    """
    names = able()
    return [
        pytest.param(
            names[at], names[(at + step) % len(names)], codec, id=f"{names[at]}-{step}-{codec}"
        )
        for step, codec in enumerate(CODECS, 1)
        for at in range(len(names))
    ]


@pytest.mark.row("A009")
@pytest.mark.parametrize(("writer", "reader", "codec"), writer_and_reader_of_each_codec())
def test_one_client_reads_the_records_of_another(
    client_of: Callable[[Name], Client],
    referee: Client,
    topic: str,
    writer: Name,
    reader: Name,
    codec: Codec,
) -> None:
    referee.create_topic(topic)
    records = [
        Record(b"from one to another " * 40, b"key", (("h", b"1"),), partition=0),
        Record(b"without a key " * 40, partition=0),
    ]
    client_of(writer).produce(topic, records, codec=codec)
    (read,) = client_of(reader).fetch(topic, 0, (0, 2))
    assert [(record.key, record.value, record.headers) for record in read] == [
        (record.key, record.value, record.headers) for record in records
    ]
