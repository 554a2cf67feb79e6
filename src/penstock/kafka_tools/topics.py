"""`kafka-topics.sh`: creates, deletes, describes, lists and alters topics."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import name_values, run
from penstock.kafka_tools.options import CLUSTER, Option, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.setting_hints import hint
from penstock.kafka_tools.tool import Tool, ToolError
from penstock.kafka_tools.topic_pattern import topic_pattern

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.configs import ConfigEntry
    from penstock.client.metadata import PartitionMetadata, TopicMetadata
    from penstock.client.reassignment import OngoingReassignment
    from penstock.types import BrokerId, TopicPartition

ACTIONS = ("list", "describe", "create", "alter", "delete")
FILTERS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
KEY_WARNING = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or "
    "ordering of the messages will be affected"
)
CONFIG_WARNING = (
    "WARNING: Altering topic configuration from this script has been deprecated and may be "
    "removed in future releases.\n         Going forward, please use kafka-configs.sh for this "
    "functionality"
)
OPTIONS: Sequence[Option] = (
    *CLUSTER,
    flag("list", "List all available topics."),
    flag("create", "Create a new topic."),
    flag("delete", "Delete a topic."),
    flag("alter", "Alter the number of partitions; with --zookeeper also settings."),
    flag("describe", "List details for the given topics."),
    text("topic", "TOPIC", "The topic; a regular expression except for --create.", repeats=True),
    text("topic-id", "ID", "The id of the topic to describe."),
    text("config", "NAME=VALUE", "A setting of the topic; repeatable.", repeats=True),
    text("delete-config", "NAME", "A setting to remove, with --zookeeper.", repeats=True, old=True),
    number("partitions", "N", "The number of partitions.", also=("partition",)),
    number("replication-factor", "N", "The replication factor of the new topic."),
    text("replica-assignment", "0:1,1:2,...", "Brokers of each partition's replicas."),
    flag("under-replicated-partitions", "Only under-replicated partitions."),
    flag("unavailable-partitions", "Only partitions without an available leader."),
    flag("under-min-isr-partitions", "Only partitions whose ISR is below the configured minimum."),
    flag("at-min-isr-partitions", "Only partitions whose ISR equals the configured minimum."),
    flag("topics-with-overrides", "Only topics that have settings of their own."),
    flag("if-exists", "Do nothing if the topic does not exist."),
    flag("if-not-exists", "Do not fail if the topic already exists."),
    flag("exclude-internal", "Leave out internal topics."),
    number("partition-size-limit-per-response", "N", "Accepted; responses are read whole."),
    flag("force", "Accepted, without effect.", old=True),
)


def topics(args: Arguments) -> int:
    _check(args)
    names = (each.partition("=")[0] for each in (*args.all("config"), *args.all("delete-config")))
    hint(names, "topic settings")
    run(args, partial(_act, args))
    return 0


def _check(args: Arguments) -> None:
    actions = args.given(ACTIONS)
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or "
            "--delete"
        )
    (action,) = actions
    if not args.has("bootstrap-server", "zookeeper"):
        raise ToolError("--bootstrap-server must be specified")
    if len(args.all("topic")) > 1:
        raise UsageError("Found multiple arguments for option topic, but you asked for only one")
    if action == "create" or (action in {"alter", "delete"}):
        args.require("topic")
    if action == "describe":
        args.forbid("topic-id", ["topic"])
    if action == "alter" and args.has("bootstrap-server"):
        for name in ("config", "delete-config"):
            if args.has(name):
                raise UsageError(
                    f'Option combination "[bootstrap-server],[{name}]" can\'t be used with option '
                    '"[alter]" (the kafka-configs.sh command-line tool should be used to alter '
                    "topic configs)"
                )
    if action == "alter" and not args.has("partitions", "config", "delete-config"):
        args.require("partitions")
    for used, allowed in {
        "partitions": {"create", "alter"},
        "replication-factor": {"create"},
        "replica-assignment": {"create", "alter"},
        "config": {"create", "alter"},
        "delete-config": {"alter"},
        "if-not-exists": {"create"},
        "if-exists": {"alter", "delete", "describe"},
        "topics-with-overrides": {"describe"},
        **{name: {"describe"} for name in FILTERS},
    }.items():
        if action not in allowed:
            args.forbid(used, [action])
    if action == "create":
        args.forbid("replica-assignment", ["partitions", "replication-factor"])
    described = args.given((*FILTERS, "topics-with-overrides"))
    if len(described) > 1:
        args.forbid(described[0], described[1:])


async def _act(args: Arguments, client: "Client") -> None:
    if args.has("list"):
        await _list(args, client)
    elif args.has("describe"):
        await _describe(args, client)
    elif args.has("create"):
        await _create(args, client)
    elif args.has("alter"):
        await _alter(args, client)
    else:
        await _delete(args, client)


async def _matching(args: Arguments, client: "Client") -> "list[TopicMetadata]":
    """The topics that --topic matches, sorted; none is an error unless --if-exists is given."""
    from penstock.client.admin import list_topics
    from penstock.types import uuid_text

    found = await list_topics(client)
    if args.has("exclude-internal"):
        found = [each for each in found if not each.is_internal]
    wanted, wanted_id = args.find("topic"), args.find("topic-id")
    if wanted_id is not None:
        found = [each for each in found if uuid_text(each.id) == wanted_id]
        if not found and not args.has("if-exists"):
            raise ToolError(f"TopicId '{wanted_id}' does not exist as expected")
    if wanted is not None:
        pattern = topic_pattern(wanted)
        found = [each for each in found if pattern.fullmatch(each.name)]
        if not found and not args.has("if-exists", "list"):
            raise ToolError(f"Topic '{wanted}' does not exist as expected")
    return found


async def _list(args: Arguments, client: "Client") -> None:
    for topic in await _matching(args, client):
        print(topic.name)


async def _create(args: Arguments, client: "Client") -> None:
    from penstock.client.admin import BROKER_DEFAULT, NewTopic, create_topic
    from penstock.client.errors import BrokerRefused
    from penstock.errors import ErrorCode

    name = args.text("topic")
    partitions, factor = args.find_number("partitions"), args.find_number("replication-factor")
    if "." in name or "_" in name:
        print(COLLISION_WARNING)
    if partitions is not None and partitions < 1:
        raise ToolError("The partitions must be greater than 0")
    if factor is not None and not 1 <= factor <= 32767:
        raise ToolError("The replication factor must be between 1 and 32767 inclusive")
    placed = args.find("replica-assignment")
    topic = NewTopic(
        name=name,
        partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=BROKER_DEFAULT if factor is None else factor,
        assignments=() if placed is None else assignments(placed),
        configs=name_values(args.all("config"), "--config"),
    )
    try:
        await create_topic(client, topic)
    except BrokerRefused as refused:
        if refused.code is not ErrorCode.TOPIC_ALREADY_EXISTS or not args.has("if-not-exists"):
            raise
        return
    print(f"Created topic {name}.")


def assignments(words: str) -> "list[list[BrokerId]]":
    """Parse `0:1,1:0`: the replicas of each partition, the same number for all."""
    from penstock.types import BrokerId

    try:
        found = [[BrokerId(int(each)) for each in part.split(":")] for part in words.split(",")]
    except ValueError:
        raise ToolError(f"--replica-assignment {words}: must be like 0:1,1:2") from None
    if any(each >= 1 << 31 for replicas in found for each in replicas):
        raise ToolError(f"--replica-assignment {words}: no broker has an id above {(1 << 31) - 1}")
    for replicas in found:
        twice = sorted({each for each in replicas if replicas.count(each) > 1})
        if twice:
            raise ToolError(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, twice))
            )
        if len(replicas) != len(found[0]):
            raise ToolError(
                f"Partition {found.index(replicas)} has different replication factor: {replicas}"
            )
    return found


async def _alter(args: Arguments, client: "Client") -> None:
    from penstock.client.admin import create_partitions

    found = await _matching(args, client)
    of_old = args.has("zookeeper")
    changes: dict[str, str | None] = {
        **name_values(args.all("config"), "--config"),
        **dict.fromkeys(args.all("delete-config")),
    }
    partitions = args.find_number("partitions")
    placed = args.find("replica-assignment")
    for topic in found:
        if changes:
            await _alter_configs(client, topic.name, changes)
        if partitions is not None:
            if of_old:
                print(KEY_WARNING)
            new = () if placed is None else assignments(placed)[len(topic.partitions) :]
            await create_partitions(client, topic.name, partitions, assignments=new)
            if of_old:
                print("Adding partitions succeeded!")


async def _alter_configs(client: "Client", topic: str, changes: dict[str, str | None]) -> None:
    from penstock.client.configs import Resource, alter_configs
    from penstock.config.resource_type import ConfigResourceType

    print(CONFIG_WARNING)
    await alter_configs(client, Resource(ConfigResourceType.TOPIC, topic), changes)
    print(f"Updated config for topic {topic}.")


async def _delete(args: Arguments, client: "Client") -> None:
    from penstock.client.admin import delete_topic

    for topic in await _matching(args, client):
        await delete_topic(client, topic.name)
        if args.has("zookeeper"):
            print(f"Topic {topic.name} is marked for deletion.")
            print("Note: This will have no impact if delete.topic.enable is not set to true.")


async def _describe(args: Arguments, client: "Client") -> None:
    from penstock.client.admin import describe_cluster
    from penstock.types import TopicPartition

    found = await _matching(args, client)
    only = args.given(FILTERS)
    live = set((await describe_cluster(client)).brokers)
    moving = await _moving(client) if found else {}
    for topic in found:
        settings = await _settings(client, topic.name)
        if args.has("topics-with-overrides") and not settings:
            continue
        if not only:
            print(_headline(topic, settings, of_old=args.has("zookeeper")))
        if args.has("topics-with-overrides"):
            continue
        least = int((settings.get("min.insync.replicas") or await _least(client, topic)) or 1)
        for partition in topic.partitions.values():
            if not only or _passes(only[0], partition, least, live):
                move = moving.get(TopicPartition(topic.name, partition.index))
                print(_line(topic, partition, move, of_old=args.has("zookeeper")))


async def _moving(client: "Client") -> "dict[TopicPartition, OngoingReassignment]":
    """Ongoing reassignments; none if the user may not list them, as in Kafka's tool."""
    from penstock.client.errors import BrokerRefused
    from penstock.client.reassignment import ongoing_reassignments
    from penstock.errors import ErrorCode

    try:
        return await ongoing_reassignments(client)
    except BrokerRefused as refused:
        if refused.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}


