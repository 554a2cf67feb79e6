"""`kafka-simple-consumer-shell.sh`, which current Kafka no longer has: prints one partition."""

from penstock.kafka_tools.console_consumer import consumer_settings
from penstock.kafka_tools.options import (
    BOOTSTRAP,
    BROKER_LIST,
    COMMAND_CONFIG,
    ZOOKEEPER,
    Table,
    flag,
    number,
    text,
)
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import Tool

OPTIONS = (
    BROKER_LIST,
    BOOTSTRAP,
    ZOOKEEPER,
    COMMAND_CONFIG,
    text("topic", "TOPIC", "The topic.", required=True),
    number("partition", "N", "The partition.", default=0),
    text("offset", "OFFSET", "Where to start; -2 is the beginning, -1 the end.", default="-2"),
    number("replica", "ID", "Accepted: the leader is read.", default=-1),
    number("fetchsize", "BYTES", "Accepted, without effect."),
    number("max-messages", "N", "Stop after so many records."),
    number("max-wait-ms", "MS", "Accepted, without effect."),
    flag("no-wait-at-logend", "Stop at the end of the log."),
    number("timeout-ms", "MS", "Stop when no record comes for so long."),
    flag("print-offsets", "Print offsets as well."),
    text("formatter", "CLASS", "How records are printed."),
    text("property", "NAME=VALUE", "A property of the formatter.", repeats=True),
    text("clientId", "ID", "Accepted, without effect."),
    flag("skip-message-on-error", "Skip a record that cannot be printed."),
)


def consume(args: Arguments) -> int:
    from penstock.kafka_tools import consume_run

    args.require("topic")
    return consume_run.start(args, consumer_settings(args), None)


TOOL = Tool(
    Table(
        "kafka-simple-consumer-shell",
        "A low-level tool for fetching data directly from a particular replica.",
        OPTIONS,
    ),
    consume,
    lambda error, _: f"{error}",
)
