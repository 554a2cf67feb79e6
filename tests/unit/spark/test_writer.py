"""The writers that Spark calls, as far as they need no broker."""

import copy
import pickle

import pytest
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.spark.sink.epoch import EpochFailed, SparkTransaction, TaskReport
from penstock.spark.sink.writer import (
    BatchWriter,
    ExactlyOnceWriter,
    ReportMessage,
    RowsWritten,
    StreamWriter,
    batch_writer,
    stream_writer,
)

ROWS = StructType().add("key", "string").add("value", "binary")
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "out"}


def test_options_choose_the_writer() -> None:
    assert isinstance(batch_writer(OPTIONS, ROWS, overwrite=False), BatchWriter)
    assert isinstance(stream_writer(OPTIONS, ROWS), StreamWriter)
    exact = OPTIONS | {"transactional": "true", "transactionalId": "x"}
    assert isinstance(stream_writer(exact, ROWS), ExactlyOnceWriter)


def test_a_topic_is_not_overwritten() -> None:
    with pytest.raises(ConfigError, match="use mode append"):
        batch_writer(OPTIONS, ROWS, overwrite=True)


def test_rows_with_two_columns_of_one_name_are_refused() -> None:
    joined = StructType().add("key", "string").add("key", "string").add("value", "binary")
    for made in (
        lambda: batch_writer(OPTIONS, joined, overwrite=False),
        lambda: stream_writer(OPTIONS, joined),
    ):
        with pytest.raises(ConfigError, match="the rows have 2 columns called key"):
            made()


def test_options_without_effect_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    stream_writer(OPTIONS | {"kafka.linger.ms": "5"}, ROWS)
    assert "option kafka.linger.ms has no effect" in caplog.text


def test_a_writer_without_transaction_can_be_pickled() -> None:
    made = pickle.loads(pickle.dumps(stream_writer(OPTIONS, ROWS)))
    assert isinstance(made, StreamWriter)


def exact() -> ExactlyOnceWriter:
    options = OPTIONS | {"transactional": "true", "transactionalId": "x"}
    options.pop("topic")  # otherwise an epoch without rows leaves a marker there
    made = stream_writer(options, copy.deepcopy(ROWS).add("topic", "string"))
    assert isinstance(made, ExactlyOnceWriter)
    return made


def test_an_epoch_without_rows_sends_no_request() -> None:
    nothing = TaskReport(SparkTransaction("x", 1, 0), "q", 0)
    exact().commit([ReportMessage(nothing)], 0)
    exact().abort([None, None], 0)


def test_a_task_without_report_fails_the_commit() -> None:
    nothing = TaskReport(SparkTransaction("x", 1, 0), "q", 0)
    with pytest.raises(EpochFailed, match="1 tasks reported nothing"):
        exact().commit([ReportMessage(nothing), RowsWritten(3)], 0)
