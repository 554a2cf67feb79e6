"""What the group commands show: how far a group has come, partition by partition."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from penstock.cli.output import print_table
from penstock.client.cluster import Client
from penstock.client.groups import DescribedGroup, committed_offsets
from penstock.client.offsets import LATEST, list_offsets
from penstock.types import Offset, TopicPartition


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a group is in a partition, and where that ends."""

    where: TopicPartition
    offset: Offset
    end: Offset
    metadata: str | None

    @property
    def lag(self) -> int:
        """Records that are not read yet; none if the offset is past the end."""
        return max(self.end - self.offset, 0)


async def progress(client: Client, group: str) -> list[Progress]:
    committed = await committed_offsets(client, group)
    ends = await list_offsets(client, dict.fromkeys(committed, LATEST))
    return [
        Progress(where, committed[where].offset, ends[where].offset, committed[where].metadata)
        for where in sorted(committed)
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


def print_description(group: DescribedGroup, rows: Sequence[Progress]) -> None:
    strategy = f", sharing by {group.strategy}" if group.strategy else ""
    lag = sum(each.lag for each in rows)
    click.echo(f"{group.id}: {group.state}, {len(group.members)} members{strategy}, lag {lag}")
    holders = {where: member.client_id for member in group.members for where in member.partitions}
    if rows:
        click.echo()
        print_table(
            ("TOPIC", "PARTITION", "OFFSET", "END", "LAG", "HELD BY"),
            [
                (*each.where, each.offset, each.end, each.lag, holders.get(each.where, "-"))
                for each in rows
            ],
        )
    if group.members:
        click.echo()
        print_table(
            ("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"),
            [
                (each.id, each.instance_id or "-", each.client_id, each.host, len(each.partitions))
                for each in group.members
            ],
        )


def print_moves(moves: Sequence[tuple[TopicPartition, Offset | None, Offset]]) -> None:
    print_table(
        ("TOPIC", "PARTITION", "BEFORE", "AFTER"),
        [(*where, "-" if before is None else before, after) for where, before, after in moves],
    )
