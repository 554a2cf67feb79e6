"""The sink: rows become record batches, plainly or in one transaction per epoch."""
