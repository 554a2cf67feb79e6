"""What the group commands show: how far a group has come, partition by partition."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import click

from penstock.cli.output import print_table
from penstock.client.cluster import Client
from penstock.client.groups import GroupDescription, MemberDescription, committed_offsets
from penstock.client.listing import LATEST
from penstock.client.offsets import list_offsets
from penstock.types import Offset, TopicPartition


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a group is in a partition, and where that ends."""

    where: TopicPartition
    offset: Offset | None
    """None: a member holds the partition, and has not committed anything in it."""
    end: Offset
    metadata: str | None

    @property
    def lag(self) -> int | None:
        """Records that are not read yet; none if the offset is past the end."""
        return None if self.offset is None else max(self.end - self.offset, 0)


async def progress(
    client: Client, group: str, assigned: Collection[TopicPartition]
) -> list[Progress]:
    """Every partition that the group has committed an offset in, or that a member holds."""
    committed = await committed_offsets(client, group)
    ends = await list_offsets(client, dict.fromkeys({*committed, *assigned}, LATEST))
    return [
        Progress(
            where,
            committed[where].offset if where in committed else None,
            end.offset,
            committed[where].metadata if where in committed else None,
        )
        for where, end in sorted(ends.items())
    ]


def progress_row(each: Progress) -> dict[str, object]:
    return {
        "topic": each.where.topic,
        "partition": each.where.partition,
        "offset": each.offset,
        "end": each.end,
        "lag": each.lag,
        "metadata": each.metadata,
    }


def print_description(group: GroupDescription, rows: Sequence[Progress]) -> None:
    strategy = f", sharing by {group.strategy}" if group.strategy else ""
    lag = sum(each.lag or 0 for each in rows)
    epochs = "" if group.epoch is None else f", epoch {group.epoch}"
    if group.assignment_epoch != group.epoch:
        epochs += f" (assigned up to {group.assignment_epoch})"
    count = len(group.members)
    click.echo(f"{group.id}: {group.state}, {count} members{strategy}{epochs}, lag {lag}")
    holders = {where: member.client_id for member in group.members for where in member.partitions}
    if rows:
        click.echo()
        print_table(
            ("TOPIC", "PARTITION", "OFFSET", "END", "LAG", "HELD BY"),
            [
                (
                    *each.where,
                    "-" if each.offset is None else each.offset,
                    each.end,
                    "-" if each.lag is None else each.lag,
                    holders.get(each.where, "-"),
                )
                for each in rows
            ],
        )
    if group.members:
        click.echo()
        print_members(group.members)


def print_members(members: Sequence[MemberDescription]) -> None:
    """With the consumer protocol, also each one's epoch and what it is on its way to."""
    columns: tuple[str, ...] = ("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
    rows: list[tuple[object, ...]] = [
        (each.id, each.instance_id or "-", each.client_id, each.host, len(each.partitions))
        for each in members
    ]
    if any(each.place for each in members):
        columns += ("EPOCH", "GETS", "GIVES UP")
        rows = [(*row, *_way(each)) for row, each in zip(rows, members, strict=True)]
    print_table(columns, rows)


def _way(member: MemberDescription) -> tuple[object, str, str]:
    if member.place is None:
        return "-", "-", "-"
    held, target = set(member.partitions), set(member.place.target)
    return member.place.epoch, _named(target - held), _named(held - target)


def _named(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(f"{topic}-{index}" for topic, index in sorted(partitions)) or "-"


def print_moves(moves: Sequence[tuple[TopicPartition, Offset | None, Offset]]) -> None:
    print_table(
        ("TOPIC", "PARTITION", "BEFORE", "AFTER"),
        [(*where, "-" if before is None else before, after) for where, before, after in moves],
    )
