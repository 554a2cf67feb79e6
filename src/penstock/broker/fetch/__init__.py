"""Reads for fetch requests, and builds their responses: sessions, limits, rules of each read."""
