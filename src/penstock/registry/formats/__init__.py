"""Avro, Protobuf and JSON Schema: what a text means, and which schema can read which data."""
