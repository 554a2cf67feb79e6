"""What the group commands show: members, and the lag of each partition."""

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
class PartitionLag:
    """A group's committed offset in a partition, and the end of the log."""

    topic_partition: TopicPartition
    offset: Offset | None
    """None: a member owns the partition, but the group has no offset in it."""
    end: Offset
    metadata: str | None

    @property
    def lag(self) -> int | None:
        """Records after the offset; 0 if the offset is past the end."""
        return None if self.offset is None else max(self.end - self.offset, 0)


async def partition_lags(
    client: Client, group: str, assigned: Collection[TopicPartition]
) -> list[PartitionLag]:
    """All partitions with a committed offset of the group, or owned by a member."""
    committed = await committed_offsets(client, group)
    ends = await list_offsets(client, dict.fromkeys({*committed, *assigned}, LATEST))
    return [
        PartitionLag(
            tp,
            committed[tp].offset if tp in committed else None,
            end.offset,
            committed[tp].metadata if tp in committed else None,
        )
        for tp, end in sorted(ends.items())
    ]


def lag_row(each: PartitionLag) -> dict[str, object]:
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "offset": each.offset,
        "end": each.end,
        "lag": each.lag,
        "metadata": each.metadata,
    }


def print_description(group: GroupDescription, rows: Sequence[PartitionLag]) -> None:
    strategy = f", assignor {group.strategy}" if group.strategy else ""
    lag = sum(each.lag or 0 for each in rows)
    epochs = "" if group.epoch is None else f", epoch {group.epoch}"
    if group.assignment_epoch != group.epoch:
        epochs += f" (assigned up to {group.assignment_epoch})"
    count = len(group.members)
    click.echo(f"{group.id}: {group.state}, {count} members{strategy}{epochs}, lag {lag}")
    holders = {tp: member.client_id for member in group.members for tp in member.partitions}
    if rows:
        click.echo()
        print_table(
            ("TOPIC", "PARTITION", "OFFSET", "END", "LAG", "HELD BY"),
            [
                (
                    *each.topic_partition,
                    "-" if each.offset is None else each.offset,
                    each.end,
                    "-" if each.lag is None else each.lag,
                    holders.get(each.topic_partition, "-"),
                )
                for each in rows
            ],
        )
    if group.members:
        click.echo()
        print_members(group.members)


def print_members(members: Sequence[MemberDescription]) -> None:
    """With the consumer protocol, also each member's epoch and pending changes."""
    columns: tuple[str, ...] = ("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
    rows: list[tuple[object, ...]] = [
        (each.id, each.instance_id or "-", each.client_id, each.host, len(each.partitions))
        for each in members
    ]
    if any(each.place for each in members):
        columns += ("EPOCH", "GETS", "GIVES UP")
        rows = [(*row, *_pending(each)) for row, each in zip(rows, members, strict=True)]
    print_table(columns, rows)


def _pending(member: MemberDescription) -> tuple[object, str, str]:
    if member.place is None:
        return "-", "-", "-"
    held, target = set(member.partitions), set(member.place.target)
    return member.place.epoch, _named(target - held), _named(held - target)


def _named(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(f"{topic}-{index}" for topic, index in sorted(partitions)) or "-"


def print_moves(moves: Sequence[tuple[TopicPartition, Offset | None, Offset]]) -> None:
    print_table(
        ("TOPIC", "PARTITION", "BEFORE", "AFTER"),
        [(*tp, "-" if before is None else before, after) for tp, before, after in moves],
    )
