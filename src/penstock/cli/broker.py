"""`penstock broker`: the brokers of a cluster."""

from collections import Counter
from typing import Any

import click

from penstock.cli.config_view import ENTRIES, entries
from penstock.cli.frame.command import Noun
from penstock.cli.known_broker import known
from penstock.cli.output import FORMAT, Column, human_bytes, print_json, print_rows
from penstock.cli.rebalance import execute_plan, planned, show
from penstock.cli.remote import Remote, remote
from penstock.client.admin import describe_cluster, list_topics
from penstock.client.broker_versions import broker_versions
from penstock.client.cluster import Client
from penstock.client.configs import ConfigEntry, Resource, describe_configs
from penstock.client.log_dirs import LogDirDescription, describe_log_dirs
from penstock.client.metadata import BrokerNode, ClusterMetadata, TopicMetadata
from penstock.client.route import ToBroker
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError, KafkaError
from penstock.types import BrokerId

ID = click.argument("broker", metavar="BROKER", type=int)
DIRECTORIES = (
    Column("LOG DIRECTORY", "path"),
    Column("STATE", "state"),
    Column("REPLICAS", "replicas"),
    Column("SIZE", "size_bytes", human_bytes),
    Column("FREE", "usable_bytes", human_bytes),
    Column("DISK", "total_bytes", human_bytes),
)


@click.group(cls=Noun)
def broker() -> None:
    """List, describe, configure and decommission brokers."""


@broker.command("list", example="penstock broker list")
@remote
def list_(remote: Remote) -> None:
    """List the brokers that are up, with what they lead and hold."""

    async def work(client: Client) -> list[dict[str, Any]]:
        cluster, topics = await describe_cluster(client), await list_topics(client)
        sizes: dict[BrokerId, int | None] = {}
        for each in cluster.brokers:
            try:
                sizes[each] = size_of(await describe_log_dirs(client, each))
            # the user may be allowed to list brokers, but not to describe log directories
            except KafkaError:
                sizes[each] = None
        return listed(cluster, topics, sizes)

    print_rows(
        remote.run(work),
        (
            Column("ID", "id"),
            Column("ADDRESS", "address"),
            Column("RACK", "rack"),
            Column("CONTROLLER", "controller"),
            Column("LEADERS", "leaders"),
            Column("REPLICAS", "replicas"),
            Column("SIZE", "size_bytes", human_bytes),
            Column("OUT OF SYNC", "out_of_sync", is_wide=True),
        ),
    )


def listed(
    cluster: ClusterMetadata,
    topics: list[TopicMetadata],
    sizes: dict[BrokerId, int | None],
) -> list[dict[str, Any]]:
    leaders, replicas, late = Counter[int](), Counter[int](), Counter[int]()
    for topic in topics:
        for each in topic.partitions.values():
            leaders[each.leader] += 1
            replicas.update(each.replicas)
            late.update(set(each.replicas) - set(each.isr))
    return [
        {
            **node_row(node, cluster),
            "leaders": leaders[node.id],
            "replicas": replicas[node.id],
            "out_of_sync": late[node.id],
            "size_bytes": sizes.get(node.id),
        }
        for node in sorted(cluster.brokers.values(), key=lambda each: each.id)
    ]


def node_row(node: BrokerNode, cluster: ClusterMetadata) -> dict[str, Any]:
    return {
        "id": node.id,
        "address": str(node.address),
        "rack": node.rack,
        "controller": node.id == cluster.controller,
    }


def size_of(found: list[LogDirDescription]) -> int:
    return sum(replica.size for each in found for replica in each.replicas.values())


@broker.command("describe", example="penstock broker describe 1")
@ID
@FORMAT
@remote
def describe(remote: Remote, broker: int, output: str) -> None:
    """Show a broker: address, log directories, API versions."""

    async def work(client: Client) -> dict[str, Any]:
        cluster = await describe_cluster(client)
        node = known(cluster, broker)
        directories = await describe_log_dirs(client, node.id)
        versions = await broker_versions(client, ToBroker(node.id))
        return {
            **node_row(node, cluster),
            "log_dirs": [directory_row(each) for each in directories],
            "apis": len(versions.api_keys),
            "features": {each.name: each.max_version_level for each in versions.finalized_features},
        }

    row = remote.run(work)
    if output == "json":
        print_json(row)
        return
    click.echo(
        f"broker {row['id']} at {row['address']}, rack {row['rack'] or '-'}"
        + ", controller" * row["controller"]
    )
    levels = ", ".join(f"{name} {level}" for name, level in row["features"].items()) or "none"
    click.echo(f"{row['apis']} APIs; features: {levels}")
    click.echo()
    print_rows(row["log_dirs"], DIRECTORIES)


def directory_row(each: LogDirDescription) -> dict[str, Any]:
    return {
        "path": each.path,
        "state": "online" if each.error is None else "offline",
        "replicas": len(each.replicas),
        "size_bytes": size_of([each]),
        "usable_bytes": each.usable_bytes if each.usable_bytes >= 0 else None,
        "total_bytes": each.total_bytes if each.total_bytes >= 0 else None,
    }


@broker.command("config", example=["penstock broker config 1", "penstock broker config 1 --all"])
@ID
@click.option("--all", "is_all", is_flag=True, help="Also settings with default values.")
@remote
def config(remote: Remote, broker: int, is_all: bool) -> None:
    """Show the settings of a broker and their sources; change them by `penstock config set`."""

    async def work(client: Client) -> dict[str, ConfigEntry]:
        known(await describe_cluster(client), broker)
        resource = Resource(ConfigResourceType.BROKER, str(broker))
        return await describe_configs(client, resource, documentation=True)

    print_rows(entries(remote.run(work).values(), is_all=is_all), ENTRIES)


@broker.command(
    "decommission",
    example=["penstock broker decommission 1", "penstock broker decommission 1 --execute"],
)
@ID
@click.option("--execute", is_flag=True, help="Move everything away, and wait until it is done.")
@click.option(
    "--throttle",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Bytes per second that each broker may use for the moves.",
)
@FORMAT
@remote
def decommission(
    remote: Remote, broker: int, execute: bool, throttle: int | None, output: str
) -> None:
    """Move all partitions from a broker to the others, before it is stopped for good.

    Without --execute it only shows the plan.
    """
    if throttle is not None and not execute:
        raise click.UsageError("--throttle needs --execute")

    async def work(client: Client) -> None:
        cluster = await describe_cluster(client)
        known(cluster, broker)
        if len(cluster.brokers) == 1:
            raise ConfigError(f"broker {broker} is the only one: there is nowhere to move to")
        plan = await planned(client, (), [broker])
        show(plan, output)
        if execute and plan.moves:
            await execute_plan(client, plan, throttle)

    remote.run(work)
