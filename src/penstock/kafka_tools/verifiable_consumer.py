"""`kafka-verifiable-consumer.sh`: reads a topic in a group; prints events as lines of JSON."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.kafka_tools.connection import command_settings, run
from penstock.kafka_tools.options import BROKER_LIST, CLUSTER, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import Tool
from penstock.kafka_tools.verifiable_producer import event

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.consume import ConsumedRecord
    from penstock.types import Offset, TopicPartition

OPTIONS = (
    *CLUSTER,
    BROKER_LIST,
    text("topic", "TOPIC", "The topic.", required=True),
    text("group-id", "GROUP", "The group.", required=True),
    text("group-protocol", "PROTOCOL", "classic or consumer.", default="classic"),
    text("group-remote-assignor", "NAME", "The coordinator's assignor, for consumer."),
    text("group-instance-id", "ID", "Static membership."),
    number("max-messages", "N", "How many; -1: until it is stopped.", default=-1),
    number("session-timeout", "MS", "When a silent member leaves.", default=45_000),
    flag("verbose", "An event for each record."),
    flag("enable-autocommit", "Accepted: each poll is committed."),
    text("reset-policy", "earliest|latest|none", "Where a new group starts.", default="earliest"),
    text("assignment-strategy", "CLASS", "Accepted, without effect."),
    text("consumer.config", "FILE", "As --command-config.", old=True),
)


def consume(args: Arguments) -> int:
    args.require("topic", "group-id")
    settings = command_settings(args, "consumer.config")
    code = 0
    try:
        run(args, partial(_consume, args), settings, client_id="verifiable-consumer")
    except KeyboardInterrupt:
        code = 130
    event("shutdown_complete")
    return code


async def _consume(args: Arguments, client: "Client") -> None:
    from penstock.client.group_consumer import GroupConsumer, RebalanceListener
    from penstock.client.group_offsets import CommitFailed
    from penstock.client.group_settings import GroupProtocol, GroupSettings, OffsetReset

    class Rebalances(RebalanceListener):
        """Prints an event for each change of the assignment."""

        async def on_assigned(self, partitions: "Sequence[TopicPartition]") -> None:
            event("partitions_assigned", partitions=[_row(each) for each in sorted(partitions)])

        async def on_revoked(self, partitions: "Sequence[TopicPartition]") -> None:
            event("partitions_revoked", partitions=[_row(each) for each in sorted(partitions)])

    limit = args.number("max-messages")
    settings = GroupSettings(
        protocol=GroupProtocol(args.text("group-protocol").lower()),
        offset_reset=OffsetReset(args.text("reset-policy")),
        instance_id=args.find("group-instance-id"),
        session_timeout_ms=args.number("session-timeout"),
        server_assignor=args.find("group-remote-assignor"),
    )
    event("startup_complete")
    count = 0
    async with GroupConsumer(
        client, args.text("group-id"), settings, listener=Rebalances()
    ) as consumer:
        consumer.subscribe([args.text("topic")])
        while limit < 0 or count < limit:
            records = (await consumer.poll())[: None if limit < 0 else limit - count]
            if not records:
                continue
            count += len(records)
            offsets = _consumed(records, verbose=args.has("verbose"))
            try:
                await consumer.commit(offsets)
                event("offsets_committed", offsets=_offsets(offsets), success=True)
            except CommitFailed as failed:
                event(
                    "offsets_committed",
                    offsets=_offsets(offsets),
                    success=False,
                    error=str(failed),
                )


def _row(partition: "TopicPartition") -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _offsets(offsets: "Mapping[TopicPartition, Offset]") -> list[dict[str, Any]]:
    return [{**_row(each), "offset": offset} for each, offset in offsets.items()]


def record_event(consumed: "ConsumedRecord") -> None:
    key, value = consumed.record.key, consumed.record.value
    event(
        "record_data",
        key=None if key is None else bytes(key).decode(errors="replace"),
        value=None if value is None else bytes(value).decode(errors="replace"),
        **_row(consumed.partition),
        offset=consumed.record.offset,
    )


def _consumed(records: "list[ConsumedRecord]", *, verbose: bool) -> "dict[TopicPartition, Offset]":
    """Print the events of these records; returns the offsets after them."""
    from penstock.types import Offset

    seen: dict[TopicPartition, list[int]] = {}
    for each in records:
        seen.setdefault(each.partition, []).append(each.record.offset)
        if verbose:
            record_event(each)
    event(
        "records_consumed",
        count=len(records),
        partitions=[
            {**_row(each), "count": len(at), "minOffset": at[0], "maxOffset": at[-1]}
            for each, at in seen.items()
        ],
    )
    return {each: Offset(at[-1] + 1) for each, at in seen.items()}


TOOL = Tool(
    Table(
        "kafka-verifiable-consumer",
        "This tool consumes messages from a specific topic and emits consumer events (e.g. group "
        "rebalances, received messages, and offsets committed) as JSON objects to STDOUT.",
        OPTIONS,
    ),
    consume,
)
