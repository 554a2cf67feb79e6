"""The error of a value that its schema did not write."""


class NotReadable(ValueError):
    """A value that its schema did not write."""
