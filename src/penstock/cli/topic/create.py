"""`penstock topic create`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.output import FORMAT, print_json
from penstock.cli.ranges import PARTITIONS, REPLICAS
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import NAMES, VALIDATE_ONLY, for_each
from penstock.cli.topic_configs import CONFIGS, pairs
from penstock.client.admin import BROKER_DEFAULT, NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.config.value import INT_MAX
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.types import BrokerId, uuid_text


def assignment(text: str) -> list[list[BrokerId]]:
    """`0:1,1:2` puts partition 0 on brokers 0 and 1, partition 1 on 1 and 2."""
    try:
        found = [[BrokerId(int(each)) for each in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"--replica-assignment {text}: must be brokers by partition, such as 0:1,1:2"
        ) from None
    if any(not 0 <= each <= INT_MAX for part in found for each in part):
        raise ConfigError(f"--replica-assignment {text}: a broker's id is 0 to {INT_MAX}")
    if len({len(each) for each in found}) > 1:
        raise ConfigError(f"--replica-assignment {text}: partitions have unequal replicas")
    if any(len(set(each)) < len(each) for each in found):
        raise ConfigError(f"--replica-assignment {text}: a broker is named twice")
    return found


@click.command(
    "create",
    cls=Verb,
    example=[
        "penstock topic create orders --partitions 3 --config retention.ms=86400000",
        "penstock topic create payments --if-not-exists --replica-assignment 1,1,1",
    ],
)
@NAMES
@click.option(
    "-p", "--partitions", type=PARTITIONS, help="Number of partitions. [the broker's default]"
)
@click.option(
    "-r",
    "--replicas",
    "--replication-factor",
    type=REPLICAS,
    help="Replication factor. [the broker's default]",
)
@click.option(
    "--replica-assignment",
    metavar="B:B,...",
    help="Brokers of each partition, the preferred leader first: 0:1,1:2,2:0.",
)
@CONFIGS
@click.option("--if-not-exists", is_flag=True, help="Leave an existing topic as it is.")
@VALIDATE_ONLY
@FORMAT
@remote
def create(
    remote: Remote,
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    output: str,
) -> None:
    """Create topics."""
    settings = pairs(configs)
    if replica_assignment is not None and (partitions or replicas):
        raise click.UsageError("--replica-assignment excludes --partitions and --replicas")
    placed = [] if replica_assignment is None else assignment(replica_assignment)

    async def make(client: Client, name: str) -> None:
        new = NewTopic(
            name=name,
            partitions=partitions or BROKER_DEFAULT,
            replication_factor=replicas or BROKER_DEFAULT,
            assignments=placed,
            configs=settings,
        )
        try:
            made = await create_topic(client, new, validate_only=validate_only)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS or not if_not_exists:
                raise
            if output == "json":
                print_json({"name": name, "created": False})
            else:
                click.echo(f"{name} exists")
            return
        if output == "json":
            print_json(
                {
                    "name": name,
                    "id": uuid_text(made.id),
                    "partition_count": made.partitions,
                    "replication_factor": made.replication_factor,
                    "created": not validate_only,
                }
            )
        else:
            click.echo(f"{name} can be created" if validate_only else f"created {name}")

    for_each(remote, list(names), make)
