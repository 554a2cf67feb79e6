"""`penstock group`: consumer groups, their lag, and resets of their offsets."""

from functools import partial
from typing import TypeAlias

import click

from penstock.cli.frame.command import Noun
from penstock.cli.group_rebalances import print_rebalances, read_rebalances
from penstock.cli.group_view import (
    PartitionLag,
    lag_row,
    partition_lags,
    print_description,
    print_moves,
)
from penstock.cli.output import FORMAT, print_json, print_table
from penstock.cli.position import Found, Position, PositionType, find_offsets, warn_of_nearest
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.groups import (
    GroupDescription,
    alter_committed,
    committed_offsets,
    delete_group,
    describe_group,
    list_groups,
)
from penstock.client.listing import IsolationLevel
from penstock.errors import ConfigError, ErrorCode
from penstock.types import Offset, TopicPartition

NAME = click.argument("name", metavar="GROUP")
Moves: TypeAlias = list[tuple[TopicPartition, Offset | None, Found]]
"""Partitions with their offsets before, if any, and after."""


@click.group(cls=Noun)
def group() -> None:
    """List, describe, reset and delete consumer groups."""


@group.command("list", example="penstock group list")
@FORMAT
@remote
def list_(remote: Remote, output: str) -> None:
    """List groups by name."""
    found = remote.run(list_groups)
    if output == "json":
        for each in found:
            print_json(each)
        return
    print_table(
        ("NAME", "STATE", "TYPE", "PROTOCOL"),
        [(each.id, each.state, each.type, each.protocol_type or "-") for each in found],
    )


@group.command("describe", example="penstock group describe billing")
@NAME
@click.option(
    "--rebalances",
    "wants_rebalances",
    is_flag=True,
    help="Show its last rebalances instead, with reason and duration.",
)
@FORMAT
@remote
def describe(remote: Remote, name: str, wants_rebalances: bool, output: str) -> None:
    """Show a group's members, offsets and lag in records; or its last rebalances."""
    if wants_rebalances:
        history = read_rebalances(remote, name)
        if output == "json":
            print_json(history)
        else:
            print_rebalances(history)
        return

    async def looked_up(client: Client) -> tuple[GroupDescription, list[PartitionLag]]:
        described = await describe_group(client, name)
        assigned = {each for member in described.members for each in member.partitions}
        return described, await partition_lags(client, name, assigned)

    described, rows = remote.run(looked_up)
    if output == "json":
        print_json({"group": described, "offsets": [lag_row(each) for each in rows]})
    else:
        print_description(described, rows)


@group.command("reset", example="penstock group reset billing --to beginning --topic events")
@NAME
@click.option(
    "--to",
    "position",
    type=PositionType(),
    required=True,
    help="beginning, end, N, +N from the beginning, -N from the end, or @TIME.",
)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    help="Only this topic; repeatable. [all with offsets of the group]",
)
@click.option("--execute", is_flag=True, help="Reset; otherwise only show the new offsets.")
@FORMAT
@remote
def reset(
    remote: Remote,
    name: str,
    position: Position,
    topics: tuple[str, ...],
    execute: bool,
    output: str,
) -> None:
    """Reset the offsets of a group without members. Without --execute only show the new offsets,
    and warn if the group has members.

    An offset outside a partition's range becomes the nearest one inside, with a warning.
    """
    live_state = None

    async def moved(client: Client) -> Moves:
        nonlocal live_state
        before = {each: at.offset for each, at in (await committed_offsets(client, name)).items()}
        partitions = sorted(each for each in before if not topics)
        if not partitions and not topics:
            raise ConfigError(f"group {name} has no offsets: name the topics with --topic")
        for topic in topics:
            known = await client.retrying(partial(client.topic, topic))
            partitions += [TopicPartition(topic, index) for index in sorted(known.partitions)]
        found = await find_offsets(client, partitions, position, IsolationLevel.READ_UNCOMMITTED)
        if execute and found:
            await commit(client, name, {each: at.offset for each, at in found.items()})
        if not execute:
            live_state = await state_with_members(client, name)
        return [(each, before.get(each), found[each]) for each in partitions]

    found = remote.run(moved)
    warn_of_nearest({tp: after for tp, _, after in found})
    if live_state is not None:
        click.echo(
            f"penstock: warning: group {name} is {live_state}: --execute would fail; stop its "
            "consumers first",
            err=True,
        )
    moves = [(tp, before, after.offset) for tp, before, after in found]
    if output == "json":
        for tp, before, after in moves:
            print_json(
                {
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "before": before,
                    "after": after,
                    "executed": execute,
                }
            )
        return
    print_moves(moves)
    if not execute:
        click.echo("nothing was changed; repeat with --execute", err=True)


async def state_with_members(client: Client, group: str) -> str | None:
    """The state of a group whose offsets cannot be reset now; None if they can."""
    try:
        state = (await describe_group(client, group)).state
    except BrokerRefused as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise
    return None if state in {"Empty", "Dead"} else state


async def commit(client: Client, group: str, offsets: dict[TopicPartition, Offset]) -> None:
    """Fails while the group has members: they would commit their own positions again."""
    try:
        await alter_committed(client, group, offsets)
    except BrokerRefused as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        state = (await describe_group(client, group)).state
        raise BrokerRefused(
            ErrorCode.NON_EMPTY_GROUP,
            f"group {group}",
            f"it is {state}: stop its consumers first",
        ) from None


@group.command("delete", example="penstock group delete billing")
@NAME
@FORMAT
@remote
def delete(remote: Remote, name: str, output: str) -> None:
    """Delete a group without members, with its offsets."""
    remote.run(lambda client: delete_group(client, name))
    if output == "json":
        print_json({"name": name, "deleted": True})
    else:
        click.echo(f"deleted {name}")
