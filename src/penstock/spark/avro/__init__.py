"""Avro values without a jar: Spark's own one is published for none of the newer versions of it."""
