"""Delay, retry and dead letters over the plain protocol, for any client."""
