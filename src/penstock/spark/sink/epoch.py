"""The rules of the exactly-once sink: what a task and the driver may do, told from what they see.

One micro-batch (Spark calls it epoch) is one transaction. All tasks write with one producer id and
epoch, and the driver ends the transaction once. Everything here is a value; `transaction.py` asks.
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

MARKER_VERSION: Final = 1
_MARKER_WORD: Final = "penstock-sink"
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


class EpochFailed(KafkaError):
    """The epoch cannot be committed as exactly-once; nothing of it becomes visible."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What the last committed epoch left in the sink's group: whose it was, and what comes next."""

    query: str
    next_batch: int

    @property
    def metadata(self) -> str:
        return f"{_MARKER_WORD} {MARKER_VERSION} {self.query}"


@dataclass(frozen=True, slots=True)
class Transaction:
    """What the driver opened, for all tasks of an epoch."""

    id: str
    producer_id: int
    producer_epoch: int
    implicit: bool = True
    """A first write adds its partition (KIP-890); else the task has to."""
    markers: tuple[Marker, ...] = ()
    """What committed epochs left; a query's epochs may leave them at different places."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one task did."""

    transaction: Transaction
    query: str
    task: int
    rows: Mapping[TopicPartition, int] = field(default_factory=dict)
    skipped: bool = False


def transactional_id(given: str | None, checkpoint: str | None) -> str | None:
    """The option, or what the checkpoint's place makes of it; None where there is neither.

    Batch numbers belong to a checkpoint, so the place names the query; a slash more is no other.
    """
    if given:
        return given
    if not checkpoint:
        return None
    place = checkpoint.strip().rstrip("/")
    return f"penstock-sink-{sha256(place.encode()).hexdigest()[:24]}"


def read_marker(offset: int, metadata: str | None) -> Marker | None:
    """The marker that a committed offset is; None where it is none of ours."""
    words = (metadata or "").split(" ")
    if offset < 0 or len(words) != 3 or words[0] != _MARKER_WORD:
        return None
    if not words[1].isdigit() or int(words[1]) > MARKER_VERSION:
        raise EpochFailed(f"the sink's marker has version {words[1]}: a newer penstock wrote it")
    return Marker(words[2], offset)


def is_committed(markers: Iterable[Marker], query: str, batch_id: int) -> bool:
    """Whether this epoch is in the topics already; another query's marker says nothing of it."""
    return any(each.query == query and each.next_batch > batch_id for each in markers)


def check_remembered(
    transaction: Transaction, query: str, batch_id: int, topic: str | None
) -> None:
    """Refuse rows where it cannot be known whether they are in the topics already.

    With a topic for all rows, each epoch leaves a marker. Without one, epochs without rows leave
    none: then a query is forgotten where the coordinator begins to number its transactions anew.
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
    """Nobody wrote to the partition in this transaction."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """An earlier attempt wrote `rows` rows, the first at or behind `start_offset`."""

    start_offset: int
    rows: int


Progress: TypeAlias = Fresh | Resumed


def progress(
    place: TopicPartition, states: Iterable[ProducerState], transaction: Transaction
) -> Progress:
    """How far the transaction is in a partition, as its leader remembers."""
    for state in states:
        if state.producer_id != transaction.producer_id:
            continue
        if state.producer_epoch > transaction.producer_epoch:
            raise EpochFailed(f"{place}: a newer run of this query has taken over")
        if state.producer_epoch == transaction.producer_epoch and state.last_sequence >= 0:
            if state.current_txn_start_offset < 0:
                raise EpochFailed(
                    f"{place}: the transaction was ended while the epoch ran; raise "
                    "kafka.transaction.timeout.ms if the epoch takes so long"
                )
            return Resumed(state.current_txn_start_offset, state.last_sequence + 1)
    return Fresh()


def different(place: TopicPartition, row: int) -> EpochFailed:
    """A retried task's rows are not those that are written."""
    return EpochFailed(
        f"{place}: row {row} of this attempt is not the one that an earlier attempt wrote, or "
        f"another task writes to the same partition. Either {REPARTITION}; or {REPEATABLE}"
    )


def fewer(place: TopicPartition, rows: int, written: int) -> EpochFailed:
    """A retried task has less rows than are written."""
    return EpochFailed(
        f"{place}: this attempt has {rows} rows, but {written} are written by an earlier attempt "
        f"or another task. Either {REPARTITION}; or {REPEATABLE}"
    )


