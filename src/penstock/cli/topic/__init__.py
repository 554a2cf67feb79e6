"""`penstock topic`: one file for each verb."""

import click

from penstock.cli.frame.command import LazyNoun


@click.group(
    cls=LazyNoun,
    room=__name__,
    verbs={
        "list": "List topics; on request with size, records and lag.",
        "describe": "Show settings, leaders, replicas and offsets of topics.",
        "create": "Create topics.",
        "alter": "Change settings of topics, or the number of partitions.",
        "add-partitions": "Add partitions to topics.",
        "delete": "Delete topics with all their records.",
        "empty": "Delete all records of topics.",
        "trim": "Delete the records before a position.",
        "clone": "Create a topic like another one; on request with its records.",
    },
)
def topic() -> None:
    """List, describe, create, alter, empty, trim, clone and delete topics."""
