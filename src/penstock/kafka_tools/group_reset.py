"""`kafka-consumer-groups.sh --reset-offsets`."""

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.group_reset import state_with_members
from penstock.client.groups import (
    OffsetAndMetadata,
    alter_committed,
    committed_offsets,
)
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import list_offsets
from penstock.clock import SystemClock
from penstock.kafka_tools.group_errors import GroupError
from penstock.kafka_tools.group_scope import named_groups, topic_scope
from penstock.kafka_tools.java_order import java_order, partition_hash
from penstock.kafka_tools.messages import refusal_text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.types import Offset, TopicPartition

NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this "
    "command will require either --dry-run or --execute to be specified. You should add the "
    "--dry-run option explicitly if you are scripting this command and want to keep the current "
    "default behavior without prompting."
)
_DURATION = re.compile(
    r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
Offsets = dict[TopicPartition, Offset]


async def reset(args: Arguments, client: Client) -> None:
    groups = await named_groups(args, client)
    if not args.has("execute", "dry-run"):
        print(NO_ACTION, file=sys.stderr)
    moved: dict[str, Offsets] = {}
    for group in groups:
        state = await state_with_members(client, group)
        if state is not None:  # the other groups are still reset
            print(
                f"\nError: Assignments can only be reset if the group '{group}' is inactive, but "
                f"the current state is {state}."
            )
            moved[group] = {}
            continue
        moved[group] = await _planned(args, client, group)
        if args.has("execute") and moved[group]:
            await alter_committed(client, group, moved[group])
    if args.has("export"):
        print_csv(moved, with_group=len(args.all("group")) != 1)
    else:
        print_moved(moved)


def _rows(moved: Mapping[str, Offsets]) -> list[tuple[str, str, int, Offset]]:
    return [
        (group, *partition, offsets[partition])
        for group, offsets in moved.items()
        for partition in java_order(offsets, partition_hash)
    ]


def print_csv(moved: Mapping[str, Offsets], *, with_group: bool) -> None:
    """Print CSV as `--from-file` reads it, with the group unless exactly one was named."""
    for row in _rows(moved):
        print(",".join(map(str, row if with_group else row[1:])))
    print()


def print_moved(moved: Mapping[str, Offsets]) -> None:
    rows = _rows(moved)
    width = max([15, *map(len, moved)])
    topic_width = max([15, *(len(topic) for _, topic, _, _ in rows)])
    print(f"\n{'GROUP':<{width}} {'TOPIC':<{topic_width}} {'PARTITION':<10} NEW-OFFSET")
    for group, topic, index, offset in rows:
        print(f"{group:<{width}} {topic:<{topic_width}} {index:<10} {offset}")


async def _planned(args: Arguments, client: Client, group: str) -> Offsets:
    if args.has("from-file"):
        wanted = from_file(args.all("from-file")[-1], group)
        return await within(client, wanted)
    committed = await committed_offsets(client, group)
    partitions = await named_partitions(args, client, committed)
    return await planned(args, client, partitions, committed)


async def planned(
    args: Arguments,
    client: Client,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
) -> Offsets:
    """The new offset of each partition, from the options."""
    if not partitions:
        return {}
    if args.has("to-earliest"):
        return await listed(client, partitions, EARLIEST)
    if args.has("to-latest"):
        return await listed(client, partitions, LATEST)
    if args.has("to-offset"):
        target = Offset(args.number("to-offset"))
        return await within(client, dict.fromkeys(partitions, target))
    if args.has("shift-by"):
        return await within(client, _shifted(partitions, committed, args.number("shift-by")))
    if args.has("to-current"):
        ends = await listed(client, partitions, LATEST)
        return {
            each: committed[each].offset if each in committed else ends[each] for each in partitions
        }
    return await at_time(client, partitions, _time(args))


def _shifted(
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    shift: int,
) -> Offsets:
    for each in partitions:
        if each not in committed:
            raise UsageError(
                f"Cannot shift offset for partition {each} since there is no current committed "
                "offset"
            )
    return {each: Offset(committed[each].offset + shift) for each in partitions}


async def named_partitions(
    args: Arguments, client: Client, committed: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[TopicPartition]:
    if args.has("all-topics"):
        return sorted(committed)
    scope = topic_scope(args.all("topic"))
    found = []
    try:
        topics = await describe_topics(client, scope)
    except BrokerRefused as refused:
        raise GroupError(refusal_text(refused)) from None
    for topic in topics:
        found += [
            TopicPartition(topic.name, index) for index in scope[topic.name] or topic.partitions
        ]
    return found


async def listed(client: Client, partitions: Sequence[TopicPartition], time: int) -> Offsets:
    found = await list_offsets(client, dict.fromkeys(partitions, time))
    return {each: at.offset for each, at in found.items()}


async def at_time(client: Client, partitions: Sequence[TopicPartition], time_ms: int) -> Offsets:
    found, ends = await listed(client, partitions, time_ms), {}
    late = [each for each in partitions if found[each] < 0]
    if late:
        ends = await listed(client, late, LATEST)
    for each in late:
        print(
            f"\nWarn: Partition {each.partition} from topic {each.topic} is empty. Falling back "
            "to latest known offset."
        )
    return found | ends


async def within(client: Client, wanted: Offsets) -> Offsets:
    """The offsets, clamped to the range that their partitions have."""
    starts = await listed(client, list(wanted), EARLIEST)
    ends = await listed(client, list(wanted), LATEST)
    return {each: max(starts[each], min(at, ends[each])) for each, at in wanted.items()}


def _time(args: Arguments) -> int:
    """The target time in milliseconds since 1970."""
    duration, datetime_text = args.find("by-duration"), args.find("to-datetime")
    if duration is not None:
        # Negative timestamps are special values in ListOffsets.
        return max(SystemClock().now_ms() - _milliseconds(duration), 0)
    assert datetime_text is not None
    return parse_datetime(datetime_text)


def _milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None or text.upper().endswith(("P", "T")):
        raise GroupError(f"Text '{text}' cannot be parsed to a Duration")
    sign, days, hours, minutes, seconds = match.groups()
    total = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
    total_ms = total * 1000 + round(float(seconds or 0) * 1000)
    return -total_ms if sign else total_ms


def parse_datetime(text: str) -> int:
    """Parse `2026-01-31T12:00:00.000`; UTC unless it has a time zone."""
    if "T" not in text:
        raise GroupError(
            "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' "
            "according to ISO8601 format"
        )
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise GroupError(f'java.text.ParseException: Unparseable date: "{text}"') from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return round(found.timestamp() * 1000)


def from_file(path: str, group: str) -> Offsets:
    """Read rows of topic,partition,offset, or group,topic,partition,offset."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise GroupError(f"--from-file {path}: {error.strerror}") from None
    found: Offsets = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row:
            continue
        if len(row) == 4:
            of_group, *row = row
            if of_group != group:
                continue
        try:
            topic, index, offset = row
            found[TopicPartition(topic.strip(), int(index))] = Offset(int(offset))
        except ValueError:
            raise GroupError(
                f"--from-file {path}: line {number} must be topic,partition,offset"
            ) from None
    return found
