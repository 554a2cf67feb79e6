"""Looks into log directories from outside: dump, verify, adopt. Nothing here writes."""
