"""Authentication and authorization: decisions only, no I/O, no clock, no randomness."""
