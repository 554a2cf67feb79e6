"""Produce by idempotent producers: duplicates, gaps, epochs, transactions."""

from differential.batches import batch, patched
from differential.case import Case, Step, case
from differential.requests import ONE, THREE, fetch, produce
from penstock.wire.messages.create_topics import CreatableTopic
from penstock.wire.messages.produce import ProduceRequest


def _case(name: str, *requests: Step) -> Case:
    return case(name, *requests, topics=ONE)


def _then_read(name: str, *requests: Step, topics: tuple[CreatableTopic, ...] = ONE) -> Case:
    return case(name, *requests, fetch(), api=ProduceRequest, topics=topics)


def _by(producer: int, sequence: int, *, epoch: int = 0, count: int = 1) -> ProduceRequest:
    return produce(batch(count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence))


P = 77_000

IDEMPOTENT = [
    _then_read("sequences in order", _by(P, 0), _by(P, 1), _by(P, 2, count=3), _by(P, 5)),
    _then_read("the last batch again", _by(P, 0), _by(P, 1, count=2), _by(P, 1, count=2)),
    _then_read("an older batch again", _by(P, 0), _by(P, 1), _by(P, 2), _by(P, 0)),
    _then_read("a batch again, five later", *(_by(P, n) for n in range(6)), _by(P, 0)),
    _then_read("a gap in the sequence", _by(P, 0), _by(P, 2)),
    _then_read("a step back that is no duplicate", _by(P, 0, count=5), _by(P, 3, count=1)),
    _then_read("a first sequence that is not zero", _by(P, 7), _by(P, 8)),
    _then_read("an older epoch", _by(P, 0, epoch=3), _by(P, 1, epoch=2)),
    _then_read("a newer epoch from zero", _by(P, 0, epoch=3), _by(P, 0, epoch=4)),
    _then_read("a newer epoch from one", _by(P, 0, epoch=3), _by(P, 1, epoch=4)),
    _then_read("two producers", _by(P, 0), _by(P + 1, 0), _by(P, 1), _by(P + 1, 0)),
    _then_read("a producer without a sequence", _by(P, -1)),
    _then_read("a producer of epoch -1", _by(P, 0, epoch=-1)),
    _then_read("a sequence without a producer", _by(-1, 0, epoch=-1)),
    _then_read("a sequence that wraps", _by(P, 2**31 - 1), _by(P, 0)),
    _then_read("a negative producer", _by(-2, 0)),
    _then_read(
        "two batches of a producer at once",
        produce(
            batch(producer_id=P, producer_epoch=0, base_sequence=0),
            batch(producer_id=P, producer_epoch=0, base_sequence=1),
        ),
    ),
    _then_read(
        "the same producer on two partitions",
        _by(P, 0),
        produce(
            batch(producer_id=P, producer_epoch=0, base_sequence=0),
            partition=1,
        ),
        topics=THREE,
    ),
    _then_read(
        "a last offset delta that makes the sequence jump",
        _by(P, 0, count=2),
        produce(
            patched(batch(2, producer_id=P, producer_epoch=0, base_sequence=2), last_offset_delta=9)
        ),
    ),
]

TRANSACTIONAL = [
    _case(
        "a transactional batch without transactional id",
        produce(batch(producer_id=P, producer_epoch=0, base_sequence=0, transactional=True)),
    ),
    _case("a transactional id around a plain batch", produce(batch(), transactional_id="tx")),
]

CASES: list[Case] = [*IDEMPOTENT, *TRANSACTIONAL]
