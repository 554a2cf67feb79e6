"""Spark's door to the log: a data source of Spark's Python API, without a JVM client."""
