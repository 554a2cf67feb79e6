"""Produce: what is accepted, what is refused, and the resulting log."""

from differential.batches import (
    HOUR_MS,
    NOW_MS,
    batch,
    framed,
    message_v0,
    message_v1,
    patched,
    record,
)
from differential.case import Case, Step, case
from differential.requests import ONE, THREE, fetch, produce, produce_to, sent, topic
from differential.rules import Rule, a_time, ignored
from penstock.record.batch import LOG_APPEND_TIME
from penstock.record.compression import Codec
from penstock.wire.messages.create_topics import CreatableTopic
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest


def _case(
    name: str, *requests: Step, topics: tuple[CreatableTopic, ...] = ONE, since: int = 0
) -> Case:
    return case(name, *requests, api=ProduceRequest, topics=topics, since=since)


def _then_read(
    name: str, *requests: Step, topics: tuple[CreatableTopic, ...] = ONE, since: int = 0
) -> Case:
    return _case(name, *requests, fetch(), topics=topics, since=since)


SOUND = batch(3)

ORDINARY = [
    _then_read("one record, acks=all", produce(batch())),
    _then_read("one record, acks=1", produce(batch(), acks=1)),
    _then_read("one record, acks=0", produce(batch(), acks=0)),
    _then_read("three records twice", produce(SOUND), produce(SOUND)),
    _then_read("two partitions", produce(SOUND, partition=2), produce(SOUND), topics=THREE),
    _then_read("no key", produce(batch(key=None))),
    _then_read("a zero timeout", produce(batch(), timeout_ms=0)),
    _then_read("a negative timeout", produce(batch(), timeout_ms=-1)),
    _then_read("a base offset that is not zero", produce(patched(SOUND, base_offset=77))),
    _then_read("a leader epoch of its own", produce(patched(SOUND, leader_epoch=9))),
    _then_read("900 KB", produce(batch(size=900_000))),
    *(
        _then_read(f"codec {codec.name.lower()}", produce(batch(3, codec=codec)), since=7)
        for codec in Codec
    ),
]

COUNTS_AND_ACKS = [
    _case("acks=2", produce(batch(), acks=2)),
    _case("negative acks", produce(batch(), acks=-2)),
    _case("no topics", produce_to()),
    _case("no partitions", produce_to(sent("~t"))),
    _then_read("empty records", produce(b"")),
    _then_read("two batches in one partition", produce(SOUND, SOUND)),
    _case(
        "the same partition twice",
        produce_to(
            sent(
                "~t",
                PartitionProduceData(index=0, records=SOUND),
                PartitionProduceData(index=0, records=SOUND),
            )
        ),
    ),
    _case(
        "one partition good, one unknown",
        produce_to(
            sent(
                "~t",
                PartitionProduceData(index=0, records=SOUND),
                PartitionProduceData(index=9, records=SOUND),
            )
        ),
    ),
    _case(
        "one topic good, one unknown",
        produce_to(
            sent("~t", PartitionProduceData(index=0, records=SOUND)),
            sent("~none", PartitionProduceData(index=0, records=SOUND)),
        ),
    ),
]

NAMES = [
    _case("unknown topic", produce(SOUND, to="~none"), topics=()),
    _case("unknown topic, acks=0", produce(SOUND, to="~none", acks=0), topics=()),
    _case("unknown topic, acks=1", produce(SOUND, to="~none", acks=1), topics=()),
    _case("unknown partition", produce(SOUND, partition=1)),
    _case("negative partition", produce(SOUND, partition=-1)),
    _case("an empty topic name", produce(SOUND, to=""), topics=()),
    _case("an impossible topic name", produce(SOUND, to="a b"), topics=()),
]

