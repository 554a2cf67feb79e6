"""`kafka-consumer-groups.sh --describe`: offsets with lag, members, or the state of groups."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.group_description import GroupDescription, MemberDescription
from penstock.client.groups import (
    OffsetAndMetadata,
    committed_offsets,
    describe_group,
    find_coordinator,
)
from penstock.client.offsets import known_ends
from penstock.client.route import ToCoordinator
from penstock.errors import ErrorCode
from penstock.kafka_tools.group_scope import named_groups
from penstock.kafka_tools.parser import Arguments
from penstock.types import TopicPartition

REBALANCING = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}


async def describe(args: Arguments, client: Client) -> None:
    for name in await named_groups(args, client):
        group = await _described(client, name)
        _print_condition(group)
        if args.has("members"):
            _print_members(group, verbose=args.has("verbose"))
        elif args.has("state"):
            await _print_state(client, group, verbose=args.has("verbose"))
        else:
            await _print_offsets(client, group, verbose=args.has("verbose"))


async def _described(client: Client, name: str) -> GroupDescription:
    found = await describe_group(client, name)
    if found.state == "Dead":
        raise BrokerRefused(
            ErrorCode.GROUP_ID_NOT_FOUND, f"group {name}", f"Group {name} not found."
        )
    return found


def _print_condition(group: GroupDescription) -> None:
    """Print a remark to standard error if the group is not stable."""
    if group.state == "Empty":
        print(f"\nConsumer group '{group.id}' has no active members.", file=sys.stderr)
    elif group.state in REBALANCING:
        print(f"\nWarning: Consumer group '{group.id}' is rebalancing.", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A partition of a group: committed offset and log end, if known, and the owning member."""

    partition: TopicPartition
    committed: OffsetAndMetadata | None
    end: int | None
    member: MemberDescription | None

    def cells(self) -> list[str]:
        lag = None
        if self.committed is not None and self.end is not None:
            lag = self.end - self.committed.offset
        epoch = self.committed.leader_epoch if self.committed else -1
        member = self.member
        return [
            self.partition.topic,
            str(self.partition.partition),
            str(epoch) if epoch >= 0 else "-",
            "-" if self.committed is None else str(self.committed.offset),
            "-" if self.end is None else str(self.end),
            "-" if lag is None else str(lag),
            "-" if member is None else member.id,
            "-" if member is None else f"/{member.host.removeprefix('/')}",
            "-" if member is None else member.client_id,
        ]


async def _print_offsets(client: Client, group: GroupDescription, *, verbose: bool) -> None:
    committed = await committed_offsets(client, group.id)
    assigned = {each for member in group.members for each in member.partitions}
    ends = await known_ends(client, {*committed, *assigned})
    rows = [
        OffsetRow(each, committed.get(each), ends.get(each), member)
        for member, partitions in _by_member(group, sorted(set(committed) - assigned))
        for each in partitions
    ]
    if not rows:
        return
    header = [
        "TOPIC",
        "PARTITION",
        "LEADER-EPOCH",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    widths = [15, 10, 15, 15, 15, 15, 15, 15, 0]
    growing = {0, 6, 7}
    lines = [header, *(row.cells() for row in rows)]
    if not verbose:
        lines = [[*line[:2], *line[3:]] for line in lines]
        widths, growing = [15, 10, 15, 15, 15, 15, 15, 0], {0, 5, 6}
    print_rows(group.id, lines, widths, growing)


def _by_member(
    group: GroupDescription, unassigned: Sequence[TopicPartition]
) -> Iterable[tuple[MemberDescription | None, Sequence[TopicPartition]]]:
    """Members with the most partitions first, then the unassigned partitions."""
    for member in sorted(group.members, key=lambda each: -len(each.partitions)):
        if member.partitions:
            yield member, sorted(member.partitions)
    yield None, unassigned


def _print_members(group: GroupDescription, *, verbose: bool) -> None:
    header = ["CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    widths, growing = [15, 15, 15, 15], {0, 1, 2}
    instances = any(each.instance_id for each in group.members)
    if instances:
        header.insert(1, "GROUP-INSTANCE-ID")
        widths.insert(1, 17)
        growing = {0, 1, 2, 3}
    if verbose:
        header += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        growing |= {len(header) - 3, len(header) - 1}
        widths += [15, 20, 15, 20]
    else:
        header.append("")
        widths.append(0)
    lines = [header]
    for each in sorted(group.members, key=lambda member: -len(member.partitions)):
        line = [each.id, f"/{each.host.removeprefix('/')}", each.client_id]
        if instances:
            line.insert(1, each.instance_id or "")
        line.append(str(len(each.partitions)))
        line += _assignment(group, each) if verbose else [""]
        lines.append(line)
    print_rows(group.id, lines, widths, growing)


def _assignment(group: GroupDescription, member: MemberDescription) -> list[str]:
    if member.place is None:
        return ["-", spelled(member.partitions), "-", "-"]
    target = "-" if group.assignment_epoch is None else str(group.assignment_epoch)
    return [
        str(member.place.epoch),
        spelled(member.partitions),
        target,
        spelled(member.place.target),
    ]


def spelled(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as `t:0,1;u:2`."""
    by_topic = defaultdict(list)
    for each in sorted(partitions):
        by_topic[each.topic].append(str(each.partition))
    return ";".join(f"{topic}:{','.join(each)}" for topic, each in by_topic.items()) or "-"


async def _print_state(client: Client, group: GroupDescription, *, verbose: bool) -> None:
    coordinator = await find_coordinator(client, ToCoordinator(group.id))
    header = ["COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    line = [
        f"{coordinator.address}  ({coordinator.id})",
        group.strategy or "-",
        group.state,
        str(len(group.members)),
    ]
    widths = [25, 20, 20, 0]
    if verbose:
        header[3:3] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        line[3:3] = [
            "-" if each is None else str(each) for each in (group.epoch, group.assignment_epoch)
        ]
        widths[3:3] = [15, 25]
    print_rows(group.id, [header, line], widths, {0})


def print_rows(
    group: str, lines: Sequence[Sequence[str]], widths: Sequence[int], growing: Iterable[int]
) -> None:
    """Print header and rows, each after the group's name; columns in `growing` widen to
    fit their cells.
    """
    fitted = [
        max([width, *(len(line[index]) for line in lines[1:])]) if index in growing else width
        for index, width in enumerate(widths)
    ]
    name_width = max(15, len(group))
    print()
    for number, line in enumerate(lines):
        name = "GROUP" if number == 0 else group
        cells = (f"{cell:<{width}}" for cell, width in zip(line, fitted, strict=True))
        print(" ".join([f"{name:<{name_width}}", *cells]))
