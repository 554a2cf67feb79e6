"""Clusters on this machine, for development and tests: processes by pid, data in one directory."""
