"""Conversions between values and messages that several handlers share."""
