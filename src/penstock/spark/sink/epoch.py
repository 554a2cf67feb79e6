"""The rules of the exactly-once sink: what tasks and driver may do, given what brokers report.

One micro-batch (Spark also calls it epoch) is one transaction. All tasks write with the same
producer id and epoch, and the driver ends the transaction once. No I/O here: `transaction.py`
sends the requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import SEQUENCES
from penstock.types import TopicPartition
from penstock.wire.messages.describe_producers import ProducerState

MARKER_VERSION: Final = 3
"""Version 1 has no count of rows, version 2 no fingerprint."""
_NUMBERS: Final = {"2": 1, str(MARKER_VERSION): 2}
"""How many numbers follow the query in a marker of each version."""
_MARKER_WORD: Final = "penstock-sink"
FINGERPRINTS: Final = 1 << 64
"""Fingerprints are added modulo this."""
REPARTITION: Final = (
    "let one task write each output partition: "
    "df.repartitionById(<number of partitions>, <target partition>), or leave source partitions "
    "as they are"
)
REPEATABLE: Final = (
    "a retried task must see the same rows: leave out functions that are not deterministic and "
    "sources that cannot be read again, keep the columns partition and offset (or name others in "
    "option orderBy), and start the query again"
)
_OLDER_COPY: Final = (
    "its checkpoint is an older copy, or parts of it were removed. Use the checkpoint that belongs "
    "to the topic; or delete group {group} and set option ifMarkerIsMissing=write, which writes "
    "rows again that are in the topic"
)
_CHANGED_ROWS: Final = (
    ". If instead the source has lost or changed rows since, or functions of the query are not "
    "deterministic, option ifRowsDiffer=skip takes the micro-batch as written"
)


class EpochFailed(KafkaError):
    """The epoch cannot be committed exactly once; none of its rows becomes visible."""


@dataclass(frozen=True, slots=True)
class EpochMarker:
    """What a committed epoch leaves in the sink's group: its query, the next batch id, and by what
    its rows are recognized.

    It is the metadata of a committed offset, not a control record.
    """

    query: str
    next_batch: int
    rows: int | None = None
    """How many rows the epoch wrote; None: a version without that count wrote the marker."""
    fingerprint: int | None = None
    """See `fingerprint.py`; None: a version without fingerprints wrote the marker."""

    @property
    def metadata(self) -> str:
        if self.rows is None:
            return f"{_MARKER_WORD} 1 {self.query}"
        if self.fingerprint is None:
            return f"{_MARKER_WORD} 2 {self.query}/{self.rows}"
        return f"{_MARKER_WORD} {MARKER_VERSION} {self.query}/{self.rows}/{self.fingerprint}"


@dataclass(frozen=True, slots=True)
class SparkTransaction:
    """The transaction that the driver opened for all tasks of an epoch."""

    id: str
    producer_id: int
    producer_epoch: int
    implicit: bool = True
    """Whether a first write adds its partition (KIP-890); otherwise the task adds it."""
    markers: tuple[EpochMarker, ...] = ()
    """Markers of committed epochs; each topic that a query wrote to may have its own."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What one task wrote."""

    transaction: SparkTransaction
    query: str
    task: int
    rows: Mapping[TopicPartition, int] = field(default_factory=dict)
    count: int = 0
    """How many rows the task had, written by this attempt or not."""
    fingerprint: int = 0
    """The fingerprint of all these rows."""
    skipped: bool = False


def transactional_id(given: str | None, checkpoint: str | None) -> str | None:
    """The option, or an id made from the checkpoint's location; None without either.

    Batch ids belong to a checkpoint, so its location identifies the query. A trailing slash does
    not make another query.
    """
    if given:
        return given
    if not checkpoint:
        return None
    location = checkpoint.strip().rstrip("/")
    return f"penstock-sink-{sha256(location.encode()).hexdigest()[:24]}"


def read_marker(offset: int, metadata: str | None) -> EpochMarker | None:
    """The marker in a committed offset; None for an offset that this sink did not write."""
    parts = (metadata or "").split(" ")
    if offset < 0 or len(parts) != 3 or parts[0] != _MARKER_WORD:
        return None
    if parts[1] == "1":
        return EpochMarker(parts[2], offset)
    query, *numbers = parts[2].split("/")
    if _NUMBERS.get(parts[1]) != len(numbers) or not all(map(str.isdigit, numbers)):
        raise EpochFailed(f"the sink's marker has version {parts[1]}: a newer penstock wrote it")
    return EpochMarker(query, offset, *map(int, numbers))


def is_committed(markers: Iterable[EpochMarker], query: str, batch_id: int) -> bool:
    """Whether this epoch is in the topics already; markers of other queries do not count."""
    return any(each.query == query and each.next_batch > batch_id for each in markers)