BROKEN: dict[str, bytes] = {
    "bad crc": patched(SOUND, crc=1),
    "a flipped bit in a record": SOUND[:-1] + bytes([SOUND[-1] ^ 1]),
    "magic 0 in a batch": patched(SOUND, magic=0),
    "magic 1 in a batch": patched(SOUND, magic=1),
    "magic 3": patched(SOUND, magic=3),
    "magic -1": patched(SOUND, magic=-1),
    "a message of format 0": message_v0(),
    "a message of format 1": message_v1(),
    "batch length of zero": patched(SOUND, batch_length=0),
    "negative batch length": patched(SOUND, batch_length=-1),
    "batch length too short for a header": patched(SOUND, batch_length=20),
    "batch length one too few": patched(SOUND, batch_length=len(SOUND) - 13),
    "batch length one too many": patched(SOUND, batch_length=len(SOUND) - 11),
    "a cut batch": SOUND[:-1],
    "a cut header": SOUND[:40],
    "only an offset": SOUND[:8],
    "offset and length alone": SOUND[:12],
    "a byte behind the batch": SOUND + b"\0",
    "count zero": patched(SOUND, record_count=0),
    "count one too many": patched(SOUND, record_count=4),
    "count one too few": patched(SOUND, record_count=2),
    "negative count": patched(SOUND, record_count=-1),
    "last offset delta too large": patched(SOUND, last_offset_delta=5),
    "last offset delta too small": patched(SOUND, last_offset_delta=1),
    "negative last offset delta": patched(SOUND, last_offset_delta=-1),
    "an emptied batch": framed(b"", 0, last_offset_delta=0),
    "a record of unused attributes": framed(record(attributes=1)),
    "a record whose offset delta is wrong": framed(record(offset_delta=1)),
    "a record of negative size": framed(record(size=-1)),
    "a record larger than the batch": framed(record(size=500)),
    "a record smaller than itself": framed(record(size=4)),
    "a key longer than the record": framed(record(key_bytes=90)),
    "a value longer than the record": framed(record(value_bytes=90)),
    "a key of size -2": framed(record(key_bytes=-2)),
    "a value of size -2": framed(record(value_bytes=-2)),
    "negative header count": framed(record(header_count=-1)),
    "more headers than bytes": framed(record(header_count=5)),
    "a header without a key": framed(record(header_count=1, tail=b"\x01\x00")),
    "a header of null value": framed(record(header_count=1, tail=b"\x02h\x01")),
    "a header key that is no utf-8": framed(record(header_count=1, tail=b"\x02\xff\x00")),
    "a varint that never ends": framed(b"\xff" * 12),
    "records that are no records": framed(b"garbage"),
    "invalid gzip data": patched(SOUND, attributes=1),
    "invalid snappy data": patched(SOUND, attributes=2),
    "invalid lz4 data": patched(SOUND, attributes=3),
    "codec 5": patched(SOUND, attributes=5),
    "codec 7": patched(SOUND, attributes=7),
    "unused attribute bits": patched(SOUND, attributes=0x80),
    "the delete horizon bit": patched(SOUND, attributes=0x40),
    "a control batch": batch(control=True),
    "log append time claimed by the client": patched(SOUND, attributes=LOG_APPEND_TIME),
    "no timestamp": batch(timestamp=-1),
    "max timestamp below the records'": patched(SOUND, max_timestamp=NOW_MS - 5),
    "max timestamp above the records'": patched(SOUND, max_timestamp=NOW_MS + 5),
    "negative timestamp": batch(timestamp=-2),
}

TIMES = [
    _then_read("a timestamp two hours ahead", produce(batch(timestamp=NOW_MS + 2 * HOUR_MS))),
    _then_read("a timestamp of long ago", produce(batch(timestamp=1))),
    _then_read(
        "a timestamp before the topic's limit",
        produce(batch(timestamp=NOW_MS - 2 * HOUR_MS)),
        topics=(topic(message_timestamp_before_max_ms=str(HOUR_MS)),),
    ),
    _then_read(
        "a timestamp ahead where that is allowed",
        produce(batch(timestamp=NOW_MS + 2 * HOUR_MS)),
        topics=(topic(message_timestamp_after_max_ms=str(9 * HOUR_MS)),),
    ),
]

APPENDED = "responses.partitions.records.batches"
AT_APPEND_TIME: dict[str, Rule] = {
    f"{APPENDED}.max_timestamp": a_time,
    f"{APPENDED}.records": lambda shown: shown[1:],
}
RECOMPRESSED: dict[str, Rule] = {f"{APPENDED}.batch_length": ignored}

SETTINGS = [
    _case(
        "larger than the topic allows",
        produce(batch(size=500)),
        topics=(topic(max_message_bytes="200"),),
    ),
    _then_read(
        "compressed below the topic's limit",
        produce(batch(size=500, codec=Codec.GZIP)),
        topics=(topic(max_message_bytes="200"),),
    ),
    _case(
        "larger than the broker allows",
        produce(batch(size=1_100_000)),
    ),
    _case(
        "two batches of which one is too large",
        produce(batch(), batch(size=500)),
        topics=(topic(max_message_bytes="200"),),
    ),
    _then_read(
        "no key on a compacted topic",
        produce(batch(3, key=None)),
        topics=(topic(cleanup_policy="compact"),),
    ),
    _then_read(
        "no key on a compacted topic, compressed",
        produce(batch(3, key=None, codec=Codec.LZ4)),
        topics=(topic(cleanup_policy="compact"),),
    ),
    _then_read(
        "a key on a compacted topic",
        produce(batch(3)),
        topics=(topic(cleanup_policy="compact"),),
    ),
    _case(
        "more in-sync replicas wanted than there are",
        produce(batch()),
        produce(batch(), acks=1),
        topics=(topic(min_insync_replicas="2"),),
    ),
    case(
        "log append time",
        produce(batch(2)),
        fetch(),
        api=ProduceRequest,
        topics=(topic(message_timestamp_type="LogAppendTime"),),
        rules={"FetchResponse": AT_APPEND_TIME},
    ),
    *(
        case(
            f"topic compression {codec}",
            produce(batch(5, size=200)),
            produce(batch(5, size=200, codec=Codec.LZ4)),
            fetch(),
            api=ProduceRequest,
            topics=(topic(compression_type=codec),),
            rules={"FetchResponse": RECOMPRESSED},
        )
        for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed")
    ),
]


ZSTD = [
    case("zstd before its version", produce(batch(codec=Codec.ZSTD)), topics=ONE, until=6),
    case("invalid zstd data", produce(patched(SOUND, attributes=4)), topics=ONE, since=7),
]

CASES: list[Case] = [
    *ORDINARY,
    *COUNTS_AND_ACKS,
    *NAMES,
    *(_then_read(name, produce(data)) for name, data in BROKEN.items()),
    *TIMES,
    *SETTINGS,
    *ZSTD,
]
