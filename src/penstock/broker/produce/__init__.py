"""Appends the batches of produce requests, and decides what their responses wait for."""
