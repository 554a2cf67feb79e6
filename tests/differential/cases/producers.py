"""InitProducerId and DescribeProducers."""

from differential.batches import batch
from differential.case import Case, case
from differential.requests import ONE, THREE, produce
from differential.rules import a_time
from penstock.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.produce import ProduceRequest


def _init(transactional_id: str | None = None, **more: int) -> InitProducerIdRequest:
    more.setdefault("transaction_timeout_ms", 60_000)
    return InitProducerIdRequest(transactional_id=transactional_id, **more)


IDS = [
    case("idempotent", _init()),
    case("twice", _init(), _init()),
    case("an empty transactional id", _init("")),
    case("a timeout of zero", _init(transaction_timeout_ms=0)),
    case("a negative timeout", _init(transaction_timeout_ms=-1)),
    case("a timeout beyond the broker's", _init(transaction_timeout_ms=2**31 - 1)),
    case("an id and an epoch, no transaction", _init(producer_id=5, producer_epoch=3), since=3),
    case("an id without an epoch", _init(producer_id=5), since=3),
    case("an epoch without an id", _init(producer_epoch=3), since=3),
    case("a negative id", _init(producer_id=-7, producer_epoch=3), since=3),
]

P = 88_000
TIMED = {"DescribeProducersResponse": {"topics.partitions.active_producers.last_timestamp": a_time}}


def _by(producer: int, sequence: int, count: int = 1, epoch: int = 0) -> ProduceRequest:
    return produce(batch(count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence))


def _describe(*partitions: int, of: str = "~t") -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[TopicRequest(name=of, partition_indexes=list(partitions))]
    )


PRODUCERS = [
    case("none", produce(batch()), _describe(0), topics=ONE),
    case("one", _by(P, 0), _by(P, 1, 4), _describe(0), topics=ONE, rules=TIMED),
    case("two", _by(P, 0), _by(P + 1, 9, epoch=2), _describe(0), topics=ONE, rules=TIMED),
    case("a fenced one", _by(P, 0, epoch=2), _by(P, 1, epoch=1), _describe(0), topics=ONE,
         rules=TIMED),
    case("several partitions", _by(P, 0), _describe(1, 0, 2), topics=THREE, rules=TIMED),
    case("an unknown partition", _describe(5), topics=ONE),
    case("a negative partition", _describe(-1), topics=ONE),
    case("an unknown topic", _describe(0, of="~none")),
    case("an empty name", _describe(0, of="")),
    case("a name with a blank", _describe(0, of="a b")),
    case("no partitions", _describe(), topics=ONE),
    case("nothing", DescribeProducersRequest()),
]  # fmt: skip

CASES: list[Case] = [*IDS, *PRODUCERS]
