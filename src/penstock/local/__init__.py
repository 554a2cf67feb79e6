"""Clusters on this machine, for development and tests: one process per broker, one directory."""
