"""`penstock topic add-partitions`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.output import FORMAT, print_json
from penstock.cli.ranges import PARTITIONS
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import NAMES, REGEX, VALIDATE_ONLY, chosen, for_each
from penstock.cli.topic.create import assignment
from penstock.client.admin import create_partitions, describe_topics
from penstock.client.cluster import Client
from penstock.counted import counted
from penstock.errors import ConfigError


@click.command("add-partitions", cls=Verb, example="penstock topic add-partitions events --num 2")
@NAMES
@REGEX
@click.option("-n", "--num", type=PARTITIONS, required=True, help="How many to add.")
@click.option(
    "--replica-assignment",
    metavar="B:B,...",
    help="Brokers of each new partition, the preferred leader first.",
)
@VALIDATE_ONLY
@FORMAT
@remote
def add_partitions(
    remote: Remote,
    names: tuple[str, ...],
    regex: bool,
    num: int,
    replica_assignment: str | None,
    validate_only: bool,
    output: str,
) -> None:
    """Add partitions to topics. New records of a key may then go to another partition than its
    earlier ones.
    """
    placed = [] if replica_assignment is None else assignment(replica_assignment)
    if placed and len(placed) != num:
        raise ConfigError(
            f"--replica-assignment names {counted(len(placed), 'partition')}, --num {num}"
        )

    async def add(client: Client, name: str) -> None:
        (found,) = await describe_topics(client, [name])
        before = len(found.partitions)
        await create_partitions(
            client, name, before + num, assignments=placed, validate_only=validate_only
        )
        if output == "json":
            print_json(
                {"name": name, "before": before, "after": before + num, "added": not validate_only}
            )
        else:
            can = "can have" if validate_only else "has"
            click.echo(f"{name} {can} {before + num} partitions instead of {before}")

    for_each(remote, chosen(remote, names, regex=regex), add)