class Batch(NamedTuple):
    """What tells a batch of the transaction from another attempt's."""

    base_sequence: int
    rows: int
    digest: int


def check_batches(place: TopicPartition, sent: Sequence[Batch], found: Iterable[Batch]) -> None:
    """Refuse the task's success unless the log holds its own batches, behind those it resumed.

    A leader takes a batch for a repeated one by its sequences alone, and says that it is written:
    what is there may be the batch of another attempt, with other rows.
    """
    start = sent[0].base_sequence if sent else 0
    behind = [batch for batch in found if batch.base_sequence >= start]
    for mine, theirs in zip_longest(sent, behind):
        if mine != theirs:
            raise different(place, (mine or theirs or Batch(start, 0, 0)).base_sequence)


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to commit: no rows and no topic, or the epoch was committed before."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What is to be committed, if the leaders say the same."""

    transaction: Transaction
    marker: Marker
    rows: Mapping[TopicPartition, int]
    topic: str | None = None
    """Where all rows go, if there are any."""

    @property
    def marker_topics(self) -> set[str]:
        """Each gets a copy of the marker."""
        return {self.topic} if self.topic is not None else {place.topic for place in self.rows}


def to_commit(
    told: Sequence[Report | None], batch_id: int, topic: str | None = None
) -> Nothing | Commit:
    """What the tasks' reports amount to; `EpochFailed` where they do not fit together."""
    reports = [report for report in told if report is not None]
    if len(reports) < len(told):
        raise EpochFailed(f"epoch {batch_id}: {len(told) - len(reports)} tasks reported nothing")
    skipped = [report for report in reports if report.skipped]
    if skipped and len(skipped) < len(reports):
        raise EpochFailed(f"epoch {batch_id}: some tasks wrote it, others found it committed")
    if skipped or not reports:
        return Nothing()
    first = reports[0]
    rows: dict[TopicPartition, int] = {}
    writers: dict[TopicPartition, int] = {}
    for report in reports:
        if _identity(report) != _identity(first):
            raise EpochFailed(f"epoch {batch_id}: its tasks belong to different transactions")
        for place, count in report.rows.items():
            if place in rows:
                raise EpochFailed(
                    f"epoch {batch_id}: tasks {writers[place]} and {report.task} both wrote to "
                    f"{place}; {REPARTITION}"
                )
            rows[place], writers[place] = count, report.task
    if not rows and topic is None:
        return Nothing()
    return Commit(first.transaction, Marker(first.query, batch_id + 1), rows, topic)


def _identity(report: Report) -> tuple[str, int, int, str]:
    of = report.transaction
    return of.id, of.producer_id, of.producer_epoch, report.query


def check_counts(commit: Commit, found: Mapping[TopicPartition, Progress]) -> None:
    """Refuse the commit unless the log has as many rows of the transaction as were reported.

    `found` is about all partitions that take part: a lost attempt may have written to others.
    """
    for place, seen in found.items():
        if place not in commit.rows and isinstance(seen, Resumed):
            raise EpochFailed(
                f"{place} has {seen.rows} rows of the epoch that no task reported; {REPEATABLE}"
            )
    for place, rows in commit.rows.items():
        match found.get(place, Fresh()):
            case Resumed(rows=written) if written == rows % SEQUENCES:
                pass
            case Resumed(rows=written):
                raise EpochFailed(
                    f"{place} has {written} rows of the epoch, but its task reported {rows}; "
                    f"{REPARTITION}"
                )
            case Fresh():
                raise EpochFailed(f"{place} has none of the {rows} rows that its task reported")


class Ending(Enum):
    """What an answer to EndTxn means."""

    DONE = "done"
    AGAIN = "ask again"
    UNKNOWN = "look whether the marker is there"
    REFUSED = "refused"


_ENDED_OTHERWISE: Final = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


def ending(code: int, *, asked_before: bool, retriable: Iterable[int]) -> Ending:
    """An answer to EndTxn(commit).

    Once it was asked, a lost answer may have been yes: then the transaction may be over, and the
    epoch taken by who came next. Whether it was committed is told by the marker alone.
    """
    if code == ErrorCode.NONE:
        return Ending.DONE
    if code in set(retriable):
        return Ending.AGAIN
    if code in _ENDED_OTHERWISE and asked_before:
        return Ending.UNKNOWN
    return Ending.REFUSED
