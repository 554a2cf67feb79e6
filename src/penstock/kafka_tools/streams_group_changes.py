"""`kafka-streams-groups.sh --reset-offsets`, `--delete` and `--delete-offsets`."""

from collections.abc import Iterable, Mapping

from penstock.client.admin import delete_topic, describe_topics, list_topics
from penstock.client.cluster import Client
from penstock.client.delete_offsets import delete_offsets
from penstock.client.errors import BrokerRefused
from penstock.client.groups import (
    OffsetAndMetadata,
    alter_committed,
    committed_offsets,
    delete_group,
    list_groups,
)
from penstock.client.streams_groups import STREAMS, fetch_streams_group
from penstock.errors import ErrorCode, KafkaError
from penstock.kafka_tools.group_errors import GroupError
from penstock.kafka_tools.group_reset import Offsets, from_file, planned, print_csv, within
from penstock.kafka_tools.group_scope import topic_scope
from penstock.kafka_tools.messages import exception_name, refusal_text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.streams_topology import input_topics, internal_topics
from penstock.types import TopicPartition
from penstock.wire.messages.streams_group_describe import DescribedGroup

ROW = "{:<30} {:<30} {:<10} {:<15}"


async def chosen_groups(args: Arguments, client: Client) -> list[str]:
    if args.has("all-groups"):
        return await _all_groups(client)
    return list(dict.fromkeys(args.all("group")))


async def _all_groups(client: Client) -> list[str]:
    return [each.id for each in await list_groups(client) if each.type.lower() == STREAMS]


async def reset(args: Arguments, client: Client) -> None:
    moved: dict[str, Offsets] = {}
    for name in await chosen_groups(args, client):
        group = await fetch_streams_group(client, name)
        moved[name] = await _moved(args, client, group)
        if args.has("execute") and moved[name]:
            await alter_committed(client, name, moved[name])
            await _delete_topics(client, _internal(args, group))
    if args.has("export"):
        print_csv(moved, with_group=len(args.all("group")) != 1)
    else:
        _print_moved(moved)


async def _moved(args: Arguments, client: Client, group: DescribedGroup) -> Offsets:
    """The new offsets. If the group cannot be reset, print why and return none."""
    if group.group_state not in {"Empty", "Dead"}:
        print(
            f"\nError: Assignments can only be reset if the group '{group.group_id}' is inactive, "
            f"but the current state is {group.group_state}."
        )
        return {}
    if args.has("from-file"):
        return await within(client, from_file(args.all("from-file")[-1], group.group_id))
    committed = await committed_offsets(client, group.group_id)
    partitions = await _inputs(args, client, group, committed)
    if {each.topic for each in partitions} - {each.topic for each in committed}:
        print(f"\nError: One or more topics are not part of the group '{group.group_id}'.")
        return {}
    return await planned(args, client, partitions, committed)