def check_checkpoint(transaction: SparkTransaction, query: str, batch_id: int) -> None:
    """Fail if more than one later micro-batch is in the topics already.

    Spark records each micro-batch before it plans the next, so it can be behind by one. If it is
    behind by more, its checkpoint is an older copy, and what it plans now is not what was written
    under the same numbers; skipping these micro-batches would lose rows.
    """
    next_batch = max(
        (each.next_batch for each in transaction.markers if each.query == query), default=0
    )
    if next_batch > batch_id + 1:
        raise EpochFailed(
            f"query {query} runs micro-batch {batch_id}, but has written micro-batch "
            f"{next_batch - 1} before: {_OLDER_COPY.format(group=transaction.id)}"
        )


def check_skipped(reports: Sequence[TaskReport], batch_id: int) -> None:
    """Fail if the epoch, found committed, has other rows than were written.

    A checkpoint that is an older copy by just one micro-batch passes `check_checkpoint`, but Spark
    plans that micro-batch anew, with what has come since: skipping it would lose these rows. Their
    number says little: maxOffsetsPerTrigger takes as many, but of other partitions.
    """
    first, count = reports[0], sum(report.count for report in reports)
    fingerprint = _fingerprint(reports)
    for marker in first.transaction.markers:
        if (marker.query, marker.next_batch) != (first.query, batch_id + 1) or marker.rows is None:
            continue
        if marker.fingerprint is None:
            differs = marker.rows < count  # of fewer rows, the source may have lost some
        else:
            differs = (marker.rows, marker.fingerprint) != (count, fingerprint)
        if differs:
            raise EpochFailed(
                f"query {first.query} has written {marker.rows} rows as micro-batch {batch_id} "
                f"before, but now it has {count}{' others' if marker.rows == count else ''}: "
                f"{_OLDER_COPY.format(group=first.transaction.id)}{_CHANGED_ROWS}"
            )


def check_marker_exists(
    transaction: SparkTransaction, query: str, batch_id: int, topic: str | None
) -> None:
    """Fail if it is impossible to know whether the epoch's rows are in the topics already.

    With option topic each epoch leaves a marker. Without it, epochs without rows leave none: then a
    query counts as forgotten only if its producer epoch starts again at 0.
    """
    if batch_id == 0 or any(each.query == query for each in transaction.markers):
        return
    if topic is None and (transaction.producer_epoch > 0 or transaction.markers):
        return
    raise EpochFailed(
        f"query {query} has reached micro-batch {batch_id}, but left no marker in group "
        f"{transaction.id}: it has expired (offsets.retention.minutes), its topic or group was "
        "deleted, or this is the query's first run with transactional=true. See whether the rows "
        f"of micro-batch {batch_id} are in the topic; option ifMarkerIsMissing=write writes them"
    )


@dataclass(frozen=True, slots=True)
class Fresh:
    """No attempt wrote to the partition in this transaction."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """An earlier attempt wrote `rows` rows, the first at or after `start_offset`."""

    start_offset: int
    rows: int


PartitionProgress: TypeAlias = Fresh | Resumed


def partition_progress(
    topic_partition: TopicPartition, states: Iterable[ProducerState], transaction: SparkTransaction
) -> PartitionProgress:
    """How many rows of the transaction a partition has, by its leader's producer state."""
    for state in states:
        if state.producer_id != transaction.producer_id:
            continue
        if state.producer_epoch > transaction.producer_epoch:
            raise EpochFailed(f"{topic_partition}: a newer run of this query has taken over")
        if state.producer_epoch == transaction.producer_epoch and state.last_sequence >= 0:
            if state.current_txn_start_offset < 0:
                raise EpochFailed(
                    f"{topic_partition}: the transaction was ended while the epoch ran; raise "
                    "kafka.transaction.timeout.ms if epochs take that long"
                )
            return Resumed(state.current_txn_start_offset, state.last_sequence + 1)
    return Fresh()


def row_differs(topic_partition: TopicPartition, row: int) -> EpochFailed:
    """A row of this attempt differs from the row that was written."""
    return EpochFailed(
        f"{topic_partition}: row {row} of this attempt is not the one that an earlier attempt "
        f"wrote, or another task writes to the same partition. Either {REPARTITION}; or "
        f"{REPEATABLE}"
    )


def rows_are_missing(topic_partition: TopicPartition, rows: int, written: int) -> EpochFailed:
    """The attempt has fewer rows than were written."""
    return EpochFailed(
        f"{topic_partition}: this attempt has {rows} rows, but {written} are written by an "
        f"earlier attempt or another task. Either {REPARTITION}; or {REPEATABLE}"
    )


class BatchDigest(NamedTuple):
    """Identifies a batch: attempts of a task cut their batches differently."""

    base_sequence: int
    rows: int
    digest: int


