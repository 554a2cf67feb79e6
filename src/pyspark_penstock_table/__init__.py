"""The name under which Spark finds the data source `penstock_table` by itself."""

from penstock.spark.connector.table_source import TableSource as DefaultSource

__all__ = ["DefaultSource"]
