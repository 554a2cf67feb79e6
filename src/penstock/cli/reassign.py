"""`penstock reassign`: moves partitions between brokers, and shows the progress."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from penstock.cli.failure import SomeFailed
from penstock.cli.frame.command import Noun
from penstock.cli.frame.progress import ProgressBar
from penstock.cli.frame.terminal import confirm, note
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, Column, human_bytes, print_json, print_rows
from penstock.cli.reassign_plan import moves_of, read_plan, with_factor
from penstock.cli.rebalance import (
    RebalancePlan,
    execute_plan,
    hosts_of,
    planned,
    racks_of,
    replicas_of,
    show,
    write,
)
from penstock.cli.remote import Remote, remote
from penstock.client.admin import describe_cluster
from penstock.client.cluster import Client
from penstock.client.reassignment import ongoing_reassignments
from penstock.client.reassignment import reassign as start_reassignment
from penstock.client.reassignment_progress import progress
from penstock.controller.balance import loads
from penstock.controller.broker_locations import known_locations
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.types import BrokerId, TopicPartition

POLL_S = 0.5
PROGRESS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("ADDING", "adding"),
    Column("COPIED", "copied_bytes", human_bytes),
    Column("OF", "total_bytes", human_bytes),
)
THROTTLE = click.option(
    "--throttle",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Bytes per second that each broker may use for the moves.",
)


@click.group("reassign", cls=Noun)
def reassign() -> None:
    """Plan, run, watch and cancel moves of partitions between brokers."""


@reassign.command(
    "plan",
    example=[
        "penstock reassign plan",
        "penstock reassign plan --topic events --replication-factor 1 --save plan.json",
    ],
)
@click.option("-t", "--topic", "topics", multiple=True, type=TOPIC_NAME, help="Only this topic.")
@click.option("--to", "brokers", metavar="B,B,...", help="Only to these brokers.")
@click.option(
    "--replication-factor", type=click.IntRange(1, 100), help="Change the number of replicas."
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan, in the format of kafka-reassign-partitions.",
)
@FORMAT
@remote
def plan(
    remote: Remote,
    topics: tuple[str, ...],
    brokers: str | None,
    replication_factor: int | None,
    save: Path | None,
    output: str,
) -> None:
    """Plan moves that spread partitions evenly, or give them another number of replicas."""
    if brokers is not None and replication_factor is not None:
        raise click.UsageError("--to and --replication-factor exclude each other")

    async def work(client: Client) -> RebalancePlan:
        if replication_factor is None:
            return await planned(client, topics, await others(client, brokers))
        cluster = await describe_cluster(client)
        replicas = await replicas_of(client, topics)
        live = tuple(sorted(cluster.brokers))
        apart = known_locations(racks_of(cluster), hosts_of(cluster))
        moves = with_factor(replicas, live, replication_factor, apart)
        return plan_of(moves, replicas, live)

    found = remote.run(work)
    show(found, output)
    if save is not None:
        write(save, found.moves)


def plan_of(
    moves: list[Any], replicas: Mapping[Any, Any], live: tuple[BrokerId, ...]
) -> RebalancePlan:
    after = {**replicas, **{each.topic_partition: each.after for each in moves}}
    return RebalancePlan(moves, loads(replicas.values(), live), loads(after.values(), live), live)


async def others(client: Client, brokers: str | None) -> list[int]:
    """The live brokers that are not named."""
    if brokers is None:
        return []
    try:
        named = {int(each) for each in brokers.split(",")}
    except ValueError:
        raise ConfigError(f"--to {brokers}: must be the numbers of brokers") from None
    live = (await describe_cluster(client)).brokers
    if unknown := named - set(live):
        raise ConfigError(f"--to {min(unknown)}: the live brokers are {sorted(live)}")
    return [each for each in live if each not in named]


@reassign.command("run", example="penstock reassign run plan.json --throttle 50000000")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@THROTTLE
@FORMAT
@remote
def run(remote: Remote, file: Path, throttle: int | None, output: str) -> None:
    """Carry out a plan from a file, and wait until it is done."""
    targets = read_plan(file)

    async def work(client: Client) -> RebalancePlan:
        replicas = await replicas_of(client, ())
        live = tuple(sorted((await describe_cluster(client)).brokers))
        found = plan_of(moves_of(targets, replicas), replicas, live)
        if found.moves:
            await execute_plan(client, found, throttle, wait=wait_with_progress)
        return found

    found = remote.run(work)
    if output == "json":
        print_json({"file": str(file), "partitions": len(targets), "moved": len(found.moves)})
    elif not found.moves:
        click.echo("nothing to move")


@reassign.command("watch", example="penstock reassign watch")
@click.option("--once", is_flag=True, help="Show the moves, and do not wait.")
@remote
def watch(remote: Remote, once: bool) -> None:
    """Show the moves in progress, and wait until they are done."""

    async def work(client: Client) -> list[dict[str, Any]]:
        moving = await ongoing_reassignments(client)
        rows = await progress(client, moving)
        if moving and not once:
            await wait_with_progress(client, moving.keys())
        return rows

    rows = remote.run(work)
    print_rows(rows, PROGRESS)
    if not rows:
        note("no partition is being moved")


async def wait_with_progress(client: Client, partitions: Collection[TopicPartition]) -> None:
    """Wait until none of these is being moved, with a progress bar on a terminal."""
    total = 0
    bar: ProgressBar | None = None
    while moving := {
        tp: each
        for tp, each in (await ongoing_reassignments(client)).items()
        if tp in set(partitions)
    }:
        rows = await progress(client, moving)
        left = sum(each["total_bytes"] - each["copied_bytes"] for each in rows)
        if bar is None:
            total = max(left, 1)
            bar = ProgressBar(f"moving {counted(len(moving), 'partition')}", total)
        bar.at(max(total - left, 0))
        await asyncio.sleep(POLL_S)
    if bar is not None:
        with bar:
            bar.at(total)


@reassign.command("cancel", example="penstock reassign cancel --yes")
@click.option(
    "-t", "--topic", "topics", multiple=True, type=TOPIC_NAME, help="Only moves of this topic."
)
@FORMAT
@remote
def cancel(remote: Remote, topics: tuple[str, ...], output: str) -> None:
    """Cancel moves in progress; partitions keep the replicas they had."""
    confirm("Cancel the moves of partitions?")

    async def work(client: Client) -> list[TopicPartition]:
        moving = [
            tp for tp in await ongoing_reassignments(client) if not topics or tp.topic in topics
        ]
        errors = await start_reassignment(client, dict.fromkeys(moving)) if moving else []
        if errors:
            raise SomeFailed(errors, len(moving))
        return sorted(moving)

    found = remote.run(work)
    if output == "json":
        print_json({"cancelled": [f"{topic}-{index}" for topic, index in found]})
    else:
        click.echo(f"cancelled {counted(len(found), 'move')}")
