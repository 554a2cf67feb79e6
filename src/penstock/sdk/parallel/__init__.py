"""One fetching thread and a sized pool of workers: order per key, per partition, or none."""