async def _inputs(
    args: Arguments,
    client: Client,
    group: DescribedGroup,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[TopicPartition]:
    if args.has("all-input-topics"):
        own = set(input_topics(group))
        return sorted(each for each in committed if each.topic in own)
    scope = topic_scope(args.all("input-topic"))
    try:
        topics = await describe_topics(client, scope)
    except BrokerRefused as refused:
        raise GroupError(refusal_text(refused)) from None
    return [
        TopicPartition(topic.name, index)
        for topic in topics
        for index in scope[topic.name] or topic.partitions
    ]


def _rows(moved: Mapping[str, Offsets]) -> list[tuple[str, str, int, int]]:
    return [
        (name, *partition, offsets[partition])
        for name, offsets in moved.items()
        for partition in sorted(offsets)
    ]


def _print_moved(moved: Mapping[str, Offsets]) -> None:
    print("\n" + ROW.format("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"))
    for row in _rows(moved):
        print(ROW.format(*row))


def _internal(args: Arguments, group: DescribedGroup) -> list[str]:
    """The group's internal topics to delete."""
    own = internal_topics(group)
    if args.has("delete-all-internal-topics"):
        return own
    wanted = list(dict.fromkeys(args.all("delete-internal-topic")))
    if set(wanted) <= set(own):
        return wanted
    print(
        f"\nError: Deleting internal topics for group '{group.group_id}' failed because the "
        "topics do not exist."
    )
    return []


async def delete(args: Arguments, client: Client) -> None:
    known = await _all_groups(client)
    names = known if args.has("all-groups") else list(dict.fromkeys(args.all("group")))
    failures: dict[str, str] = {}
    topics: dict[str, list[str]] = {}
    for name in names:
        if name not in known:
            failures[name] = (
                f"java.lang.IllegalArgumentException: Group '{name}' does not exist or is not a "
                "streams group."
            )
            continue
        internal = _internal(args, await fetch_streams_group(client, name))
        try:
            await delete_group(client, name)
            topics[name] = internal
        except BrokerRefused as refused:
            reason = refusal_text(refused)
            if refused.code is ErrorCode.NON_EMPTY_GROUP:
                reason = f"Streams group '{name}' is not EMPTY."
            failures[name] = f"{exception_name(refused)}: {reason}"
    refusals = {name: await _delete_topics(client, each) for name, each in topics.items() if each}
    _print_deleted(names, failures)
    _print_deleted_topics(refusals)


def _print_deleted(names: Iterable[str], failures: Mapping[str, str]) -> None:
    deleted = "', '".join(name for name in names if name not in failures)
    if not failures:
        print(f"Deletion of requested streams groups ('{deleted}') was successful.")
        return
    print("\nError: Deletion of some streams groups failed:")
    for name, failure in failures.items():
        print(f"* Group '{name}' could not be deleted due to: {failure}")
    if deleted:
        print(f"\nThese streams groups were deleted successfully: '{deleted}'")


async def _delete_topics(client: Client, topics: Iterable[str]) -> BrokerRefused | None:
    """Delete topics; returns the last error, if any."""
    refusal = None
    for topic in topics:
        try:
            await delete_topic(client, topic)
        except BrokerRefused as refused:
            print(f"Failed to delete internal topic: {topic}")
            refusal = refused
    return refusal


def _print_deleted_topics(refusals: Mapping[str, BrokerRefused | None]) -> None:
    failed = {name: refusal for name, refusal in refusals.items() if refusal is not None}
    if failed:
        print("Deletion of some associated internal topics failed:")
        for name, refusal in failed.items():
            print(
                f"* Internal topics of the streams group '{name}' could not be deleted due to: "
                f"{_reason(refusal)}"
            )
    elif refusals:
        names = "', '".join(refusals)
        print(
            f"Deletion of associated internal topics of the streams groups ('{names}') was "
            "successful."
        )


def _reason(error: KafkaError) -> str:
    reason = refusal_text(error)
    return f"{exception_name(error)}: {reason}" if isinstance(error, BrokerRefused) else reason


async def delete_offsets_of(args: Arguments, client: Client) -> None:
    group = args.all("group")[-1]
    if args.has("all-input-topics"):
        own = set(input_topics(await fetch_streams_group(client, group)))
        committed = await committed_offsets(client, group)
        scope: dict[str, list[int]] = {}
        for each in sorted(committed):
            if each.topic in own:
                scope.setdefault(each.topic, []).append(each.partition)
    else:
        scope = topic_scope(args.all("input-topic"))
    known = {each.name: each for each in await list_topics(client)}
    missing = BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic")
    outcomes: dict[tuple[str, str], KafkaError | None] = {
        (name, "-"): missing for name in scope if name not in known
    }
    wanted = [
        TopicPartition(name, index)
        for name, indexes in scope.items()
        if name in known
        for index in indexes or known[name].partitions
    ]
    try:
        found = await delete_offsets(client, group, wanted) if wanted else {}
        is_partial = any(found.values())
        print(
            "\nError: Encountered some partition-level error, see the follow-up details."
            if is_partial
            else f"Request succeeded for deleting offsets from group {group}."
        )
    except BrokerRefused as refused:
        print(f"\nError: {refusal_text(refused)}")
        found = dict.fromkeys(wanted, refused)
    outcomes |= {(each.topic, str(each.partition)): error for each, error in found.items()}
    width = max([15, *(len(name) for name, _ in outcomes)])
    print(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}")
    for (name, index), error in sorted(outcomes.items(), key=lambda each: each[0]):
        status = f"Error: {_reason(error)}" if error else "Successful"
        print(f"{name:<{width}} {index:<10} {status:<15}")
