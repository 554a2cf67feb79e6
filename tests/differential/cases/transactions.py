"""Requests of producers to the transaction coordinator, step by step."""

from typing import Any

from differential.case import Case, Eventually, case
from differential.cases.consumer_groups import enter
from differential.requests import ONE, THREE
from differential.symbols import PRODUCER
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.wire.messages.describe_transactions import DescribeTransactionsRequest
from penstock.wire.messages.end_txn import EndTxnRequest
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.list_transactions import ListTransactionsRequest
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

NOBODY = 4_000_000
"""Far from the producer ids that brokers allocate, the first of which is 0."""


def _init(name: str = "~x", timeout_ms: int = 60_000, **more: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms, **more)


def _add(
    *partitions: int, of: str = "~t", name: str = "~x", producer: int = PRODUCER, epoch: int = 0,
    verify: bool = False,
) -> AddPartitionsToTxnRequest:  # fmt: skip
    """Filled in both forms: each version sends the fields of one of them."""
    topics = [AddPartitionsToTxnTopic(name=of, partitions=list(partitions))]
    return AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction(name, producer, epoch, verify, topics)],
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
    )


def _end(
    *, committed: bool = True, name: str = "~x", producer: int = PRODUCER, epoch: int = 0
) -> EndTxnRequest:
    return EndTxnRequest(name, producer, epoch, committed)


def _offsets(*partitions: int, producer: int = PRODUCER, epoch: int = 0, **more: Any) -> Any:
    return TxnOffsetCommitRequest(
        transactional_id="~x",
        group_id="~g",
        producer_id=producer,
        producer_epoch=epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="~t",
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=each, committed_offset=7)
                    for each in partitions
                ],
            )
        ],
        **more,
    )


def _add_offsets(
    name: str = "~x", producer: int = PRODUCER, epoch: int = 0
) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(name, producer, epoch, "~g")


def _is(state: str) -> Eventually:
    """Markers are written after the answer."""
    asked = DescribeTransactionsRequest(transactional_ids=["~x"])
    return Eventually(
        asked, lambda reported: reported.transaction_states[0].transaction_state == state
    )


COMMITTED, ABORTED = _is("CompleteCommit"), _is("CompleteAbort")
KNOWN = _init(producer_id=PRODUCER, producer_epoch=0)
DESCRIBED = DescribeTransactionsRequest(transactional_ids=["~x", "~unknown", ""])
FETCHED = OffsetFetchRequest(
    groups=[OffsetFetchRequestGroup(group_id="~g", topics=None)], require_stable=True
)


COORDINATOR = [
    case("a transactional id", FindCoordinatorRequest(
        key="~x", key_type=1, coordinator_keys=["~x"]), since=1),
]  # fmt: skip

INIT = [
    case("a transactional id", _init(), _init()),
    case("transactional, a timeout of zero", _init(timeout_ms=0)),
    case("transactional, a negative timeout", _init(timeout_ms=-1)),
    case("transactional, a timeout beyond the broker's", _init(timeout_ms=2**31 - 1)),
    case("transactional, with its id and epoch", _init(),
         _init(producer_id=PRODUCER, producer_epoch=0),
         _init(producer_id=PRODUCER, producer_epoch=0),
         _init(producer_id=PRODUCER, producer_epoch=5), since=3),
    case("transactional, with another's id", _init(),
         _init(producer_id=NOBODY, producer_epoch=0), since=3),
    case("transactional, new, with an id", _init(producer_id=NOBODY, producer_epoch=3), since=3),
    case("transactional, one is open", _init(), _add(0), _init(), ABORTED, _init(), topics=ONE),
    case("transactional, its own is open", _init(), _add(0), KNOWN, ABORTED, KNOWN, KNOWN,
         _init(producer_id=PRODUCER, producer_epoch=1), topics=ONE, since=3),
    case("transactional, its own was aborted for another's", _init(), _add(0), _init(), ABORTED,
         KNOWN, _init(), KNOWN, topics=ONE, since=3),
    case("transactional, an old epoch while one is open", _init(), _init(), _add(0, epoch=1), KNOWN,
         topics=ONE, since=3),
]  # fmt: skip

ADD = [
    case("one", _init(), _add(0), topics=ONE),
    case("again and more", _init(), _add(0), _add(0), _add(1, 2), DESCRIBED, topics=THREE),
    case("an unknown partition", _init(), _add(0, 5), topics=ONE),
    case("an unknown topic", _init(), _add(0, of="~none")),
    case("an unknown id", _add(0, producer=NOBODY), topics=ONE),
    case("another producer", _init(), _add(0, producer=NOBODY), topics=ONE),
    case("an old epoch", _init(), _init(), _add(0), topics=ONE),
    case("an epoch to come", _init(), _add(0, epoch=3), topics=ONE),
    case("verified", _init(), _add(0), _add(0, 1, verify=True), topics=THREE, since=4),
    case("verified, none open", _init(), _add(0, verify=True), topics=ONE, since=4),
    case("verified, an old epoch", _init(), _init(), _add(0, verify=True), topics=ONE, since=4),
]

