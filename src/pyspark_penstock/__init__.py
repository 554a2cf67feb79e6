"""The name under which Spark finds the data source `penstock` by itself."""

from penstock.spark.data_source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
