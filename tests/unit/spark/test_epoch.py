"""What tasks and driver of the exactly-once sink may do, given what they observe."""

from collections.abc import Mapping, Sequence

import pytest

from penstock.client.errors import RETRIABLE
from penstock.errors import ErrorCode
from penstock.spark.sink.epoch import (
    FINGERPRINTS,
    BatchDigest,
    EndTxnResult,
    EpochCommit,
    EpochFailed,
    EpochMarker,
    Fresh,
    NothingToCommit,
    PartitionProgress,
    Resumed,
    SparkTransaction,
    TaskReport,
    check_checkpoint,
    check_counts,
    check_marker_exists,
    check_own_batches,
    end_txn_result,
    is_committed,
    partition_progress,
    read_marker,
    to_commit,
    transactional_id,
)
from penstock.types import TopicPartition
from penstock.wire.messages.describe_producers import ProducerState

P0, P1 = TopicPartition("out", 0), TopicPartition("out", 1)
OURS = SparkTransaction("sink", 7, 3)
LAST = FINGERPRINTS - 1


def report(
    task: int = 0, rows: Mapping[TopicPartition, int] | None = None, **other: object
) -> TaskReport:
    values = {"transaction": OURS, "query": "q", "task": task, "rows": rows or {}} | other
    return TaskReport(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "checkpoint", "expected"),
    [
        ("mine", "file:/a", "mine"),
        ("mine", None, "mine"),
        (None, None, None),
        ("", "", None),
    ],
)
def test_a_given_transactional_id_is_used(
    given: str | None, checkpoint: str | None, expected: str | None
) -> None:
    assert transactional_id(given, checkpoint) == expected


def test_a_query_is_named_by_its_checkpoint() -> None:
    found = transactional_id(None, "file:/data/checkpoint")
    assert found == transactional_id(None, " file:/data/checkpoint/ ")
    assert found != transactional_id(None, "file:/data/checkpoint2")
    assert found is not None
    assert found.startswith("penstock-sink-")


@pytest.mark.parametrize("rows", [(), (0,), (70,), (0, 0), (70, LAST)])
def test_a_marker_is_read_back_as_written(rows: tuple[int, ...]) -> None:
    marker = EpochMarker("9c5f", 12, *rows)
    assert read_marker(12, marker.metadata) == marker


def test_markers_of_older_versions_are_read() -> None:
    assert read_marker(5, "penstock-sink 1 q") == EpochMarker("q", 5)
    assert read_marker(5, "penstock-sink 2 q/7") == EpochMarker("q", 5, 7)


@pytest.mark.parametrize("metadata", [None, "", "someone's own", "penstock-sink 1", "a b c"])
def test_other_offsets_are_not_markers(metadata: str | None) -> None:
    assert read_marker(5, metadata) is None


def test_a_missing_offset_is_not_a_marker() -> None:
    assert read_marker(-1, EpochMarker("q", 1).metadata) is None


@pytest.mark.parametrize("newer", ["4 q/7/8", "3 q/7", "3 q/7/8/9", "3 q/7/x"])
def test_a_marker_of_a_newer_version_is_an_error(newer: str) -> None:
    with pytest.raises(EpochFailed, match=r"version [34]: a newer penstock"):
        read_marker(5, f"penstock-sink {newer}")


@pytest.mark.parametrize(
    ("markers", "batch_id", "expected"),
    [
        ([], 0, False),
        ([EpochMarker("q", 5)], 4, True),
        ([EpochMarker("q", 5)], 3, True),
        ([EpochMarker("q", 5)], 5, False),
        ([EpochMarker("q", 4), EpochMarker("q", 5), EpochMarker("q", 2)], 4, True),
        ([EpochMarker("another checkpoint", 5)], 4, False),
        ([EpochMarker("another checkpoint", 500), EpochMarker("q", 5)], 4, True),
    ],
)
def test_a_committed_epoch_is_recognised_by_its_marker(
    markers: list[EpochMarker], batch_id: int, expected: bool
) -> None:
    assert is_committed(markers, "q", batch_id) is expected