async def _described_configs(client: "Client", topic: str) -> "dict[str, ConfigEntry]":
    from penstock.client.configs import Resource, describe_configs
    from penstock.config.resource_type import ConfigResourceType

    return await describe_configs(client, Resource(ConfigResourceType.TOPIC, topic))


async def _settings(client: "Client", topic: str) -> dict[str, str | None]:
    """The settings that differ from the defaults, in the order of Kafka's output."""
    from penstock.client.configs import ConfigSource
    from penstock.kafka_tools.java_order import java_hash, java_order

    found = await _described_configs(client, topic)
    return {
        name: found[name].value
        for name in java_order(found, java_hash)
        if found[name].source is not ConfigSource.DEFAULT_CONFIG
    }


async def _least(client: "Client", topic: "TopicMetadata") -> str | None:
    return (await _described_configs(client, topic.name))["min.insync.replicas"].value


def _headline(topic: "TopicMetadata", settings: dict[str, str | None], *, of_old: bool) -> str:
    from penstock.types import uuid_text

    factor = len(next(iter(topic.partitions.values())).replicas) if topic.partitions else 0
    fields = [
        f"Topic: {topic.name}",
        *([] if of_old else [f"TopicId: {uuid_text(topic.id)}"]),
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {factor}",
        "Configs: " + ",".join(f"{name}={value}" for name, value in settings.items()),
    ]
    return "\t".join(fields)


