"""Avro values without a jar: Spark's jar for Avro is not published for its newer versions."""
