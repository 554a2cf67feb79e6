"""`kafka-share-groups.sh --reset-offsets`, `--delete` and `--delete-offsets`."""

import sys

from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.groups import delete_group, list_groups
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.share_group_admin import delete_share_offsets
from penstock.client.share_groups import (
    SHARE,
    alter_share_offsets,
    describe_share_group,
    share_offsets,
)
from penstock.errors import ErrorCode
from penstock.kafka_tools.group_errors import GroupError
from penstock.kafka_tools.group_reset import at_time, listed, parse_datetime, print_moved
from penstock.kafka_tools.group_scope import topic_scope
from penstock.kafka_tools.messages import exception_name, refusal_text
from penstock.kafka_tools.parser import Arguments
from penstock.types import Offset, TopicPartition


async def chosen_groups(args: Arguments, client: Client) -> list[str]:
    if args.has("all-groups"):
        return await _all_groups(client)
    return list(dict.fromkeys(args.all("group")))


async def _all_groups(client: Client) -> list[str]:
    return [each.id for each in await list_groups(client) if each.type.lower() == SHARE]


async def reset(args: Arguments, client: Client) -> int:
    group, *others = args.all("group")
    if others:
        raise GroupError("Found multiple arguments for option group, but you asked for only one")
    if await _has_members(client, group):
        print(f"Share group '{group}' is not empty.", file=sys.stderr)
        return 1
    partitions = await _scope(args, client, group)
    moved: dict[TopicPartition, Offset] = {}
    if partitions and args.has("to-datetime"):
        moved = await at_time(client, partitions, parse_datetime(args.text("to-datetime")))
    elif partitions:
        moved = await listed(client, partitions, EARLIEST if args.has("to-earliest") else LATEST)
    if args.has("execute") and moved:
        await alter_share_offsets(client, group, moved)
    print_moved({group: moved})
    return 0


async def _has_members(client: Client, group: str) -> bool:
    try:
        return (await describe_share_group(client, group)).state not in {"Empty", "Dead"}
    except BrokerRefused as refused:
        if refused.code is ErrorCode.GROUP_ID_NOT_FOUND:  # the reset will create it
            return False
        raise


async def _scope(args: Arguments, client: Client, group: str) -> list[TopicPartition]:
    """The partitions of the named topics, else of all topics that the group reads."""
    scope = topic_scope(args.all("topic"))
    if not scope:
        scope = {each.topic: [] for each in await share_offsets(client, group)}
    try:
        topics = await describe_topics(client, scope) if scope else []
    except BrokerRefused as refused:
        raise GroupError(refusal_text(refused)) from None
    missing = [
        f"{topic.name}-{index}"
        for topic in topics
        for index in scope[topic.name]
        if index not in topic.partitions
    ]
    if missing:
        raise GroupError(f'The partitions "{",".join(missing)}" do not exist')
    return [
        TopicPartition(topic.name, index)
        for topic in topics
        for index in scope[topic.name] or topic.partitions
    ]


async def delete(args: Arguments, client: Client) -> None:
    known = await _all_groups(client)
    names = known if args.has("all-groups") else list(dict.fromkeys(args.all("group")))
    failures: dict[str, str] = {}
    for name in names:
        if name not in known:
            failures[name] = (
                f"java.lang.IllegalArgumentException: Group '{name}' is not a share group."
            )
            continue
        try:
            await delete_group(client, name)
        except BrokerRefused as refused:
            reason = refusal_text(refused)
            if refused.code is ErrorCode.NON_EMPTY_GROUP:
                reason = f"Share group '{name}' is not EMPTY."
            failures[name] = f"{exception_name(refused)}: {reason}"
    deleted = ", ".join(f"'{name}'" for name in names if name not in failures)
    if not failures:
        print(f"Deletion of requested share groups ({deleted}) was successful.")
        return
    print("\nError: Deletion of some share groups failed:")
    for name, failure in failures.items():
        print(f"* Group '{name}' could not be deleted due to: {failure}")
    if deleted:
        print(f"\nThese share groups were deleted successfully: {deleted}")


async def delete_offsets(args: Arguments, client: Client) -> None:
    group = args.all("group")[-1]
    topics = sorted(set(args.all("topic")))
    try:
        outcomes = await delete_share_offsets(client, group, topics)
    except BrokerRefused as refused:
        print(f"\nError: {refusal_text(refused)}")
        outcomes = dict.fromkeys(topics, refused)
    width = max([15, *map(len, topics)])
    print(f"\n{'TOPIC':<{width}} STATUS")
    for topic in topics:
        refusal = outcomes.get(topic)
        status = "Successful" if refusal is None else f"Error: {refusal_text(refusal)}"
        print(f"{topic:<{width}} {status}")
