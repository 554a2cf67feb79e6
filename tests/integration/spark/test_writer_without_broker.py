"""The writers that Spark calls, without a broker."""

import copy
import pickle

import pytest
from pyspark.sql.types import StructType

from peers.process import free_ports
from penstock.spark.sink.epoch import EpochFailed
from penstock.spark.sink.writer import stream_writer


def test_a_transaction_that_cannot_be_opened_is_reported() -> None:
    (port,) = free_ports(1)
    options = {
        "topic": "out",
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "kafka.default.api.timeout.ms": "50",
        "transactional": "true",
        "transactionalId": "x",
    }
    made = stream_writer(options, StructType().add("value", "binary"))
    assert pickle.loads(pickle.dumps(made))._transaction is None, "nobody but Spark opens one"
    copy.deepcopy(made)
    # The writer recognizes Spark's worker by the caller's file name.
    pickles = compile("pickle.dumps(made)", "/spark/worker/write_into_data_source.py", "eval")
    with pytest.raises(EpochFailed, match=r"transaction cannot be opened: cannot connect to 127"):
        eval(pickles, {"pickle": pickle, "made": made})
