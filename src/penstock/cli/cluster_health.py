"""`penstock cluster info` and `penstock cluster health`."""

from collections.abc import Sequence
from typing import Any

import click

from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Verb
from penstock.cli.output import FORMAT, print_json, print_state
from penstock.cli.remote import Remote, remote
from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.features import ClusterFeatures, describe_features
from penstock.client.metadata import NO_LEADER, ClusterMetadata, TopicMetadata
from penstock.counted import counted


@click.command("info", cls=Verb, example="penstock cluster info")
@FORMAT
@remote
def info(remote: Remote, output: str) -> None:
    """Show a cluster: its id, controller, brokers, topics and features."""

    async def work(client: Client) -> dict[str, Any]:
        return info_row(
            await describe_cluster(client),
            await list_topics(client),
            await describe_features(client),
        )

    row = remote.run(work)
    if output == "json":
        print_json(row)
        return
    click.echo(f"cluster {row['id']}, controller broker {row['controller']}")
    click.echo(f"brokers {', '.join(each['address'] for each in row['brokers'])}")
    click.echo(
        f"{counted(row['topic_count'], 'topic')}, {row['internal_topic_count']} of them internal; "
        f"{counted(row['partition_count'], 'partition')}, "
        f"{counted(row['replica_count'], 'replica')}"
    )
    levels = ", ".join(f"{name} {level}" for name, level in row["features"].items()) or "none"
    click.echo(f"features: {levels}")


def info_row(
    cluster: ClusterMetadata, topics: Sequence[TopicMetadata], features: ClusterFeatures
) -> dict[str, Any]:
    partitions = [each for topic in topics for each in topic.partitions.values()]
    return {
        "id": cluster.id,
        "controller": cluster.controller if cluster.controller in cluster.brokers else None,
        "brokers": [
            {"id": each.id, "address": str(each.address), "rack": each.rack}
            for each in cluster.brokers.values()
        ],
        "topic_count": len(topics),
        "internal_topic_count": sum(each.is_internal for each in topics),
        "partition_count": len(partitions),
        "replica_count": sum(len(each.replicas) for each in partitions),
        "features": {each.name: each.level for each in features.features.values()},
    }


@click.command("health", cls=Verb, example="penstock cluster health")
@FORMAT
@remote
def health(remote: Remote, output: str) -> None:
    """Show whether all partitions have leaders and replicas in sync. The exit code is 1 if not.

    `penstock doctor` looks further, and says what to do.
    """

    async def work(client: Client) -> dict[str, Any]:
        return health_row(await describe_cluster(client), await list_topics(client))

    row = remote.run(work)
    if output == "json":
        print_json(row)
    else:
        print_state("healthy" if row["healthy"] else "unhealthy", good=row["healthy"])
        controller = "none" if row["controller"] is None else f"broker {row['controller']}"
        click.echo(f"controller {controller}; brokers up {spelled(row['brokers'])}")
        click.echo(f"brokers down {spelled(row['down'])}")
        click.echo(f"partitions without leader {spelled(row['leaderless'])}")
        click.echo(f"partitions under-replicated {spelled(row['under_replicated'])}")
    if not row["healthy"]:
        raise SystemExit(ExitCode.FAILED)


def spelled(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "-"


def health_row(cluster: ClusterMetadata, topics: Sequence[TopicMetadata]) -> dict[str, Any]:
    named = [
        (f"{topic.name}-{each.index}", each)
        for topic in topics
        for each in topic.partitions.values()
    ]
    leaderless = [name for name, each in named if each.leader == NO_LEADER]
    late = [name for name, each in named if len(each.isr) < len(each.replicas)]
    has_controller = cluster.controller in cluster.brokers
    return {
        "healthy": has_controller and not leaderless and not late,
        "controller": cluster.controller if has_controller else None,
        "brokers": sorted(cluster.brokers),
        "down": sorted(
            {broker for _, each in named for broker in each.replicas} - set(cluster.brokers)
        ),
        "leaderless": leaderless,
        "under_replicated": late,
    }
