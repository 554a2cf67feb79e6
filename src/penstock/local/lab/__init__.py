"""Scenarios of replication that run before one's eyes: narrated, and checked as they go."""
