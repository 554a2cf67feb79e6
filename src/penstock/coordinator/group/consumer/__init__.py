"""Groups of the consumer protocol, in which the coordinator assigns partitions (KIP-848)."""
