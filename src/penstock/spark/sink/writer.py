"""The writers that Spark calls: for batches, for streams, and for streams exactly once.

Tasks import what they need themselves. Spark also makes writers in fresh processes of the driver,
twice for every micro-batch, and these should not wait for numpy and Arrow.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.errors import ConfigError, KafkaError
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.columns import check_distinct
from penstock.spark.sink.epoch import (
    EpochCommit,
    EpochFailed,
    SparkTransaction,
    TaskReport,
    to_commit,
)
from penstock.spark.sink.settings import SinkSettings, read_sink_settings
from penstock.spark.sink.transaction import abort, commit, open_transaction

if TYPE_CHECKING:
    from pyarrow import RecordBatch

logger = logging.getLogger("penstock.spark")

_SENDS_TO_TASKS = "write_into_data_source.py"
"""The module of pyspark's worker that creates the writer and pickles it for the tasks."""
_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"


@dataclass
class RowsWritten(WriterCommitMessage):
    """How many rows a task wrote."""

    rows: int


@dataclass
class ReportMessage(WriterCommitMessage):
    """What a task of an epoch wrote."""

    report: TaskReport


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceArrowWriter:
    if overwrite:
        raise ConfigError("a topic cannot be overwritten: use mode append")
    return BatchWriter(_settings(options, schema, streaming=False))


def stream_writer(options: Mapping[str, str], schema: StructType) -> DataSourceStreamArrowWriter:
    settings = _settings(options, schema, streaming=True)
    if settings.transactional_id is None:
        return StreamWriter(settings)
    return ExactlyOnceWriter(settings, settings.transactional_id)


def _settings(options: Mapping[str, str], schema: StructType, *, streaming: bool) -> SinkSettings:
    check_distinct(schema.names)
    types = {each.name: each.dataType.simpleString() for each in schema.fields}
    settings, warnings = read_sink_settings(options, types, streaming=streaming)
    for each in warnings:
        logger.warning(each)
    return settings


class BatchWriter(DataSourceArrowWriter):
    """Writes rows to topics at least once: what a failed job has written stays."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings

    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        from penstock.spark.sink.task import write

        return RowsWritten(write(iterator, self._settings))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes rows of a stream to topics at least once."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings

    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        from penstock.spark.sink.task import write

        return RowsWritten(write(iterator, self._settings))


class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    """Writes each micro-batch in one transaction.

    Before the tasks of a micro-batch, Spark makes a writer in a process of the driver and pickles
    it for them. That is the only call in the driver before the tasks, so `__getstate__` opens the
    transaction. `commit` and `abort` are called on another instance, which is never pickled and
    knows only what the tasks report.
    """

    def __init__(self, settings: SinkSettings, transactional_id: str) -> None:
        self._settings, self._id = settings, transactional_id
        self._transaction: SparkTransaction | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._transaction is None and _is_sent_to_tasks():
            self._transaction = self._opened()
        return self.__dict__.copy()

    def _opened(self) -> SparkTransaction:
        try:
            with BlockingClient(self._settings.client) as client:
                return open_transaction(client, self._id, self._settings.transaction_timeout_ms)
        except KafkaError as error:
            # Spark reports an object that cannot be serialized, and adds this text.
            raise EpochFailed(f"the micro-batch's transaction cannot be opened: {error}") from None

    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        from penstock.spark.sink.task import write_in_transaction

        context = TaskContext.get()
        assert context is not None, "Spark runs this in a task"
        if self._transaction is None:
            raise EpochFailed("the micro-batch has no transaction: Spark's driver opened none")
        query, batch_id = (context.getLocalProperty(name) for name in (_QUERY_ID, _BATCH_ID))
        assert query is not None, "Spark gives every task of a stream its query"
        assert batch_id is not None, "and its batch"
        return ReportMessage(
            write_in_transaction(
                iterator,
                self._settings,
                self._transaction,
                query=query,
                batch_id=int(batch_id),
                task=context.partitionId(),
            )
        )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        decided = to_commit(
            _reports(messages),
            batchId,
            self._settings.topic,
            fails_on_other_rows=self._settings.fails_on_other_rows,
        )
        if isinstance(decided, EpochCommit):
            with BlockingClient(self._settings.client) as client:
                commit(client, decided)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name
        """Abort the transaction at once if a task reported which it is.

        Otherwise it ends when the query starts again, or after kafka.transaction.timeout.ms.
        Initializing the id here could end the transaction of a newer run.
        """
        report = next((report for report in _reports(messages) if report is not None), None)
        if report is not None:
            with BlockingClient(self._settings.client) as client:
                abort(client, report.transaction)


def _is_sent_to_tasks() -> bool:
    """Whether Spark is about to start the tasks of a micro-batch.

    Any other copy or pickle must not open a transaction: that would fence the tasks that write.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - nothing else shows the caller
    while frame is not None:
        if Path(frame.f_code.co_filename).name == _SENDS_TO_TASKS:
            return True
        frame = frame.f_back
    return False


def _reports(messages: list[WriterCommitMessage | None]) -> list[TaskReport | None]:
    return [message.report if isinstance(message, ReportMessage) else None for message in messages]
