"""Fetch: offsets, limits, epochs, and sessions in every wrong order (KIP-227)."""

from typing import Any

from differential.batches import batch
from differential.case import At, Case, Step, case
from differential.requests import (
    ONE,
    THREE,
    at,
    fetch,
    fetch_of,
    gone,
    produce,
    topic,
    wanted_of,
)
from differential.symbols import SESSION, topic_id
from penstock.types import NO_UUID
from penstock.wire.messages.create_topics import CreatableTopic
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.fetch import (
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

FILLED = (produce(batch(3)), produce(batch(3)), produce(batch(1)))
"""Seven records in three batches."""


def _case(name: str, *requests: Step, **more: Any) -> Case:
    return case(name, *FILLED, *requests, api=FetchRequest, topics=more.pop("topics", ONE), **more)


def _delete_before(offset: int) -> DeleteRecordsRequest:
    cut = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="~t", partitions=[cut])], timeout_ms=5000
    )


OFFSETS = [
    _case("from the start", fetch(0)),
    _case("from the middle of a batch", fetch(1)),
    _case("from the second batch", fetch(3)),
    _case("from the last record", fetch(6)),
    _case("from the end", fetch(7)),
    _case("beyond the end", fetch(8)),
    _case("far beyond the end", fetch(1 << 40)),
    _case("offset -1", fetch(-1)),
    _case("offset -2", fetch(-2)),
    _case("below the log start", _delete_before(4), fetch(0), fetch(3)),
    _case("in a batch that the log start cuts", _delete_before(4), fetch(4)),
    _case("an empty topic", fetch(0, of="~u"), topics=(topic(), topic("~u"))),
    _case("a log start offset given by the client", fetch(0, log_start_offset=5)),
]

LIMITS = [
    _case("partition limit of one byte", fetch(0, partition_max_bytes=1)),
    _case("partition limit of zero", fetch(0, partition_max_bytes=0)),
    _case("a negative partition limit", fetch(0, partition_max_bytes=-1)),
    _case("partition limit of one batch and a half", fetch(0, partition_max_bytes=150)),
    _case("request limit of one byte", fetch(0, max_bytes=1)),
    _case("request limit of zero", fetch(0, max_bytes=0)),
    _case("a negative request limit", fetch(0, max_bytes=-1)),
    _case("request limit of one batch and a half", fetch(0, max_bytes=150)),
    _case(
        "request limit over two partitions",
        produce(batch(3), partition=1),
        fetch_of(wanted_of("~t", at(0), at(1)), max_bytes=100),
        topics=THREE,
    ),
    _case(
        "a first batch too large, then a small partition",
        produce(batch(1, size=4000), partition=1),
        produce(batch(1), partition=2),
        fetch_of(wanted_of("~t", at(1, 0, 10), at(2, 0, 10), at(0, 0, 10)), max_bytes=9000),
        topics=THREE,
    ),
    _case("more minimum bytes than there are", fetch(0, min_bytes=1 << 20, max_wait_ms=30)),
    _case("minimum bytes of zero at the end", fetch(7, min_bytes=0, max_wait_ms=5000)),
    _case("waiting at the end", fetch(7, max_wait_ms=30)),
    _case("a negative wait", fetch(7, max_wait_ms=-1)),
    _case("an error ends the wait", fetch(99, max_wait_ms=5000)),
    _case("a negative minimum", fetch(7, min_bytes=-1, max_wait_ms=5000)),
]

NAMES = [
    _case("nothing", fetch_of()),
    _case("nothing of a topic", fetch_of(wanted_of("~t"))),
    _case("an unknown topic", fetch(0, of="~none")),
    _case("an unknown partition", fetch(0, partition=5)),
    _case("a negative partition", fetch(0, partition=-1)),
    _case("good and unknown partitions", fetch_of(wanted_of("~t", at(0), at(9), at(-3)))),
    _case(
        "three partitions of which one has records",
        fetch_of(wanted_of("~t", at(2), at(0), at(1))),
        topics=THREE,
    ),
    _case("the same partition twice", fetch_of(wanted_of("~t", at(0), at(0, 3)))),
    _case("the same topic twice", fetch_of(wanted_of("~t", at(0)), wanted_of("~t", at(0, 3)))),
    _case("an empty topic name", fetch(0, of=""), until=12),
    _case("topic id zero", fetch_of(FetchTopic(topic_id=NO_UUID, partitions=[at(0)])), since=13),
    _case(
        "the id of a deleted topic",
        DeleteTopicsRequest(topics=[DeleteTopicState(name="~t")], timeout_ms=5000),
        gone("~t"),
        fetch(0),
        since=13,
    ),
]

EPOCHS = [
    _case("isolation level committed", fetch(0, isolation_level=1)),
    _case("isolation level 2", fetch(0, isolation_level=2)),
    _case("isolation level -1", fetch(0, isolation_level=-1)),
    _case("the current leader epoch", fetch(0, current_leader_epoch=0), since=9),
    _case("a leader epoch to come", fetch(0, current_leader_epoch=1), since=9),
    _case("leader epoch -2", fetch(0, current_leader_epoch=-2), since=9),
    _case("last fetched epoch 0", fetch(3, last_fetched_epoch=0), since=12),
    _case("last fetched epoch to come", fetch(3, last_fetched_epoch=4), since=12),
    _case("last fetched epoch at the end", fetch(7, last_fetched_epoch=0), since=12),
    _case("last fetched epoch beyond the end", fetch(9, last_fetched_epoch=0), since=12),
    _case("a consumer that says it is debugging", fetch(0, replica_id=-2), until=14),
    _case("a stranger as follower", fetch(0, replica_id=5), until=14),
    _case(
        "a stranger as follower, by its state",
        FetchRequest(
            replica_state=ReplicaState(replica_id=5, replica_epoch=1),
            session_epoch=-1,
            topics=[wanted_of("~t", at(0))],
        ),
        since=15,
    ),
    _case("the leader as its own follower", fetch(0, replica_id=0), until=14),
]


