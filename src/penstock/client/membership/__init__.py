"""Membership of a consumer group, as state machines without I/O; `GroupConsumer` drives them."""
