"""The error for a value that was not written with its schema."""


class NotReadable(ValueError):
    """A value that was not written with its schema."""