def check_own_batches(
    topic_partition: TopicPartition, sent: Sequence[BatchDigest], found: Iterable[BatchDigest]
) -> None:
    """Fail the task unless the log holds exactly its batches behind those it resumed.

    A leader recognizes a duplicate batch by its sequences alone, and reports it as written. Two
    live attempts write with one producer id, so that the log may hold the other attempt's rows.
    """
    start = sent[0].base_sequence if sent else 0
    behind = [batch for batch in found if batch.base_sequence >= start]
    for mine, theirs in zip_longest(sent, behind):
        if mine != theirs:
            raise row_differs(
                topic_partition, (mine or theirs or BatchDigest(start, 0, 0)).base_sequence
            )


@dataclass(frozen=True, slots=True)
class NothingToCommit:
    """No rows and no option topic, or the epoch was committed before."""


@dataclass(frozen=True, slots=True)
class EpochCommit:
    """An epoch to commit, if the leaders confirm its rows."""

    transaction: SparkTransaction
    marker: EpochMarker
    rows: Mapping[TopicPartition, int]
    topic: str | None = None
    """The topic of all rows; None if the rows name their topics."""

    @property
    def marker_topics(self) -> set[str]:
        """The topics that get a copy of the marker."""
        return {self.topic} if self.topic is not None else {tp.topic for tp in self.rows}


def to_commit(
    received: Sequence[TaskReport | None],
    batch_id: int,
    topic: str | None = None,
    *,
    fails_on_other_rows: bool = True,
) -> NothingToCommit | EpochCommit:
    """The sum of the tasks' reports; `EpochFailed` if they contradict each other."""
    reports = [report for report in received if report is not None]
    if len(reports) < len(received):
        raise EpochFailed(
            f"epoch {batch_id}: {len(received) - len(reports)} tasks reported nothing"
        )
    skipped = [report for report in reports if report.skipped]
    if skipped and len(skipped) < len(reports):
        raise EpochFailed(f"epoch {batch_id}: some tasks wrote it, others found it committed")
    if skipped and fails_on_other_rows:
        check_skipped(skipped, batch_id)
    if skipped or not reports:
        return NothingToCommit()
    first = reports[0]
    rows: dict[TopicPartition, int] = {}
    writers: dict[TopicPartition, int] = {}
    for report in reports:
        if _identity(report) != _identity(first):
            raise EpochFailed(f"epoch {batch_id}: its tasks belong to different transactions")
        for tp, count in report.rows.items():
            if tp in rows:
                raise EpochFailed(
                    f"epoch {batch_id}: tasks {writers[tp]} and {report.task} both wrote to "
                    f"{tp}; {REPARTITION}"
                )
            rows[tp], writers[tp] = count, report.task
    if not rows and topic is None:
        return NothingToCommit()
    count = sum(report.count for report in reports)
    marker = EpochMarker(first.query, batch_id + 1, count, _fingerprint(reports))
    return EpochCommit(first.transaction, marker, rows, topic)


def _fingerprint(reports: Iterable[TaskReport]) -> int:
    return sum(report.fingerprint for report in reports) % FINGERPRINTS


def _identity(report: TaskReport) -> tuple[str, int, int, str]:
    transaction = report.transaction
    return transaction.id, transaction.producer_id, transaction.producer_epoch, report.query


def check_counts(commit: EpochCommit, found: Mapping[TopicPartition, PartitionProgress]) -> None:
    """Fail the commit unless the logs have as many rows of the transaction as tasks reported.

    `found` covers all partitions of the transaction: a lost attempt may have written to others.
    """
    for tp, seen in found.items():
        if tp not in commit.rows and isinstance(seen, Resumed):
            raise EpochFailed(
                f"{tp} has {seen.rows} rows of the epoch that no task reported; {REPEATABLE}"
            )
    for tp, rows in commit.rows.items():
        match found.get(tp, Fresh()):
            case Resumed(rows=written) if written == rows % SEQUENCES:
                pass
            case Resumed(rows=written):
                raise EpochFailed(
                    f"{tp} has {written} rows of the epoch, but its task reported {rows}; "
                    f"{REPARTITION}"
                )
            case Fresh():
                raise EpochFailed(f"{tp} has none of the {rows} rows that its task reported")


class EndTxnResult(Enum):
    """What a response to EndTxn means."""

    DONE = "done"
    AGAIN = "retry"
    UNKNOWN = "the marker decides"
    REFUSED = "refused"


_ENDED_OTHERWISE: Final = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


def end_txn_result(code: int, *, sent_before: bool, retriable: Iterable[int]) -> EndTxnResult:
    """The meaning of a response to EndTxn(commit).

    If an earlier response was lost, the transaction may be over, and a newer run may have taken
    the id. Then only the marker says whether it was committed.
    """
    if code == ErrorCode.NONE:
        return EndTxnResult.DONE
    if code in set(retriable):
        return EndTxnResult.AGAIN
    if code in _ENDED_OTHERWISE and sent_before:
        return EndTxnResult.UNKNOWN
    return EndTxnResult.REFUSED
