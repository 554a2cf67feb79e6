"""Compaction: a log keeps the newest record of each key.

The broker decides what to clean (`cleanable`) and hands a job to another process (`process`),
which reads segments and writes new ones beside them (`cleaner`); the broker then swaps them in.
"""