OTHERS = (EpochMarker("another checkpoint", 9),)


def test_a_checkpoint_that_was_set_back_may_not_skip_epochs() -> None:
    """Spark's plan now differs from what was written under the same epoch numbers."""
    markers = (*OTHERS, EpochMarker("q", 5), EpochMarker("q", 2))
    transaction = SparkTransaction("sink", 7, 3, markers=markers)
    for batch_id in (4, 5, 6):  # the last epoch again, the next, and one after epochs without rows
        check_checkpoint(transaction, "q", batch_id)
    for batch_id in (0, 3):
        with pytest.raises(EpochFailed, match=rf"runs micro-batch {batch_id}, .* micro-batch 4"):
            check_checkpoint(transaction, "q", batch_id)
    check_checkpoint(transaction, "a new checkpoint", 0)


def test_a_checkpoint_that_is_one_epoch_behind_may_not_skip_new_rows() -> None:
    """Spark has planned the epoch anew, with what has come since."""
    written = to_commit([report(0, {P0: 4}, count=4), report(1, {P1: 3}, count=3)], 4)
    assert isinstance(written, EpochCommit)
    assert written.marker == EpochMarker("q", 5, 7, 0)

    uncounted, counted = EpochMarker("q", 5), EpochMarker("q", 5, 7)
    for rows in ([(4, 0), (3, 0)], [(7, 0)], [(0, 0)]):  # of fewer, the source may have lost some
        assert skipped(counted, rows) == NothingToCommit()
    with pytest.raises(EpochFailed, match=r"written 7 rows as micro-batch 4 before, .* older copy"):
        skipped(counted, [(4, 0), (4, 0)])
    assert skipped(uncounted, [(4, 0), (4, 0)]) == NothingToCommit(), "its rows were not counted"


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([(4, 11), (3, LAST)], "now it has 7 others: "),
        ([(6, 10)], "now it has 6: "),
        ([], "now it has 0: "),
        ([(8, 10)], "now it has 8: "),
    ],
)
def test_an_epoch_that_is_skipped_must_have_the_rows_that_were_written(
    rows: list[tuple[int, int]], what: str
) -> None:
    """As many rows may be others: maxOffsetsPerTrigger divides them among partitions by lag."""
    written = to_commit(
        [
            report(0, {P0: 4}, count=4, fingerprint=11),
            report(1, {P1: 3}, count=3, fingerprint=LAST - 1),
        ],
        4,
    )
    assert isinstance(written, EpochCommit)
    assert written.marker == EpochMarker("q", 5, 7, 9)
    for same in ([(7, 9)], [(3, 10), (2, LAST), (2, 0)]):  # tasks may divide them otherwise
        assert skipped(written.marker, same) == NothingToCommit()
    with pytest.raises(EpochFailed, match=f"{what}.*older copy.*ifRowsDiffer=skip"):
        skipped(written.marker, rows or [(0, 0)])
    assert skipped(written.marker, rows or [(0, 0)], fails=False) == NothingToCommit()


def skipped(
    marker: EpochMarker, rows: Sequence[tuple[int, int]], *, fails: bool = True
) -> NothingToCommit | EpochCommit:
    """What follows if tasks skip epoch 4 with these counts and fingerprints of their rows."""
    known = SparkTransaction("sink", 7, 3, markers=(*OTHERS, marker))
    reports = [
        report(i, transaction=known, count=count, fingerprint=found, skipped=True)
        for i, (count, found) in enumerate(rows)
    ]
    return to_commit(reports, 4, fails_on_other_rows=fails)


@pytest.mark.parametrize("topic", ["out", None])
@pytest.mark.parametrize(
    ("transaction", "batch_id"),
    [
        (SparkTransaction("sink", 7, 0), 0),
        (SparkTransaction("sink", 7, 0, markers=OTHERS), 0),
        (SparkTransaction("sink", 7, 0, markers=(EpochMarker("q", 5),)), 5),
        (SparkTransaction("sink", 7, 0, markers=(*OTHERS, EpochMarker("q", 3))), 5),
    ],
    ids=["first run", "new checkpoint", "numbered anew", "epochs of other topics"],
)
def test_a_query_with_a_marker_may_write(
    transaction: SparkTransaction, batch_id: int, topic: str | None
) -> None:
    check_marker_exists(transaction, "q", batch_id, topic)


