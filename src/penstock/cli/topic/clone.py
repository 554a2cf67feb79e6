"""`penstock topic clone`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.frame.progress import ProgressBar
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, print_json
from penstock.cli.remote import Remote, remote
from penstock.client.clone import Cloned, clone_topic
from penstock.client.cluster import Client
from penstock.counted import counted


@click.command(
    "clone",
    cls=Verb,
    example=["penstock topic clone events copy", "penstock topic clone events backup --records"],
)
@click.argument("source", type=TOPIC_NAME)
@click.argument("target")
@click.option(
    "--records",
    "wants_records",
    is_flag=True,
    help="Copy the committed records that are there now: key, value, headers, timestamp and "
    "partition; offsets begin at 0.",
)
@FORMAT
@remote
def clone(remote: Remote, source: str, target: str, wants_records: bool, output: str) -> None:
    """Create TARGET with the partitions, replicas and settings of SOURCE."""

    async def work(client: Client) -> Cloned:
        with ProgressBar("copying", None) as progress:

            def on_progress(done: int, total: int) -> None:
                progress.total = total
                progress.at(done)

            return await clone_topic(
                client, source, target, records=wants_records, on_progress=on_progress
            )

    count, copied = remote.run(work)
    if output == "json":
        print_json({"source": source, "target": target, "partition_count": count, "copied": copied})
    else:
        records = f", {counted(copied, 'record')}" if wants_records else ""
        click.echo(f"created {target} like {source}: {counted(count, 'partition')}{records}")
