"""A transaction in a partition's log: what readers see, what markers end, what deletion leaves."""

from typing import Any

from differential.batches import batch
from differential.case import At, Case, Step, case
from differential.cases.transactions import ABORTED, COMMITTED, _add, _end, _init
from differential.requests import ONE, fetch, produce
from differential.rules import a_number, a_time
from differential.symbols import PRODUCER
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from penstock.wire.messages.fetch import FetchRequest
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

FIRST_GENERATION = 11
"""The last version of Produce at which producers add partitions themselves."""


def _in_transaction(count: int = 2, *, sequence: int = 0, epoch: int = 0) -> At:
    data = batch(
        count,
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )
    return At(FIRST_GENERATION, produce(data, transactional_id="~x"))


def _begun_by(sequence: int) -> At:
    """A first write, which adds its partition."""
    data = batch(producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence, transactional=True)
    return At(FIRST_GENERATION + 1, produce(data, transactional_id="~x"))


def _marker(
    *, committed: bool = False, epoch: int = 0, coordinator: int = 0, version: int = 0
) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic("~t", [0])]
    return WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(PRODUCER, epoch, committed, topics, coordinator, version)]
    )


def _delete_before(offset: int) -> DeleteRecordsRequest:
    cut = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="~t", partitions=[cut])], timeout_ms=5000
    )


def _latest(isolation_level: int) -> ListOffsetsRequest:
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name="~t", partitions=[latest])],
    )


PLAIN = produce(batch())
OPEN = (_init(), _add(0), PLAIN, _in_transaction(), PLAIN)
"""Offset 0, the transaction from 1 to 2, offset 3."""
STABLE, ALL = _latest(1), _latest(0)
COMMITTED_ONLY = fetch(0, isolation_level=1)
PRODUCERS = DescribeProducersRequest(topics=[TopicRequest("~t", [0])])

RULES = {
    "FetchResponse": {
        "responses.partitions.records.batches.producer_id": a_number,
        "responses.partitions.records.batches.base_timestamp": a_time,
        "responses.partitions.records.batches.max_timestamp": a_time,
        "responses.partitions.records.batches.records": lambda shown: shown[1:],
    },
    "DescribeProducersResponse": {
        "topics.partitions.active_producers.last_timestamp": a_time,
        "topics.partitions.active_producers.coordinator_epoch": a_number,
    },
}


def _case(name: str, *steps: Step, **more: Any) -> Case:
    api = more.pop("api", FetchRequest)
    return case(f"transaction, {name}", *OPEN, *steps, topics=ONE, api=api, rules=RULES, **more)


CASES: list[Case] = [
    case("transaction, begun by a second batch", _init(), _begun_by(1), _begun_by(0), _begun_by(1),
         STABLE, ALL, topics=ONE, api=FetchRequest, rules=RULES, since=17),
    _case("open", STABLE, ALL, COMMITTED_ONLY, fetch(0), PRODUCERS),
    _case("committed", _end(), COMMITTED, STABLE, COMMITTED_ONLY),
    _case("aborted", _end(committed=False), ABORTED, STABLE, COMMITTED_ONLY,
          fetch(3, isolation_level=1), fetch(4, isolation_level=1)),
    _case("more of it", _in_transaction(1, sequence=2), _in_transaction(1, sequence=9), STABLE),
    _case("of an old epoch", _init(), ABORTED, _init(), _in_transaction(1, sequence=2), STABLE),
    _case("not added any more", _end(), COMMITTED, _in_transaction(1, sequence=2), STABLE),
    _case("begun before the log's start", _delete_before(2), STABLE, ALL, COMMITTED_ONLY,
          fetch(2, isolation_level=1), PRODUCERS),
    _case("wholly before the log's start", _delete_before(4), STABLE, ALL, PRODUCERS,
          fetch(4, isolation_level=1)),
    _case("wholly before the log's start, then ended", _delete_before(4), _end(committed=False),
          ABORTED, STABLE, fetch(4, isolation_level=1)),
    *(
        _case(f"marked at level {level}, {name}", *markers, STABLE, COMMITTED_ONLY,
              api=WriteTxnMarkersRequest, since=2)
        for level in (0, 1, 2)
        for name, markers in {
            "same epoch": [_marker(version=level)],
            "same epoch twice": [_marker(version=level), _marker(version=level)],
            "next epoch": [_marker(epoch=1, version=level)],
            "next epoch twice": [_marker(epoch=1, version=level), _marker(epoch=1, version=level)],
            "next epoch, then the one before": [
                _marker(epoch=1, version=level), _marker(version=level)],
            "an older coordinator": [
                _marker(epoch=1, coordinator=5, version=level),
                _marker(epoch=2, coordinator=4, version=level)],
        }.items()
    ),
]  # fmt: skip
