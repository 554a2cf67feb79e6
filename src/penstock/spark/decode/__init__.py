"""Record batches into Arrow columns, many records at a time."""
