"""The writers that Spark calls, as far as they need no broker."""

import copy
import pickle

import pytest
from pyspark.sql.types import StructType

from peers.process import free_ports
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


def test_options_without_effect_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    stream_writer(OPTIONS | {"kafka.linger.ms": "5"}, ROWS)
    assert "option kafka.linger.ms has no effect" in caplog.text


def test_a_writer_without_transaction_is_pickled_as_it_is() -> None:
    made = pickle.loads(pickle.dumps(stream_writer(OPTIONS, ROWS)))
    assert isinstance(made, StreamWriter)


def test_a_transaction_that_cannot_be_opened_says_so() -> None:
    (port,) = free_ports(1)
    options = OPTIONS | {
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "kafka.default.api.timeout.ms": "50",
        "transactional": "true",
        "transactionalId": "x",
    }
    made = stream_writer(options, ROWS)
    assert pickle.loads(pickle.dumps(made))._transaction is None, "nobody but Spark opens one"
    copy.deepcopy(made)
    # As Spark's worker does it: the caller's file is what tells it.
    pickles = compile("pickle.dumps(made)", "/spark/worker/write_into_data_source.py", "eval")
    with pytest.raises(EpochFailed, match=r"transaction cannot be opened: cannot connect to 127"):
        eval(pickles, {"pickle": pickle, "made": made})


def exact() -> ExactlyOnceWriter:
    options = OPTIONS | {"transactional": "true", "transactionalId": "x"}
    options.pop("topic")  # else an epoch without rows leaves a marker there
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
