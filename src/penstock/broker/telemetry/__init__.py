"""Metrics that clients push (KIP-714): their subscriptions, and the values they sent."""
