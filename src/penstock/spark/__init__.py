"""Reads and writes topics from Spark: a data source of Spark's Python API, without a JVM client."""
