"""Who a client is, and what it may do. Decides only: no I/O, no clock, no randomness."""
