"""Penstock: a Kafka-compatible streaming platform in Python."""

from pathlib import Path

from penstock.compiled import choose

__version__ = "0.2.0"

choose(Path(__file__).parent)
