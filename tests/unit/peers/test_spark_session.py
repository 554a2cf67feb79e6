"""Which code may create the Spark sessions of a test process."""

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from peers.spark_session import only_here


def test_a_session_created_elsewhere_is_refused_before_it_starts_a_jvm() -> None:
    only_here()
    gateway = SparkContext._gateway
    with pytest.raises(AssertionError, match="a test process has one JVM"):
        SparkSession.builder.master("local[1]").getOrCreate()
    assert SparkContext._gateway is gateway
