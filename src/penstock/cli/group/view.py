"""Views of the group commands: members, and the lag of each partition."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from penstock.cli.output import Column, plain, print_rows, print_table
from penstock.client.cluster import Client
from penstock.client.group_description import GroupDescription, MemberDescription
from penstock.client.groups import committed_offsets
from penstock.client.offsets import known_ends
from penstock.client.record_times import record_times
from penstock.client.share_groups import ShareOffset
from penstock.counted import counted
from penstock.types import Offset, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A group's committed offset in a partition, and the end of the log."""

    topic_partition: TopicPartition
    offset: Offset | None
    """None: a member owns the partition, but the group has no committed offset in it."""
    end: Offset | None
    """None: the partition has no leader now, or its topic was deleted."""
    metadata: str | None
    unread_since_ms: int | None = None
    """The timestamp of the first unread record."""

    @property
    def lag(self) -> int | None:
        """Records after the offset; 0 if the offset is past the end."""
        if self.offset is None or self.end is None:
            return None
        return max(self.end - self.offset, 0)

    def lag_seconds(self, now_ms: int) -> float | None:
        """The age of the first unread record; 0 without lag."""
        if self.lag == 0:
            return 0.0
        if self.unread_since_ms is None or self.unread_since_ms < 0:
            return None
        return max(now_ms - self.unread_since_ms, 0) / 1000


async def partition_lags(
    client: Client, group: str, assigned: Collection[TopicPartition]
) -> list[PartitionLag]:
    """The lag of all partitions with a committed offset of the group, or owned by a member."""
    committed = await committed_offsets(client, group)
    wanted = {*committed, *assigned}
    ends = await known_ends(client, wanted)
    behind = {tp: at.offset for tp, at in committed.items() if at.offset < ends.get(tp, 0)}
    times = await record_times(client, behind)
    return [
        PartitionLag(
            tp,
            committed[tp].offset if tp in committed else None,
            ends.get(tp),
            committed[tp].metadata if tp in committed else None,
            times.get(tp),
        )
        for tp in sorted(wanted)
    ]


def lag_row(
    each: PartitionLag, holders: Mapping[TopicPartition, MemberDescription], now_ms: int
) -> dict[str, Any]:
    holder = holders.get(each.topic_partition)
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "offset": each.offset,
        "end": each.end,
        "lag": each.lag,
        "lag_seconds": each.lag_seconds(now_ms),
        "metadata": each.metadata,
        "member": None if holder is None else holder.id,
        "client": None if holder is None else holder.client_id,
        "host": None if holder is None else holder.host,
    }


def share_row(
    topic_partition: TopicPartition,
    shared: ShareOffset,
    end: int | None,
    members: Sequence[MemberDescription],
) -> dict[str, Any]:
    """The row of a share group's partition, which several members may read."""
    readers = [each for each in members if topic_partition in each.partitions]
    return {
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "offset": shared.start if shared.start >= 0 else None,
        "end": end,
        "lag": shared.lag if shared.lag >= 0 else None,
        "lag_seconds": None,
        "metadata": None,
        "member": ",".join(each.id for each in readers) or None,
        "client": ",".join(sorted({each.client_id for each in readers})) or None,
        "host": ",".join(sorted({each.host for each in readers})) or None,
    }


def held_by(members: Iterable[MemberDescription]) -> dict[TopicPartition, MemberDescription]:
    return {tp: member for member in members for tp in member.partitions}


def summary_row(group: GroupDescription, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A group in one row: its total lag, and the longest wait."""
    waits = [each["lag_seconds"] for each in rows if each["lag_seconds"] is not None]
    return {
        "id": group.id,
        "state": group.state,
        "members": len(group.members),
        "topics": sorted({each["topic"] for each in rows}),
        "partitions": len(rows),
        "lag": sum(each["lag"] or 0 for each in rows),
        "lag_seconds": max(waits, default=None),
    }


SUMMARY = (
    Column("GROUP", "id"),
    Column("STATE", "state"),
    Column("MEMBERS", "members"),
    Column("PARTITIONS", "partitions"),
    Column("LAG", "lag"),
    Column("SECONDS", "lag_seconds"),
    Column("TOPICS", "topics", is_wide=True),
)
LAGS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("OFFSET", "offset"),
    Column("END", "end"),
    Column("LAG", "lag"),
    Column("SECONDS", "lag_seconds"),
    Column("HELD BY", "client"),
    Column("HOST", "host"),
    Column("MEMBER", "member", is_wide=True),
    Column("METADATA", "metadata", is_wide=True),
)


def print_description(group: GroupDescription, rows: Sequence[Mapping[str, Any]]) -> None:
    strategy = f", assignor {group.strategy}" if group.strategy else ""
    kind = f", {group.type} group" if group.type in {"share", "streams"} else ""
    total = summary_row(group, rows)
    epochs = "" if group.epoch is None else f", epoch {group.epoch}"
    if group.assignment_epoch != group.epoch:
        epochs += f" (assigned up to {group.assignment_epoch})"
    seconds = f" ({plain(total['lag_seconds'])} s)" if total["lag_seconds"] else ""
    click.echo(
        f"{group.id}: {group.state}{kind}, {counted(len(group.members), 'member')}"
        f"{strategy}{epochs}, "
        f"lag {total['lag']}{seconds}"
    )
    if rows:
        click.echo()
        print_rows(rows, LAGS)
    if group.members:
        click.echo()
        print_members(group.members)


def print_members(members: Sequence[MemberDescription]) -> None:
    """Print members; with the consumer protocol, also their epochs and pending changes."""
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
