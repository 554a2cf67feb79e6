"""What a job writes: rows become record batches, plainly or in a transaction per epoch."""
