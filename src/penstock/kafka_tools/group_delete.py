"""`kafka-consumer-groups.sh --delete` and `--delete-offsets`."""

from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.delete_offsets import delete_offsets
from penstock.client.errors import BrokerRefused
from penstock.client.groups import delete_group
from penstock.errors import ErrorCode, KafkaError
from penstock.kafka_tools.group_scope import named_groups, topic_scope
from penstock.kafka_tools.messages import exception_name, refusal_text
from penstock.kafka_tools.parser import Arguments
from penstock.types import TopicPartition


async def delete(args: Arguments, client: Client) -> None:
    names = await named_groups(args, client)
    failures: dict[str, KafkaError] = {}
    for name in names:
        try:
            await delete_group(client, name)
        except BrokerRefused as refused:
            failures[name] = refused
    deleted = [name for name in names if name not in failures]
    if not failures:
        print(f"Deletion of requested consumer groups ({_quoted(deleted)}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for name, error in failures.items():
        print(f"* Group '{name}' could not be deleted due to: {_reason(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {_quoted(deleted)}")


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _reason(error: KafkaError) -> str:
    reason = refusal_text(error)
    return f"{exception_name(error)}: {reason}" if isinstance(error, BrokerRefused) else reason


async def delete_offsets_of(args: Arguments, client: Client) -> None:
    group = args.all("group")[-1]
    known = {each.name: each for each in await list_topics(client)}
    wanted: list[TopicPartition] = []
    rows: list[tuple[str, object, str]] = []
    missing = BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic")
    for name, indexes in topic_scope(args.all("topic")).items():
        if name in known:
            wanted += [TopicPartition(name, each) for each in indexes or known[name].partitions]
        else:
            partitions = [str(each) for each in indexes] or ["-"]
            rows += [(name, each, f"Error: {_reason(missing)}") for each in partitions]
    try:
        outcomes = await delete_offsets(client, group, wanted) if wanted else {}
    except BrokerRefused as refused:
        print(f"\nError: {_group_refusal(refused, group)}")
        return
    if any(outcomes.values()):
        print("\nError: Encountered some partition-level error, see the follow-up details.")
    else:
        print(f"Request succeeded for deleting offsets from group {group}.")
    rows += [
        (each.topic, each.partition, f"Error: {_reason(error)}" if error else "Successful")
        for each, error in outcomes.items()
    ]
    width = max([15, *(len(name) for name, _, _ in rows)])
    print(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}")
    for name, index, status in sorted(rows, key=lambda row: (row[0], str(row[1]))):
        print(f"{name:<{width}} {index!s:<10} {status:<15}")


def _group_refusal(error: BrokerRefused, group: str) -> str:
    match error.code:
        case ErrorCode.GROUP_ID_NOT_FOUND | ErrorCode.INVALID_GROUP_ID:
            return f"'{group}' is not valid or does not exist."
        case ErrorCode.NON_EMPTY_GROUP:
            return (
                "Deleting offsets of a consumer group is forbidden if the group is active: "
                f"{refusal_text(error)}"
            )
        case _:
            return _reason(error)