@pytest.mark.parametrize(
    "transaction", [SparkTransaction("sink", 7, 1), SparkTransaction("sink", 7, 0, markers=OTHERS)]
)
def test_a_query_without_marker_may_not_write_where_every_epoch_leaves_one(
    transaction: SparkTransaction,
) -> None:
    check_marker_exists(transaction, "q", 5, None)  # its epochs may have had no rows
    with pytest.raises(EpochFailed, match=r"query q has reached micro-batch 5.*ifMarkerIsMissing"):
        check_marker_exists(transaction, "q", 5, "out")


@pytest.mark.parametrize("topic", ["out", None])
def test_a_query_that_the_cluster_forgot_may_not_write(topic: str | None) -> None:
    with pytest.raises(EpochFailed, match="left no marker in group sink"):
        check_marker_exists(SparkTransaction("sink", 7, 0), "q", 5, topic)


def test_each_topic_of_an_epoch_gets_a_marker() -> None:
    decided = EpochCommit(OURS, EpochMarker("q", 9), {P1: 1, TopicPartition("other", 3): 2, P0: 1})
    assert decided.marker_topics == {"out", "other"}


def test_an_epoch_without_rows_leaves_a_marker_if_its_topic_is_known() -> None:
    decided = to_commit([report(0), report(1)], 8, "out")
    assert isinstance(decided, EpochCommit)
    assert (decided.marker, decided.marker_topics) == (EpochMarker("q", 9, 0, 0), {"out"})


def state(epoch: int, last_sequence: int, start: int, producer: int = 7) -> ProducerState:
    return ProducerState(
        producer_id=producer,
        producer_epoch=epoch,
        last_sequence=last_sequence,
        current_txn_start_offset=start,
    )


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], Fresh()),
        ([state(3, 99, 40, producer=8)], Fresh()),
        ([state(2, 99, -1)], Fresh()),
        ([state(2, 99, 40)], Fresh()),  # its abort is on the way; the leader will report it
        ([state(3, -1, -1)], Fresh()),  # only a marker
        ([state(3, 0, 40)], Resumed(40, 1)),
        ([state(9, 0, 0, producer=8), state(3, 99, 40)], Resumed(40, 100)),
    ],
)
def test_progress_is_read_from_the_leaders_producer_state(
    states: list[ProducerState], expected: PartitionProgress
) -> None:
    assert partition_progress(P0, states, OURS) == expected


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([state(4, -1, -1)], "out-0: a newer run of this query has taken over"),
        ([state(3, 5, -1)], "out-0: the transaction was ended .* kafka.transaction.timeout.ms"),
    ],
)
def test_an_ended_transaction_fails_the_task(states: list[ProducerState], words: str) -> None:
    with pytest.raises(EpochFailed, match=words):
        partition_progress(P0, states, OURS)


def test_reports_of_one_transaction_are_committed_with_the_next_batch_as_marker() -> None:
    reports = [report(0, {P0: 5}, count=5), report(1, {P1: 2}, count=2), report(2)]
    assert to_commit(reports, 8) == EpochCommit(OURS, EpochMarker("q", 9, 7, 0), {P0: 5, P1: 2})


@pytest.mark.parametrize(
    "reports",
    [[], [report(0), report(1)], [report(0, skipped=True), report(1, skipped=True)]],
    ids=["no tasks", "no rows", "committed before"],
)
def test_without_writes_nothing_is_committed(reports: list[TaskReport]) -> None:
    assert to_commit(reports, 8) == NothingToCommit()


