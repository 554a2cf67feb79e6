"""`penstock dlq purge`."""

from typing import Any

import click

from penstock.cli.dlq.view import letter_options
from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import confirm, note
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import print_result
from penstock.cli.remote import Remote, remote
from penstock.cli.selection import chosen_records
from penstock.client.cluster import Client
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.retry.purge import Purged, count_letters
from penstock.retry.purge import purge as purge_letters
from penstock.retry.routes import find_routes


@click.command(
    "purge",
    cls=Verb,
    example=[
        "penstock dlq purge orders-again.dlq --until -30d --dry-run",
        "penstock dlq purge orders-again.dlq --error 'no such customer'",
    ],
)
@click.argument("topic", type=TOPIC_NAME)
@letter_options
@click.option("--dry-run", is_flag=True, help="Only say how many would be purged.")
@remote
def purge(remote: Remote, topic: str, dry_run: bool, **chosen: Any) -> None:
    """Purge dead letters of TOPIC: all, or those that the options choose.

    A purged letter is not listed and not redriven any more. It is deleted when all letters before
    it in its partition are redriven or purged too.
    """
    records = chosen_records(**chosen)
    count = remote.run(lambda client: count_letters(client, topic, records.selection))
    records.warn()
    if dry_run:
        print_result(f"{counted(count, 'letter')} of {topic}", {"topic": topic, "letters": count})
        note("nothing was purged; repeat without --dry-run")
        return
    confirm(f"Purge {counted(count, 'dead letter')} of {topic}?")

    async def work(client: Client) -> Purged:
        if topic in await find_routes(client):
            raise ConfigError(f"{topic} is a delay or retry topic: use `penstock delay cancel`")
        return await purge_letters(client, topic, records.selection)

    done = remote.run(work)
    print_result(
        f"purged {counted(done.purged, 'letter')} of {topic}; "
        f"deleted {counted(done.deleted, 'offset')}",
        {"topic": topic, "purged": done.purged, "deleted": done.deleted},
    )
