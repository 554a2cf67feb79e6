"""A schema registry with Confluent's REST API; a compacted topic stores its state."""
