"""Listeners, connections, and the path of a request to its handler."""
