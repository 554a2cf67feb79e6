"""Replication scenarios, run live: narrated step by step, and checked."""
