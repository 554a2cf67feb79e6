"""Loading a shard from its log: unreadable records, transactions, requests meanwhile."""

import pytest

from penstock.coordinator.group.offsets import CommittedOffset
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import read_header
from penstock.record.build import build_batch, numbered
from penstock.record.control import build_marker
from support.groups.coordinator_stage import TOPIC_PARTITION, Stage, code
from support.groups.group_transcript import GROUP


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_shard_answers_once_its_whole_log_is_loaded(stage: Stage) -> None:
    for offset in range(3):
        stage.commit(offset)
    stage.groups = stage.started()
    assert code(stage.commit(9)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(KafkaError, match="is being loaded"):
        stage.groups.shards()
    stage.loop.advance()
    assert stage.groups.fetch(GROUP, None).reply == {TOPIC_PARTITION: CommittedOffset(2)}


def test_an_unreadable_log_does_not_count_as_empty(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.commit(5)
    damaged = build_batch(numbered([(b"k", b"v" * 100)], 0, 1), base_offset=1)
    damaged[-100:] = b"\xff" * 100
    damaged[61] = 1  # an impossible record length
    stage.log.batches.append(damaged)
    stage.log.ends.append(2)
    stage.groups = stage.started()
    stage.loop.advance()
    assert code(stage.commit(6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert "offsets-0 cannot be loaded" in caplog.text


FOREIGN = {
    "text": (b"k", b"hello"),
    "no key": (None, b"hello"),
    "a newer version": (b"\0\1" + b"\0\1g\0\1t\0\0\0\0", b"\0\x63"),
    "an unknown state": (b"\0\x08\0\1g\0\1m", b"\0\0" + b"\0\0\0\1" * 2 + b"\x09\1\1\0"),
}


def append_marker(stage: Stage, *, committed: bool) -> None:
    """Producer 3 ends its transaction at offset 2."""
    marker = build_marker(
        producer_id=3,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=0,
        base_offset=2,
    )
    stage.log.batches.append(marker)
    stage.log.ends.append(3)


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=list(FOREIGN))
@pytest.mark.parametrize("producer_id", [-1, 3], ids=["plain", "in a transaction"])
def test_an_unreadable_record_is_skipped_and_logged(
    stage: Stage,
    caplog: pytest.LogCaptureFixture,
    foreign: tuple[bytes | None, bytes],
    producer_id: int,
) -> None:
    stage.commit(5)
    stage.log.batches.append(
        build_batch(
            numbered([foreign], 0, 1),
            base_offset=1,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
        )
    )
    stage.log.ends.append(2)
    if producer_id >= 0:
        append_marker(stage, committed=True)
    stage.groups = stage.started()
    stage.loop.advance()
    assert stage.groups.fetch(GROUP, None).reply == {TOPIC_PARTITION: CommittedOffset(5)}
    assert stage.groups.runtime.unreadable_records == 1
    (logged,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "offsets-0: skipping the record at offset 1" in logged.message
    assert stage.commit(6).reply == (None,)


@pytest.mark.parametrize(("committed", "found"), [(True, 7), (False, 5), (None, 5)])
def test_records_of_a_transaction_take_effect_once_it_is_committed(
    stage: Stage, committed: bool | None, found: int
) -> None:
    """Kafka writes transactional offsets this way; logs written by Kafka may contain them."""
    stage.commit(5)
    other = Stage()
    other.commit(7)
    header = read_header(other.log.batches[0])
    raw = other.log.batches[0]
    assert header.record_count == 1
    key_value = next(iter(_pairs(raw)))
    stage.log.batches.append(
        build_batch(
            numbered([key_value], 0, 1),
            base_offset=1,
            producer_id=3,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )
    stage.log.ends.append(2)
    if committed is not None:
        append_marker(stage, committed=committed)
    stage.groups = stage.started()
    stage.loop.advance()
    reply = stage.groups.fetch(GROUP, None).reply
    assert isinstance(reply, dict)
    assert reply[TOPIC_PARTITION].offset == found


def _pairs(batch: bytearray) -> list[tuple[bytes | None, bytes | None]]:
    from penstock.record.record import records

    return [(each.key, each.value) for each in records(batch, read_header(batch), 1 << 20)]


def test_requests_are_refused_while_the_log_is_loaded(stage: Stage) -> None:
    stage.commit(5)
    stage.groups.runtime.lead(0, stage.log)
    assert code(stage.commit(6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    stage.loop.advance(1)
    assert stage.commit(6).reply == (None,)


def test_offsets_of_topics_deleted_while_a_shard_loads_are_removed_too(stage: Stage) -> None:
    stage.commit(5)
    stage.groups = stage.started()
    stage.groups.partitions_deleted([TOPIC_PARTITION])
    stage.loop.advance(1)
    assert stage.groups.fetch(GROUP, None).reply == {}
