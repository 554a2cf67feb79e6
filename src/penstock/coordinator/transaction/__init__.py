"""Transactions: which partitions each has, how it ends, and its markers."""
