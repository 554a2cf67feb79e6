"""Record batches, version 2: the header as a view over bytes, records, compression, validation."""
