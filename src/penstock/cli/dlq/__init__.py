"""`penstock dlq`: one file for each verb."""

import click

from penstock.cli.frame.command import LazyNoun


@click.group(
    cls=LazyNoun,
    room=__name__,
    verbs={
        "list": "List topics with dead letters, or the dead letters of one.",
        "peek": "Print dead letters.",
        "redrive": "Send dead letters back to their origin, each exactly once.",
        "purge": "Delete dead letters.",
    },
)
def dlq() -> None:
    """List, peek at, redrive and purge dead letters: records that were given up on.

    Headers say why, and where a record came from: those of delay and retry topics, of Spark
    pipelines, and of Kafka's share groups (KIP-1191).
    """
