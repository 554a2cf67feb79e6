"""Shared by all commands: help, formats, connection, profiles, the terminal."""
