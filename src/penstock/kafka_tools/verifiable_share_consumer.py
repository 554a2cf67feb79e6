"""`kafka-verifiable-share-consumer.sh`: reads in a share group; prints events as lines of JSON."""

from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.kafka_tools.connection import command_settings, run
from penstock.kafka_tools.options import BOOTSTRAP, COMMAND_CONFIG, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool
from penstock.kafka_tools.verifiable_consumer import record_event
from penstock.kafka_tools.verifiable_producer import event

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.share_consumer import SharedRecord
    from penstock.types import TopicPartition

MODES = ("auto", "sync", "async")
RESETS = ("", "earliest", "latest")
OPTIONS = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    text("topic", "TOPIC", "The topic."),
    text("group-id", "GROUP", "The share group."),
    number("max-messages", "N", "How many; -1: until it is stopped.", default=-1),
    flag("verbose", "An event for each record."),
    text("acknowledgement-mode", "MODE", f"{', '.join(MODES)}: all are awaited.", default="auto"),
    text("offset-reset-strategy", "earliest|latest", "Where the group starts.", default=""),
)


def consume(args: Arguments) -> int:
    args.require("topic", "group-id")
    if args.text("acknowledgement-mode") not in MODES:
        raise UsageError(f"--acknowledgement-mode must be one of {', '.join(MODES)}")
    if args.text("offset-reset-strategy") not in RESETS:
        raise UsageError("--offset-reset-strategy must be earliest or latest")
    code = 0
    try:
        settings = command_settings(args)
        run(args, partial(_consume, args), settings, client_id="verifiable-share-consumer")
    except KeyboardInterrupt:
        code = 130
    event("shutdown_complete")
    return code


async def _consume(args: Arguments, client: "Client") -> None:
    from penstock.client.share_consumer import ShareConsumer
    from penstock.wire.enums import AcknowledgeType

    group, limit, count = args.text("group-id"), args.number("max-messages"), 0
    event("startup_complete")
    if args.text("offset-reset-strategy"):
        await _set_reset(client, group, args.text("offset-reset-strategy"))
    async with ShareConsumer(client, group, [args.text("topic")]) as consumer:
        while limit < 0 or count < limit:
            records = await consumer.poll()
            if not records:
                continue
            count += len(records)
            offsets = _consumed(records, verbose=args.has("verbose"))
            consumer.acknowledge(records, AcknowledgeType.ACCEPT)
            for partition, error in (await consumer.commit()).items():
                listed = _partitions({partition: offsets[partition]})
                outcome: dict[str, Any] = {"success": error is None}
                if error is not None:
                    outcome["error"] = str(error)
                event(
                    "offsets_acknowledged",
                    count=len(offsets[partition]),
                    partitions=listed,
                    **outcome,
                )


async def _set_reset(client: "Client", group: str, strategy: str) -> None:
    from penstock.client.configs import Resource, alter_configs
    from penstock.config.resource_type import ConfigResourceType

    resource = Resource(ConfigResourceType.GROUP, group)
    await alter_configs(client, resource, {"share.auto.offset.reset": strategy})
    event("offset_reset_strategy_set", offsetResetStrategy=strategy)


def _consumed(records: "list[SharedRecord]", *, verbose: bool) -> "dict[TopicPartition, list[int]]":
    """Print the events of these records; returns their offsets."""
    seen: dict[TopicPartition, list[int]] = {}
    for each in records:
        seen.setdefault(each.partition, []).append(each.record.offset)
        if verbose:
            record_event(each)
    event("records_consumed", count=len(records), partitions=_partitions(seen))
    return seen


def _partitions(offsets: "dict[TopicPartition, list[int]]") -> list[dict[str, Any]]:
    return [
        {"topic": each.topic, "partition": each.partition, "count": len(at), "offsets": at}
        for each, at in offsets.items()
    ]


TOOL = Tool(
    Table(
        "kafka-verifiable-share-consumer",
        "This tool creates a share group and consumes messages from a specific topic and emits "
        "share consumer events (e.g. share consumer startup, received messages, and offsets "
        "acknowledged) as JSON objects to STDOUT.",
        OPTIONS,
    ),
    consume,
)
