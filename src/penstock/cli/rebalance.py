"""`penstock cluster rebalance`: spreads existing partitions evenly over the brokers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click
import msgspec

from penstock.cli.failure import SomeFailed
from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import note
from penstock.cli.output import FORMAT, print_json, print_table
from penstock.cli.remote import Remote, remote
from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.elections import elect_preferred
from penstock.client.metadata import ClusterMetadata
from penstock.client.reassignment import ongoing_reassignments, reassign
from penstock.client.replication_throttle import (
    apply,
    before,
    throttle,
    throttled_replicas,
    together,
)
from penstock.controller.balance import Load, PlannedMove, balanced, loads
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.types import BrokerId, TopicPartition

POLL_S = 0.2


Wait: TypeAlias = Callable[[Client, Collection[TopicPartition]], Awaitable[None]]
"""Waits until none of the partitions is being moved."""


class RebalancePlan(NamedTuple):
    """The moves of a plan, and the load of each broker before and after."""

    moves: list[PlannedMove]
    before: dict[int, Load]
    after: dict[int, Load]
    live: tuple[BrokerId, ...]

    @property
    def copied(self) -> int:
        return sum(each.copied for each in self.moves)


@click.command("rebalance", cls=Verb, example="penstock cluster rebalance")
@click.option("--topic", "topics", multiple=True, help="Only this topic; repeatable.")
@click.option(
    "--without",
    type=int,
    multiple=True,
    metavar="BROKER",
    help="Move everything away from this broker; repeatable.",
)
@click.option("--execute", is_flag=True, help="Execute the plan and wait until it is done.")
@click.option(
    "--throttle",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Bytes per second that each broker may use for the moves.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan in the format of kafka-reassign-partitions.",
)
@FORMAT
@remote
def rebalance(
    remote: Remote,
    topics: tuple[str, ...],
    without: tuple[int, ...],
    execute: bool,
    throttle: int | None,
    save: Path | None,
    output: str,
) -> None:
    """Spread replicas and leaders evenly, while copying as few replicas as possible.

    A new broker gets no existing partition by itself: this command gives it its share. Without
    --execute it only shows the plan.
    """
    if throttle is not None and not execute:
        raise click.UsageError("--throttle needs --execute")

    async def work(client: Client) -> None:
        plan = await planned(client, topics, without)
        show(plan, output)
        if save is not None:
            write(save, plan.moves)
        if execute and plan.moves:
            await execute_plan(client, plan, throttle)

    remote.run(work)


async def planned(client: Client, only: Collection[str], without: Collection[int]) -> RebalancePlan:
    cluster = await describe_cluster(client)
    if unknown := sorted(set(without) - set(cluster.brokers)):
        known = ", ".join(map(str, sorted(cluster.brokers)))
        raise ConfigError(f"--without {unknown[0]}: the live brokers are {known}")
    if moving := await ongoing_reassignments(client):
        raise ConfigError(
            f"{min(moving)} and {counted(len(moving) - 1, 'other partition')} are being moved: "
            "wait for them or cancel them (kafka-reassign-partitions --cancel)"
            if len(moving) > 1
            else f"{min(moving)} is being moved: wait for it or cancel it"
        )
    replicas = await replicas_of(client, only)
    moves = balanced(replicas, racks_of(cluster), without=without, hosts=hosts_of(cluster))
    after = {**replicas, **{each.topic_partition: each.after for each in moves}}
    return RebalancePlan(
        moves,
        loads(replicas.values(), cluster.brokers),
        loads(after.values(), cluster.brokers),
        tuple(sorted(cluster.brokers)),
    )


def racks_of(cluster: ClusterMetadata) -> dict[BrokerId, str | None]:
    return {broker.id: broker.rack for broker in cluster.brokers.values()}


def hosts_of(cluster: ClusterMetadata) -> dict[BrokerId, str]:
    return {broker.id: broker.address.host for broker in cluster.brokers.values()}


async def replicas_of(
    client: Client, only: Collection[str]
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """The replicas of all partitions, or of those of some topics."""
    found = await list_topics(client)
    if missing := sorted(set(only) - {each.name for each in found}):
        raise ConfigError(f"--topic {missing[0]}: no such topic")
    return {
        TopicPartition(topic.name, index): part.replicas
        for topic in found
        if not only or topic.name in only
        for index, part in topic.partitions.items()
    }


def show(plan: RebalancePlan, output: str) -> None:
    if output == "json":
        print_json(described(plan))
        return
    columns = ("BROKER", "REPLICAS", "AFTER", "LEADERS", "AFTER")
    print_table(columns, (row(each, plan) for each in plan.after))
    if not plan.moves:
        click.echo("nothing to move")
        return
    click.echo()
    print_table(
        ("PARTITION", "REPLICAS", "AFTER", ""),
        (
            (
                each.topic_partition,
                spelled(each.before),
                spelled(each.after),
                kind(each),
            )
            for each in plan.moves
        ),
    )
    replicas = counted(plan.copied, "replica")
    click.echo(f"{replicas} to copy, {counted(len(plan.moves), 'partition')} to change")


def kind(move: PlannedMove) -> str:
    """A word for a move that copies nothing."""
    if move.copied:
        return ""
    return "removed" if len(move.after) < len(move.before) else "order"


def row(broker: int, plan: RebalancePlan) -> Sequence[object]:
    before, after = plan.before[broker], plan.after[broker]
    return broker, before.replicas, after.replicas, before.leaders, after.leaders


def described(plan: RebalancePlan) -> dict[str, Any]:
    return {
        "brokers": [
            {
                "broker": broker,
                "replicas": plan.before[broker].replicas,
                "replicas_after": plan.after[broker].replicas,
                "leaders": plan.before[broker].leaders,
                "leaders_after": plan.after[broker].leaders,
            }
            for broker in plan.after
        ],
        "copied": plan.copied,
        "moves": [
            {
                "topic": each.topic_partition.topic,
                "partition": each.topic_partition.partition,
                "before": each.before,
                "after": each.after,
            }
            for each in plan.moves
        ],
    }


def write(path: Path, moves: Iterable[PlannedMove]) -> None:
    """Write a plan file in the format of kafka-reassign-partitions."""
    partitions = [
        {
            "topic": each.topic_partition.topic,
            "partition": each.topic_partition.partition,
            "replicas": each.after,
        }
        for each in moves
    ]
    try:
        path.write_bytes(msgspec.json.encode({"version": 1, "partitions": partitions}) + b"\n")
    except OSError as error:
        raise ConfigError(f"--save {path}: {error.strerror}") from None


def spelled(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


async def execute_plan(
    client: Client, plan: RebalancePlan, throttle: int | None, *, wait: Wait | None = None
) -> None:
    """Start the moves, wait for them, and elect the new preferred leaders."""
    targets = {each.topic_partition: each.after for each in plan.moves}
    async with throttled(client, plan, throttle):
        errors = await reassign(client, targets)
        await (wait or wait_until_moved)(client, targets.keys())
    led = [each.topic_partition for each in plan.moves if each.before[0] != each.after[0]]
    if led:
        errors += await elect_preferred(client, led)
    if errors:
        raise SomeFailed(errors, len(plan.moves))
    note(f"done: {counted(len(targets), 'partition')}")


async def wait_until_moved(client: Client, partitions: Collection[TopicPartition]) -> None:
    """Wait until none of these is being moved, and print the progress."""
    shown = None
    while left := set(await ongoing_reassignments(client)) & set(partitions):
        done = len(partitions) - len(left)
        if done != shown:
            note(f"moved {done} of {counted(len(partitions), 'partition')}")
            shown = done
        await asyncio.sleep(POLL_S)


@asynccontextmanager
async def throttled(client: Client, plan: RebalancePlan, rate: int | None) -> AsyncIterator[None]:
    """Set the throttles of kafka-reassign-partitions during the moves, and restore the
    former values afterwards.
    """
    if rate is None:
        yield
        return
    limits = throttle(limited_replicas(plan.moves), plan.live, rate)
    former = await before(client, limits)
    try:
        await apply(client, together(limits, former))
        yield
    finally:
        await apply(client, former)


def limited_replicas(moves: Iterable[PlannedMove]) -> dict[str, dict[str, str]]:
    """The throttled replicas of moves that copy something."""
    copied = (
        (each, [broker for broker in each.after if broker not in each.before]) for each in moves
    )
    return throttled_replicas(
        (each.topic_partition, each.before, added) for each, added in copied if added
    )
