"""`kafka-verifiable-producer.sh`: writes increasing numbers; prints each result as a JSON line."""

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.kafka_tools.connection import command_settings, run
from penstock.kafka_tools.options import BROKER_LIST, CLUSTER, Table, number, text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.produce import ProducerRecord

CHUNK = 500
OPTIONS = (
    *CLUSTER,
    BROKER_LIST,
    text("topic", "TOPIC", "The topic.", required=True),
    number("max-messages", "N", "How many; -1: until it is stopped.", default=-1),
    number("throughput", "N", "Records per second at most; -1: no limit.", default=-1),
    number("acks", "ACKS", "Who acknowledges: 0, 1, or -1 for all.", default=-1),
    text("producer.config", "FILE", "As --command-config.", old=True),
    number("message-create-time", "MS", "Timestamp of the first record.", default=-1),
    text("value-prefix", "PREFIX", "Stands before each value, with a dot."),
    number("repeating-keys", "N", "Keys from 0 to N-1, again and again."),
)


def produce(args: Arguments) -> int:
    args.require("topic")
    settings = command_settings(args, "producer.config")
    sent, acked = [0], [0]
    started = time.monotonic()
    code = 0
    try:
        work = partial(_produce, args, settings, sent, acked)
        run(args, work, settings, client_id="verifiable-producer")
    except KeyboardInterrupt:
        code = 130
    event("shutdown_complete")
    seconds = max(time.monotonic() - started, 1e-3)
    event(
        "tool_data",
        sent=sent[0],
        acked=acked[0],
        target_throughput=args.number("throughput"),
        avg_throughput=acked[0] / seconds,
    )
    return code


def event(name: str, **fields: Any) -> None:
    """Print a line of JSON with the time and the event's name."""
    import msgspec

    row = {"timestamp": round(time.time() * 1000), "name": name, **fields}
    print(msgspec.json.encode(row).decode(), flush=True)


def _record(args: Arguments, index: int) -> "ProducerRecord":
    from penstock.client.produce import ProducerRecord

    prefix, keys = args.find("value-prefix"), args.find_number("repeating-keys")
    first_ms = args.number("message-create-time")
    value = str(index) if prefix is None else f"{prefix}.{index}"
    return ProducerRecord(
        args.text("topic"),
        value.encode(),
        None if keys is None else str(index % keys).encode(),
        timestamp=None if first_ms < 0 else first_ms + index,
    )


async def _produce(
    args: Arguments,
    settings: Mapping[str, str],
    sent: list[int],
    acked: list[int],
    client: "Client",
) -> None:
    import asyncio

    from penstock.client.errors import BrokerRefused
    from penstock.client.new_producer import new_producer
    from penstock.client.properties import producer_settings
    from penstock.kafka_tools.messages import exception_name, refusal_text

    wanted = producer_settings({"acks": str(args.number("acks")), **settings})
    if wanted.transactional_id is not None:
        raise ToolError("transactional.id: this tool writes no transactions")
    producer = new_producer(client, wanted, create_topics=True)
    total, per_second = args.number("max-messages"), args.number("throughput")
    event("startup_complete")
    started = time.monotonic()
    while total < 0 or sent[0] < total:
        due = sent[0] + CHUNK
        if per_second > 0:
            due = min(due, int((time.monotonic() - started) * per_second) + 1)
        if total >= 0:
            due = min(due, total)
        if due <= sent[0]:
            await asyncio.sleep(min(1 / per_second, 0.05))
            continue
        records = [_record(args, index) for index in range(sent[0], due)]
        sent[0] = due
        outcomes = await producer.deliver(records, past_refused=True)
        for record, outcome in zip(records, outcomes, strict=True):
            fields: dict[str, Any] = {
                "key": None if record.key is None else record.key.decode(),
                "value": (record.value or b"").decode(),
            }
            if isinstance(outcome, BrokerRefused) or outcome is None:
                error = outcome or BrokerRefused(-1, "not sent")
                event(
                    "producer_send_error",
                    exception=f"class {exception_name(error)}",
                    message=refusal_text(error),
                    topic=record.topic,
                    **fields,
                )
            else:
                acked[0] += 1
                event(
                    "producer_send_success",
                    **fields,
                    offset=outcome.offset,
                    topic=outcome.partition.topic,
                    partition=outcome.partition.partition,
                )


TOOL = Tool(
    Table(
        "kafka-verifiable-producer",
        "This tool produces increasing integers to the specified topic and prints JSON metadata "
        'to stdout on each "send" request, making externally visible which messages have been '
        "acked and which have not.",
        OPTIONS,
    ),
    produce,
)
