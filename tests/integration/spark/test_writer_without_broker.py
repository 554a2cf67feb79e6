"""The writers that Spark calls, where no broker listens."""

import copy
import pickle

import pytest
from pyspark.sql.types import StructType

from peers.process import free_ports
from penstock.spark.sink.epoch import EpochFailed
from penstock.spark.sink.writer import stream_writer


def test_a_transaction_that_cannot_be_opened_says_so() -> None:
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
    # As Spark's worker does it: the caller's file is what tells it.
    pickles = compile("pickle.dumps(made)", "/spark/worker/write_into_data_source.py", "eval")
    with pytest.raises(EpochFailed, match=r"transaction cannot be opened: cannot connect to 127"):
        eval(pickles, {"pickle": pickle, "made": made})
