"""Avro, Protobuf and JSON Schema: parsing, and whether one schema can read another's data."""
