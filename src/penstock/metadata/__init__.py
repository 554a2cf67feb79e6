"""Cluster metadata: the store, the records in its nodes, and the image that brokers serve from."""
