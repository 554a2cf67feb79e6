"""Assignors: pure functions from subscriptions to assignments."""
