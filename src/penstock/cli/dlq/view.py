"""Rows and columns of dead letters, and the options that select them."""

from collections.abc import Callable
from typing import Any

import click

from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, iso_time
from penstock.cli.selection import selection_options
from penstock.retry.letters import Letter
from penstock.retry.progress import Outcome

STATES = {Outcome.DELIVERED: "redriven", Outcome.CANCELLED: "purged", None: "dead"}

COLUMNS = (
    Column("PARTITION", "partition"),
    Column("OFFSET", "offset"),
    Column("KEY", "key"),
    Column("TIMESTAMP", "timestamp"),
    Column("ORIGIN", "origin"),
    Column("ATTEMPT", "attempt"),
    Column("SOURCE", "source"),
    Column("GROUP", "group", is_wide=True),
    Column("STATE", "state", is_wide=True),
    Column("ERROR", "error"),
)


def letter_row(letter: Letter, outcome: Outcome | None) -> dict[str, Any]:
    dead, record = letter.dead, letter.record
    where = None if dead is None or dead.topic is None else dead.topic
    if where is not None and dead is not None and dead.partition is not None:
        where += f"-{dead.partition}" + ("" if dead.offset is None else f" at {dead.offset}")
    return {
        "topic": letter.partition.topic,
        "partition": letter.partition.partition,
        "offset": record.offset,
        "key": None if record.key is None else record.key.decode(errors="replace"),
        "timestamp_ms": record.timestamp,
        "timestamp": iso_time(record.timestamp),
        "origin": where,
        "origin_topic": dead and dead.topic,
        "origin_partition": dead and dead.partition,
        "origin_offset": dead and dead.offset,
        "attempt": dead and dead.attempt,
        "source": dead and dead.source,
        "group": dead and dead.group,
        "state": STATES[outcome],
        "error": dead and dead.error,
    }


def letter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select letters; their values are for `chosen_records`."""
    origin = click.option(
        "--origin", type=TOPIC_NAME, metavar="TOPIC", help="Only those that came from this topic."
    )
    return selection_options("--since", "--until", "timestamped")(origin(command))