OTHER_EPOCH = SparkTransaction("sink", 7, 4)


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        ([report(0, {P0: 1}), None], "1 tasks reported nothing"),
        ([report(0, {P0: 1}), report(1, skipped=True)], "some tasks wrote it, others found"),
        ([report(0, {P0: 1}), report(1, {P1: 1}, transaction=OTHER_EPOCH)], "different transact"),
        ([report(0, {P0: 1}), report(1, {P1: 1}, query="r")], "different transactions"),
        ([report(0, {P0: 1}), report(3, {P0: 1})], "tasks 0 and 3 both wrote to out-0; .*ById"),
    ],
)
def test_contradicting_reports_fail_the_epoch(reports: list[TaskReport | None], words: str) -> None:
    with pytest.raises(EpochFailed, match=words):
        to_commit(reports, 8)


COMMIT = EpochCommit(OURS, EpochMarker("q", 9), {P0: 5, P1: 2})


def test_equal_counts_allow_the_commit() -> None:
    check_counts(COMMIT, {P0: Resumed(10, 5), P1: Resumed(0, 2), TopicPartition("x", 0): Fresh()})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({P0: Resumed(10, 5)}, "out-1 has none of the 2 rows"),
        ({P0: Resumed(10, 5), P1: Fresh()}, "out-1 has none of the 2 rows"),
        ({P0: Resumed(10, 5), P1: Resumed(0, 3)}, "out-1 has 3 rows .* reported 2; .*ById"),
        (
            {P0: Resumed(10, 5), P1: Resumed(0, 2), TopicPartition("x", 0): Resumed(0, 1)},
            "x-0 has 1 rows of the epoch that no task reported",
        ),
    ],
)
def test_counts_that_differ_fail_the_epoch(
    found: dict[TopicPartition, PartitionProgress], words: str
) -> None:
    with pytest.raises(EpochFailed, match=words):
        check_counts(COMMIT, found)


@pytest.mark.parametrize(
    ("code", "sent_before", "expected"),
    [
        (ErrorCode.NONE, False, EndTxnResult.DONE),
        (ErrorCode.NONE, True, EndTxnResult.DONE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, False, EndTxnResult.AGAIN),
        (ErrorCode.NOT_COORDINATOR, True, EndTxnResult.AGAIN),
        (ErrorCode.INVALID_TXN_STATE, False, EndTxnResult.REFUSED),
        (ErrorCode.INVALID_TXN_STATE, True, EndTxnResult.UNKNOWN),
        (ErrorCode.PRODUCER_FENCED, False, EndTxnResult.REFUSED),
        (ErrorCode.PRODUCER_FENCED, True, EndTxnResult.UNKNOWN),
        (ErrorCode.INVALID_PRODUCER_EPOCH, True, EndTxnResult.UNKNOWN),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, True, EndTxnResult.REFUSED),
    ],
)
def test_the_answer_to_a_commit_is_judged_by_what_was_sent_before(
    code: ErrorCode, sent_before: bool, expected: EndTxnResult
) -> None:
    assert end_txn_result(code, sent_before=sent_before, retriable=RETRIABLE) is expected


MINE = [BatchDigest(10, 5, 1), BatchDigest(15, 5, 2)]


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ([], [BatchDigest(0, 10, 9)]),
        (MINE, MINE),
        (MINE, [BatchDigest(0, 4, 9), BatchDigest(4, 6, 9), *MINE]),
    ],
    ids=["all resumed", "all mine", "behind what was resumed"],
)
def test_a_task_finds_its_own_batches(sent: list[BatchDigest], found: list[BatchDigest]) -> None:
    check_own_batches(P0, sent, found if sent else [])


@pytest.mark.parametrize(
    ("found", "row"),
    [
        ([BatchDigest(10, 5, 1)], 15),
        ([BatchDigest(10, 5, 7), BatchDigest(15, 5, 2)], 10),
        ([BatchDigest(10, 4, 1), BatchDigest(14, 6, 2)], 10),
        ([*MINE, BatchDigest(20, 1, 1)], 20),
        ([], 10),
    ],
)
def test_batches_of_another_attempt_fail_the_task(found: list[BatchDigest], row: int) -> None:
    with pytest.raises(EpochFailed, match=f"out-0: row {row} of this attempt is not the one"):
        check_own_batches(P0, MINE, found)
