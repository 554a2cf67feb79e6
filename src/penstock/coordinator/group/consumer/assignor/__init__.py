"""Assignors: pure functions from who wants what to who gets what."""
