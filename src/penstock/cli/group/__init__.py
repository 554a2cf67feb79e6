"""`penstock group`: one file for each verb."""

import click

from penstock.cli.frame.command import LazyNoun


@click.group(
    cls=LazyNoun,
    room=__name__,
    verbs={
        "list": "List groups.",
        "describe": "Show members, offsets and lag of groups, in records and in seconds.",
        "reset": "Move the offsets of groups; shows before and after, and asks for --execute.",
        "delete": "Delete groups without members, with their offsets.",
        "watch": "Show the lag of groups again and again.",
        "rebalances": "Show the last rebalances of a group, with reason and duration.",
        "why": "Say in one sentence why a group lags, and what to do.",
    },
)
def group() -> None:
    """List, describe, watch, reset and delete consumer groups."""
