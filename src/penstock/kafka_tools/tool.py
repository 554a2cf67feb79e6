"""A tool: its option table, what it does, and how it reports a failure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.kafka_tools.options import Table
from penstock.kafka_tools.parser import Arguments


class ToolError(Exception):
    """What a tool itself refuses, in Kafka's words."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` returns the exit code."""

    table: Table
    run: Callable[[Arguments], int]
    failed: Callable[[Exception, Sequence[str]], str] = lambda error, _: f"Error: {error}"
    """The sentence for a failure, given the command line's words."""
    failed_on_stdout: bool = False