OFFSETS = [
    case("a group", _init(), _add_offsets()),
    case("an unknown id", _add_offsets(producer=NOBODY)),
    case("an old epoch", _init(), _init(), _add_offsets()),
    case("committed", _init(), _add_offsets(), _offsets(0), FETCHED, _end(), COMMITTED, FETCHED,
         topics=ONE, api=TxnOffsetCommitRequest, until=4),
    case("aborted", _init(), _add_offsets(), _offsets(0), _end(committed=False), ABORTED, FETCHED,
         topics=ONE, api=TxnOffsetCommitRequest, until=4),
    case("not added", _init(), _offsets(0), topics=ONE),
    case("an old epoch", _init(), _init(), _offsets(0), topics=ONE),
    case("an unknown id", _offsets(0, producer=NOBODY), topics=ONE),
    case("an unknown partition", _init(), _add_offsets(), _offsets(3), topics=ONE),
    case("of a generation", _init(), _add_offsets(),
         _offsets(0, generation_id_or_member_epoch=3, member_id="m"), topics=ONE, since=3),
    *(
        case(f"beside a member of the consumer protocol, {who}", enter(), _init(), _add_offsets(),
             _offsets(0, generation_id_or_member_epoch=epoch, member_id=member), _end(), COMMITTED,
             FETCHED, topics=ONE, api=TxnOffsetCommitRequest, since=3, until=4)
        for who, member, epoch in [
            ("by itself", "~a", 2), ("at an old epoch", "~a", 1), ("at an epoch to come", "~a", 9),
            ("without its epoch", "~a", -1), ("by another", "~b", 2), ("by nobody", "", -1),
            ("by nobody with an epoch", "", 2),
        ]
    ),
]  # fmt: skip

END = [
    case("committed", _init(), _add(0), _end(), COMMITTED, DESCRIBED, topics=ONE),
    case("aborted", _init(), _add(0), _end(committed=False), ABORTED, topics=ONE),
    case("committed twice", _init(), _add(0), _end(), COMMITTED, _end(), topics=ONE),
    case("aborted twice", _init(), _add(0), _end(committed=False), ABORTED,
         _end(committed=False), topics=ONE),
    case("committed, then aborted", _init(), _add(0), _end(), COMMITTED, _end(committed=False),
         topics=ONE),
    case("aborted, then committed", _init(), _add(0), _end(committed=False), ABORTED, _end(),
         topics=ONE),
    case("commit of nothing", _init(), _end()),
    case("abort of nothing", _init(), _end(committed=False)),
    case("an unknown id", _end(producer=NOBODY)),
    case("an empty id", _end(name="")),
    case("another producer", _init(), _add(0), _end(producer=NOBODY), topics=ONE),
    case("an old epoch", _init(), _init(), _add(0, epoch=1), _end(), topics=ONE),
    case("an epoch to come", _init(), _add(0), _end(epoch=4), topics=ONE),
    *(
        case(f"{word} after the coordinator's abort", _init(), _add(0), _init(), ABORTED,
             _end(committed=committed), _end(committed=committed), _init(), _end(), topics=ONE)
        for word, committed in (("committed", True), ("aborted", False))
    ),
]  # fmt: skip


def _markers(*partitions: int, of: str = "~t", producer: int = 88_001) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(of, list(partitions))]
    return WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer, 3, True, topics, 1)])


OTHERS = [
    case("of nobody's transaction", _markers(0), topics=ONE),
    case("for an unknown partition", _markers(0, 4), topics=ONE),
    case("for an unknown topic", _markers(0, of="~none")),
    case("states", _init(), DESCRIBED),
    case("open", _init(), _add(0, 2), DESCRIBED, topics=THREE),
    case("none", DescribeTransactionsRequest()),
    case("all", _init(), _init("~y"), ListTransactionsRequest()),
    case("by state", _init(), _init("~y"), _add(0),
         ListTransactionsRequest(state_filters=["Ongoing", "Strange"]), topics=ONE),
    case("by producer", _init(), _init("~y"),
         ListTransactionsRequest(producer_id_filters=[1_000_000])),
    *(
        case(f"by the pattern {pattern!r}", _init(), _init("~y"),
             ListTransactionsRequest(transactional_id_pattern=pattern), since=2)
        for pattern in ("", ".*[x]", ".*x|nothing", "x", "[", "(?i).*X", r".*\pL", "(?<=-)x",
                        r".*(x)\1")
    ),
]  # fmt: skip

CASES: list[Case] = [*COORDINATOR, *INIT, *ADD, *OFFSETS, *END, *OTHERS]
