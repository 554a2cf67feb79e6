"""A schema registry with Confluent's REST API, whose state is a compacted topic."""
