"""Whole brokers, ZooKeeper, clients and the network between them in one deterministic loop."""
