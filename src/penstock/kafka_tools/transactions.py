"""`kafka-transactions.sh`: lists, describes and aborts transactions, including hanging ones."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Table, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.pretty_table import print_columns
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.producers import ActiveProducer
    from penstock.types import TopicPartition

MAX_TIMEOUT_MINUTES = 15


def transactions(args: Arguments) -> int:
    match args.command:
        case "list":
            work = _list
        case "describe":
            args.require("transactional-id")
            work = _describe
        case "describe-producers":
            args.require("topic", "partition")
            work = _describe_producers
        case "find-hanging":
            if not args.has("broker-id", "topic"):
                raise UsageError(
                    "The `find-hanging` command requires either --topic or --broker-id to limit "
                    "the scope of the search"
                )
            work = _find_hanging
        case "abort":
            args.require("topic", "partition")
            producer = ("producer-id", "producer-epoch", "coordinator-epoch")
            if not args.has("start-offset") and not all(map(args.has, producer)):
                raise UsageError(
                    "The transaction to abort must be identified either with --start-offset or "
                    "with the three options --producer-id, --producer-epoch, and "
                    "--coordinator-epoch"
                )
            work = _abort
        case _:
            raise UsageError("kafka-transactions.sh: error: too few arguments")
    run(args, partial(work, args))
    return 0


async def _list(args: Arguments, client: "Client") -> None:
    from penstock.client.transaction_admin import list_transactions

    found = await list_transactions(
        client,
        running_longer_than_ms=args.number("duration-filter"),
        pattern=args.find("transactional-id-pattern"),
    )
    print_columns(
        ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
        [(each.id, each.coordinator, each.producer_id, each.state) for each in found],
    )


async def _describe(args: Arguments, client: "Client") -> None:
    from penstock.client.transaction_admin import describe_transaction
    from penstock.clock import SystemClock

    found = await describe_transaction(client, args.text("transactional-id"))
    started = found.start_ms if found.start_ms >= 0 else None
    row = (
        found.coordinator,
        found.id,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        "None" if started is None else started,
        "None" if started is None else SystemClock().now_ms() - started,
        ",".join(map(str, found.partitions)),
    )
    print_columns(
        (
            "CoordinatorId",
            "TransactionalId",
            "ProducerId",
            "ProducerEpoch",
            "TransactionState",
            "TransactionTimeoutMs",
            "CurrentTransactionStartTimeMs",
            "TransactionDurationMs",
            "TopicPartitions",
        ),
        [row],
    )


def _partition(args: Arguments) -> "TopicPartition":
    from penstock.types import TopicPartition

    return TopicPartition(args.text("topic"), args.number("partition"))


async def _producers(args: Arguments, client: "Client") -> "list[ActiveProducer]":
    from penstock.client.producers import describe_producers
    from penstock.types import BrokerId

    broker = args.find_number("broker-id")
    partition = _partition(args)
    found = await describe_producers(
        client, [partition], None if broker is None else BrokerId(broker)
    )
    return found[partition]


async def _describe_producers(args: Arguments, client: "Client") -> None:
    print_columns(
        (
            "ProducerId",
            "ProducerEpoch",
            "LatestCoordinatorEpoch",
            "LastSequence",
            "LastTimestamp",
            "CurrentTransactionStartOffset",
        ),
        [
            (
                each.id,
                each.epoch,
                each.coordinator_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.transaction_start if each.transaction_start >= 0 else "None",
            )
            for each in await _producers(args, client)
        ],
    )


async def _find_hanging(args: Arguments, client: "Client") -> None:
    from penstock.client.admin import list_topics
    from penstock.client.hanging import find_hanging
    from penstock.clock import SystemClock
    from penstock.types import BrokerId, TopicPartition

    broker, only = args.find_number("broker-id"), args.find_number("partition")
    topic = args.find("topic")
    partitions = [
        TopicPartition(each.name, index)
        for each in await list_topics(client)
        if topic in {None, each.name}
        for index, partition in each.partitions.items()
        if only in {None, index} and (broker is None or broker in partition.replicas)
    ]
    if topic is not None and not partitions:
        raise ToolError(f"topic {topic} has no such partition")
    now_ms = SystemClock().now_ms()
    found = await find_hanging(
        client,
        partitions,
        older_than_ms=args.number("max-transaction-timeout") * 60_000,
        now_ms=now_ms,
        broker=None if broker is None else BrokerId(broker),
    )
    print_columns(
        (
            "Topic",
            "Partition",
            "ProducerId",
            "ProducerEpoch",
            "CoordinatorEpoch",
            "StartOffset",
            "LastTimestamp",
            "Duration(min)",
        ),
        [
            (
                partition.topic,
                partition.partition,
                each.id,
                each.epoch,
                each.coordinator_epoch,
                each.transaction_start,
                each.last_timestamp,
                (now_ms - each.last_timestamp) // 60_000,
            )
            for partition, each in found
        ],
    )


async def _abort(args: Arguments, client: "Client") -> None:
    from penstock.client.producers import ActiveProducer
    from penstock.client.transaction_admin import abort_hanging
    from penstock.types import Offset, ProducerId

    partition = _partition(args)
    start = args.find_number("start-offset")
    if start is None:
        producer = ActiveProducer(
            ProducerId(args.number("producer-id")),
            args.number("producer-epoch"),
            -1,
            -1,
            # -1: the coordinator has never written a marker
            max(args.number("coordinator-epoch"), 0),
            Offset(-1),
        )
    else:
        found = [each for each in await _producers(args, client) if each.transaction_start == start]
        if not found:
            raise ToolError(
                f"Could not find any open transactions starting at offset {start} on partition "
                f"{partition}"
            )
        (producer,) = found
    await abort_hanging(client, partition, producer)


TOPIC = text("topic", "TOPIC", "The topic.")
PARTITION = number("partition", "N", "The partition.")
BROKER = number("broker-id", "ID", "The broker to ask; by default the leader.")


def failed(error: Exception, _words: Sequence[str]) -> str:
    from penstock.kafka_tools.messages import refusal_text

    return f"Error: {refusal_text(error)}"


TOOL = Tool(
    Table(
        "kafka-transactions",
        "This tool is used to analyze the transactional state of producers in the cluster. It can "
        "be used to detect and recover from hanging transactions.",
        CLUSTER,
        {
            "list": Table(
                "list",
                "List transactions.",
                (
                    number("duration-filter", "MS", "Only those that run longer.", default=-1),
                    text("transactional-id-pattern", "REGEX", "Only ids that match."),
                ),
            ),
            "describe": Table(
                "describe",
                "Describe the state of an active transactional id.",
                (text("transactional-id", "ID", "The transactional id."),),
            ),
            "describe-producers": Table(
                "describe-producers",
                "Describe the states of active producers of a partition.",
                (TOPIC, PARTITION, BROKER),
            ),
            "find-hanging": Table(
                "find-hanging",
                "Find hanging transactions.",
                (
                    BROKER,
                    TOPIC,
                    PARTITION,
                    number(
                        "max-transaction-timeout",
                        "MINUTES",
                        "How long a transaction may last.",
                        default=MAX_TIMEOUT_MINUTES,
                    ),
                ),
            ),
            "abort": Table(
                "abort",
                "Abort a hanging transaction.",
                (
                    TOPIC,
                    PARTITION,
                    number("start-offset", "OFFSET", "Where the transaction starts."),
                    number("producer-id", "ID", "Its producer."),
                    number("producer-epoch", "EPOCH", "The epoch of its producer."),
                    number("coordinator-epoch", "EPOCH", "The epoch of its coordinator."),
                ),
            ),
        },
    ),
    transactions,
    failed,
)
