"""`penstock group reset`."""

from pathlib import Path
from typing import Any

import click

from penstock.cli.failure import SomeFailed
from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import note, warn
from penstock.cli.group.chosen import GROUPS
from penstock.cli.group.target import TargetType, read_offsets, since
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, Column, print_rows
from penstock.cli.position import warn_of_nearest
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.group_reset import (
    Target,
    commit,
    in_scope,
    offsets_before,
    offsets_of,
    state_with_members,
)
from penstock.client.position import Found
from penstock.errors import KafkaError
from penstock.types import Offset, TopicPartition

COLUMNS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("BEFORE", "before"),
    Column("AFTER", "after"),
)


@click.command(
    "reset",
    cls=Verb,
    example=[
        "penstock group reset billing --to beginning --topic events",
        "penstock group reset billing --shift-by -1 --topic events:0 --execute",
        "penstock group reset billing --by-duration 2h",
    ],
)
@GROUPS
@click.option(
    "--to",
    "target",
    type=TargetType(),
    help="beginning, end, current, N, +N from the beginning, -N from the end, or @TIME.",
)
@click.option(
    "--shift-by", type=int, metavar="N", help="Forward by N records, or back if N is negative."
)
@click.option(
    "--by-duration", metavar="DURATION", help="To the position as of this long ago: 2h, PT2H30M."
)
@click.option(
    "--from-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="To the offsets in lines of topic,partition,offset, or group,topic,partition,offset.",
)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    type=TOPIC_NAME,
    metavar="TOPIC[:PARTITION,...]",
    help="Only this topic, or some of its partitions; repeatable. [all with offsets of the group]",
)
@click.option("--execute", is_flag=True, help="Reset; otherwise only show the new offsets.")
@FORMAT
@remote
def reset(
    remote: Remote,
    names: tuple[str, ...],
    target: Target | None,
    shift_by: int | None,
    by_duration: str | None,
    from_file: Path | None,
    topics: tuple[str, ...],
    execute: bool,
    output: str,
) -> None:
    """Reset the offsets of groups without members. Without --execute only show the new offsets, and
    warn if a group has members.

    An offset outside a partition's range becomes the nearest one inside, with a warning. A share
    group begins at the new offset and forgets all acknowledgements from there on.
    """
    ways = [target, shift_by, by_duration, from_file]
    if sum(each is not None for each in ways) != 1:
        raise click.UsageError("give one of --to, --shift-by, --by-duration, --from-file")
    if shift_by is not None:
        target = Target(shift=shift_by)
    elif by_duration is not None:
        target = since(by_duration)
    targets = dict.fromkeys(names, target)
    if from_file is not None:
        targets = {name: Target(offsets=read_offsets(from_file, name)) for name in names}
    rows: list[dict[str, Any]] = []

    async def planned(client: Client, name: str) -> dict[TopicPartition, Found]:
        target = targets[name]
        assert target is not None
        before = await offsets_before(client, name)
        partitions = await in_scope(client, name, topics, target, before)
        found = await offsets_of(client, partitions, target, before)
        warn_of_nearest(found)
        state = None if execute else await state_with_members(client, name)
        if state is not None:
            warn(f"group {name} is {state}: --execute would fail; stop its consumers first")
        rows.extend(
            moved(name, each, before.get(each), found[each], executed=execute)
            for each in partitions
        )
        return found

    async def all_of_them(client: Client) -> list[KafkaError]:
        # Plan all groups first, so that an error in one leaves none half done.
        plans = {name: await planned(client, name) for name in names}
        errors: list[KafkaError] = []
        for name, found in plans.items():
            if not (execute and found):
                continue
            try:
                await commit(client, name, {each: at.offset for each, at in found.items()})
            except BrokerRefused as error:
                errors.append(error)
                rows[:] = [each for each in rows if each["group"] != name]
        return errors

    errors = remote.run(all_of_them)
    if output == "json" or rows:
        group = (Column("GROUP", "group"),) if len(names) > 1 else ()
        print_rows(rows, (*group, *COLUMNS))
    if not execute and output != "json" and rows:
        note("nothing was changed; repeat with --execute")
    if errors:
        raise SomeFailed(errors, len(names))


def moved(
    group: str, tp: TopicPartition, before: Offset | None, after: Found, *, executed: bool
) -> dict[str, Any]:
    return {
        "group": group,
        "topic": tp.topic,
        "partition": tp.partition,
        "before": before,
        "after": after.offset,
        "executed": executed,
    }
