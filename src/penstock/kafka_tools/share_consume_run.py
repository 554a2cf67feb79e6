"""Reads and prints for the console share consumer."""

import sys
import time
from collections.abc import Mapping
from functools import partial

from penstock.client.cluster import Client
from penstock.client.share_consumer import ShareConsumer, SharedRecord
from penstock.errors import ConfigError
from penstock.kafka_tools.consume_run import POLL_MS, Tally, chosen_formatter, until_ended
from penstock.kafka_tools.formatters import Formatter
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import ToolError
from penstock.wire.enums import AcknowledgeType

MAX_RECORDS = "500"


def start(args: Arguments, settings: Mapping[str, str], group: str) -> int:
    tally = Tally()
    work = partial(_consume, args, max_records(settings), group, tally)
    return until_ended(args, settings, tally, work, "console-share-consumer")


def max_records(settings: Mapping[str, str]) -> int:
    given = settings.get("max.poll.records", MAX_RECORDS)
    if not given.isdigit() or not int(given):
        raise ConfigError(f"max.poll.records is {given!r}, must be a number above 0")
    return int(given)


async def _consume(
    args: Arguments, max_records: int, group: str, tally: Tally, client: Client
) -> None:
    """Print until the limit or the timeout. Releases acquired but unprinted records at the end."""
    topic, limit = args.text("topic"), args.find_number("max-messages")
    formatter = await chosen_formatter(args, client, await client.existing_topics([topic]))
    patience_ms = args.find_number("timeout-ms")
    last = time.monotonic()
    async with ShareConsumer(client, group, [topic], max_records=max_records) as consumer:
        while limit is None or tally.printed < limit:
            records = await consumer.poll(POLL_MS)
            left = len(records) if limit is None else limit - tally.printed
            for each in records[:left]:
                consumer.acknowledge([each], _printed(args, formatter, each))
                tally.printed += 1
            sys.stdout.flush()  # raises if the reader has closed the pipe
            for refusal in (await consumer.commit()).values():
                if refusal is not None:
                    print(refusal, file=sys.stderr)
            if records:
                last = time.monotonic()
            elif patience_ms is not None and (time.monotonic() - last) * 1000 >= patience_ms:
                break


def _printed(args: Arguments, formatter: Formatter, record: SharedRecord) -> AcknowledgeType:
    """Print a record; returns how to acknowledge it."""
    try:
        line = formatter(record)
    except ToolError:
        if not args.has("reject-message-on-error"):
            raise
        return AcknowledgeType.REJECT
    if line is not None:
        sys.stdout.buffer.write(line)
    if args.has("reject"):
        return AcknowledgeType.REJECT
    return AcknowledgeType.RELEASE if args.has("release") else AcknowledgeType.ACCEPT
