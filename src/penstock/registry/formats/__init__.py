"""Avro, Protobuf and JSON Schema: parsing, and which schema can read the data of which other."""
