"""`penstock delay`: one file for each verb."""

import click

from penstock.cli.frame.command import LazyNoun


@click.group(
    cls=LazyNoun,
    room=__name__,
    verbs={
        "serve": "Run the delay service, beside those of other machines.",
        "list": "List delay and retry topics, or the records of one that wait.",
        "peek": "Print records that wait, those due first.",
        "cancel": "Cancel records that wait.",
        "stats": "Count the records that wait, and say when they are due.",
    },
)
def delay() -> None:
    """Deliver records when they are due; list, peek at and cancel those that wait.

    A topic delays records if penstock.delay.to is set, and retries them if penstock.retry.to is.
    """
