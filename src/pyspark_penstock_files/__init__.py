"""The name under which Spark finds the data source `penstock_files` by itself."""

from penstock.spark.connector.file_source import FileSource as DefaultSource

__all__ = ["DefaultSource"]
