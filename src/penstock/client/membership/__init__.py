"""Membership of groups, as state machines without I/O; the consumers of each kind drive them."""