def _session(name: str, *requests: Step, topics: tuple[CreatableTopic, ...] = THREE) -> Case:
    return _case(f"session, {name}", *requests, since=7, topics=topics)


OPEN = fetch_of(wanted_of("~t", at(0), at(1)), session_epoch=0)


def _next(epoch: int, *topics: FetchTopic, **more: Any) -> FetchRequest:
    return fetch_of(*topics, session_id=SESSION, session_epoch=epoch, **more)


def _forgotten(of: str, *partitions: int) -> ForgottenTopic:
    return ForgottenTopic(topic=of, topic_id=topic_id(of), partitions=list(partitions))


SESSIONS = [
    _session("opened", OPEN),
    _session("opened with nothing", fetch_of(session_epoch=0)),
    _session("continued without news", OPEN, _next(1, wanted_of("~t", at(0, 7)))),
    _session("continued, nothing said", OPEN, _next(1)),
    _session(
        "news in a partition not named",
        OPEN,
        _next(1, wanted_of("~t", at(0, 7))),
        produce(batch(), partition=1),
        _next(2),
        _next(3, wanted_of("~t", at(1, 1))),
    ),
    _session(
        "a partition added",
        OPEN,
        produce(batch(), partition=2),
        _next(1, wanted_of("~t", at(0, 7), at(2))),
    ),
    _session(
        "a partition moved back",
        OPEN,
        _next(1, wanted_of("~t", at(0, 7))),
        _next(2, wanted_of("~t", at(0, 3))),
    ),
    _session(
        "a partition forgotten",
        OPEN,
        _next(1, forgotten=(_forgotten("~t", 0),)),
        produce(batch()),
        _next(2),
    ),
    _session(
        "a partition forgotten that it never had",
        OPEN,
        _next(1, wanted_of("~t", at(0, 7)), forgotten=(_forgotten("~t", 2),)),
    ),
    _session(
        "forgotten and named at once",
        OPEN,
        _next(1, wanted_of("~t", at(0, 7)), forgotten=(_forgotten("~t", 0),)),
        produce(batch()),
        _next(2),
    ),
    _session("all forgotten", OPEN, _next(1, forgotten=(_forgotten("~t", 0, 1),)), _next(2)),
    _session("an epoch again", OPEN, _next(1), _next(1)),
    _session("an epoch skipped", OPEN, _next(2)),
    _session("an epoch far ahead, then the right one", OPEN, _next(77), _next(1)),
    _session(
        "epoch 0 again with its id",
        OPEN,
        fetch_of(wanted_of("~t", at(0, 7)), session_id=SESSION, session_epoch=0),
        _next(1),
    ),
    _session("closed", OPEN, _next(-1, wanted_of("~t", at(0))), _next(1)),
    _session("closed with nothing", OPEN, _next(-1)),
    _session("closed twice", OPEN, _next(-1), _next(-1)),
    _session("unknown", fetch_of(session_id=12345, session_epoch=1)),
    _session("unknown and closed", fetch_of(wanted_of("~t", at(0)), session_id=12345)),
    _session(
        "unknown with epoch 0", fetch_of(wanted_of("~t", at(0)), session_id=12345, session_epoch=0)
    ),
    _session("no id but an epoch", fetch_of(wanted_of("~t", at(0)), session_epoch=5)),
    _session("negative id", fetch_of(wanted_of("~t", at(0)), session_id=-4, session_epoch=1)),
    _session("epoch -2", fetch_of(wanted_of("~t", at(0)), session_epoch=-2)),
    _session("epoch -2 of a known one", OPEN, _next(-2)),
    _session(
        "opened with an error",
        fetch_of(wanted_of("~t", at(0, 99), at(7)), session_epoch=0),
        _next(1),
        _next(2),
    ),
    _session("an unknown topic", fetch_of(wanted_of("~none", at(0)), session_epoch=0), _next(1)),
    _session(
        "a partition becomes unknown",
        OPEN,
        _next(1, wanted_of("~none", at(0)), wanted_of("~t", at(0, 7))),
        _next(2),
    ),
    _session(
        "two at once", OPEN, fetch_of(wanted_of("~t", at(2)), session_epoch=0), _next(1), _next(2)
    ),
    _session(
        "limits over the session",
        produce(batch(), partition=1),
        OPEN,
        _next(1, max_bytes=1),
        _next(2, max_bytes=1),
    ),
    _session("the epoch's limit", OPEN, _next(2**31 - 1)),
    _session("opened by names, continued by ids", At(12, OPEN), At(13, _next(1))),
    _session("opened by ids, continued by names", At(13, OPEN), At(12, _next(1))),
    _session(
        "its topic deleted",
        OPEN,
        DeleteTopicsRequest(topics=[DeleteTopicState(name="~t")], timeout_ms=5000),
        gone("~t"),
        _next(1),
        _next(2),
    ),
]

CASES: list[Case] = [*OFFSETS, *LIMITS, *NAMES, *EPOCHS, *SESSIONS]
