"""Partition state: leaders, in-sync replicas, high watermarks."""
