"""Groups of the consumer protocol, whose partitions the coordinator shares out (KIP-848)."""
