"""A tool: its option table, its function, and how it reports a failure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.kafka_tools.options import Table
from penstock.kafka_tools.parser import Arguments


class ToolError(Exception):
    """A refusal by the tool itself, in Kafka's wording."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; `run` returns the exit code."""

    table: Table
    run: Callable[[Arguments], int]
    failed: Callable[[Exception, Sequence[str]], str] = lambda error, _: f"Error: {error}"
    """The sentence for a failure, given the command line arguments."""
    failed_on_stdout: bool = False
