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
from penstock.client.groups import (
    OffsetAndMetadata,
    alter_committed,
    committed_offsets,
    describe_group,
    list_groups,
)
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import list_offsets
from penstock.clock import SystemClock
from penstock.kafka_tools.group_errors import GroupError
from penstock.kafka_tools.group_scope import topic_scope
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
    groups = list(dict.fromkeys(args.all("group")))
    if args.has("all-groups"):
        groups = [each.id for each in await list_groups(client)]
    if not args.has("execute", "dry-run"):
        print(NO_ACTION, file=sys.stderr)
    moved: dict[str, Offsets] = {}
    for group in groups:
        state = (await describe_group(client, group)).state
        if state not in {"Empty", "Dead"}:
            raise GroupError(
                f"Assignments can only be reset if the group '{group}' is inactive, but the "
                f"current state is {state}.",
                bare=True,
            )
        moved[group] = await _planned(args, client, group)
        if args.has("execute") and moved[group]:
            await alter_committed(client, group, moved[group])
    _print_moved(moved, as_csv=args.has("export"))


def _print_moved(moved: Mapping[str, Offsets], *, as_csv: bool) -> None:
    rows = [
        (group, *partition, offsets[partition])
        for group, offsets in moved.items()
        for partition in java_order(offsets, partition_hash)
    ]
    if as_csv:
        for group, topic, index, offset in rows:
            print(",".join([*([group] if len(moved) > 1 else []), topic, str(index), str(offset)]))
        print()
        return
    width = max([15, *map(len, moved)])
    topic_width = max([15, *(len(topic) for _, topic, _, _ in rows)])
    print(f"\n{'GROUP':<{width}} {'TOPIC':<{topic_width}} {'PARTITION':<10} NEW-OFFSET")
    for group, topic, index, offset in rows:
        print(f"{group:<{width}} {topic:<{topic_width}} {index:<10} {offset}")


async def _planned(args: Arguments, client: Client, group: str) -> Offsets:
    if args.has("from-file"):
        wanted = _from_file(args.all("from-file")[-1], group)
        return await _within(client, wanted)
    committed = await committed_offsets(client, group)
    partitions = await _partitions(args, client, committed)
    if not partitions:
        return {}
    if args.has("to-earliest"):
        return await _listed(client, partitions, EARLIEST)
    if args.has("to-latest"):
        return await _listed(client, partitions, LATEST)
    if args.has("to-offset"):
        target = Offset(args.number("to-offset"))
        return await _within(client, dict.fromkeys(partitions, target))
    if args.has("shift-by"):
        return await _within(client, _shifted(partitions, committed, args.number("shift-by")))
    if args.has("to-current"):
        ends = await _listed(client, partitions, LATEST)
        return {
            each: committed[each].offset if each in committed else ends[each] for each in partitions
        }
    return await _at_time(client, partitions, _time(args))


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


async def _partitions(
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


async def _listed(client: Client, partitions: Sequence[TopicPartition], time: int) -> Offsets:
    found = await list_offsets(client, dict.fromkeys(partitions, time))
    return {each: at.offset for each, at in found.items()}


async def _at_time(client: Client, partitions: Sequence[TopicPartition], time_ms: int) -> Offsets:
    found, ends = await _listed(client, partitions, time_ms), {}
    late = [each for each in partitions if found[each] < 0]
    if late:
        ends = await _listed(client, late, LATEST)
    for each in late:
        print(
            f"\nWarn: Partition {each.partition} from topic {each.topic} is empty. Falling back "
            "to latest known offset."
        )
    return found | ends


async def _within(client: Client, wanted: Offsets) -> Offsets:
    """The offsets, moved into the range of offsets that their partitions have."""
    starts = await _listed(client, list(wanted), EARLIEST)
    ends = await _listed(client, list(wanted), LATEST)
    return {each: max(starts[each], min(at, ends[each])) for each, at in wanted.items()}


def _time(args: Arguments) -> int:
    """Milliseconds since 1970."""
    duration, datetime_text = args.find("by-duration"), args.find("to-datetime")
    if duration is not None:
        return SystemClock().now_ms() - _milliseconds(duration)
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
    """`2026-01-31T12:00:00.000`, in UTC unless it says otherwise."""
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


def _from_file(path: str, group: str) -> Offsets:
    """Rows of topic,partition,offset; with the group before them if there are several."""
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