def _line(
    topic: "TopicMetadata",
    partition: "PartitionMetadata",
    move: "OngoingReassignment | None",
    *,
    of_old: bool,
) -> str:
    leader = str(partition.leader) if partition.leader >= 0 else "none"
    fields = [
        f"\tTopic: {topic.name}",
        f"Partition: {partition.index}",
        f"Leader: {leader}",
        f"Replicas: {_joined(partition.replicas)}",
        f"Isr: {_joined(partition.isr)}",
    ]
    if move is not None:
        fields.append(f"Adding Replicas: {_joined(move.adding)}")
        fields.append(f"Removing Replicas: {_joined(move.removing)}")
    if not of_old:
        fields += ["Elr: ", "LastKnownElr: "]
    return "\t".join(fields)


def _joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _passes(only: str, partition: "PartitionMetadata", least: int, live: set["BrokerId"]) -> bool:
    match only:
        case "under-replicated-partitions":
            return len(partition.isr) < len(partition.replicas)
        case "under-min-isr-partitions":
            return len(partition.isr) < least
        case "at-min-isr-partitions":
            return len(partition.isr) == least
        case _:
            return partition.leader not in live


def failed(error: Exception, _words: Sequence[str]) -> str:
    from penstock.kafka_tools.messages import refusal_text

    return f"Error while executing topic command : {refusal_text(error)}"


TOOL = Tool(
    Table("kafka-topics", "Create, delete, describe, or change a topic.", OPTIONS),
    topics,
    failed,
    failed_on_stdout=True,
)
