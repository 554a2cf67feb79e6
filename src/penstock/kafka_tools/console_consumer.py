"""`kafka-console-consumer.sh`: prints records of topics."""

import sys
from collections.abc import Sequence

from penstock.kafka_tools.connection import command_settings
from penstock.kafka_tools.options import (
    BOOTSTRAP,
    BROKER_LIST,
    COMMAND_CONFIG,
    ZOOKEEPER,
    Option,
    Table,
    flag,
    number,
    text,
)
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.setting_hints import OLD_RESETS, hint
from penstock.kafka_tools.tool import Tool

OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    BROKER_LIST,
    ZOOKEEPER,
    COMMAND_CONFIG,
    text("topic", "TOPIC", "The topic."),
    text("include", "REGEX", "Topics by a regular expression.", also=("whitelist",)),
    number("partition", "N", "Only this partition."),
    text("offset", "OFFSET", "Where to start: a number, earliest or latest. [latest]"),
    flag("from-beginning", "Start at the earliest offset."),
    number("max-messages", "N", "Stop after so many records."),
    number("timeout-ms", "MS", "Stop when no record comes for so long."),
    text("group", "GROUP", "Read as a member of this group."),
    text(
        "isolation-level",
        "LEVEL",
        "read_committed or read_uncommitted.",
        default="read_uncommitted",
    ),
    text("formatter", "CLASS", "How records are printed."),
    text("formatter-property", "NAME=VALUE", "A property of the formatter.", repeats=True),
    text("formatter-config", "FILE", "Properties of the formatter."),
    text("property", "NAME=VALUE", "As --formatter-property.", repeats=True, old=True),
    text("command-property", "NAME=VALUE", "A consumer setting.", repeats=True),
    text("consumer-property", "NAME=VALUE", "As --command-property.", repeats=True, old=True),
    text("consumer.config", "FILE", "As --command-config.", old=True),
    text("key-deserializer", "CLASS", "Reads keys."),
    text("value-deserializer", "CLASS", "Reads values."),
    flag("skip-message-on-error", "Skip a record that cannot be printed."),
    flag("enable-systest-events", "Print shutdown_complete at the end."),
    flag("new-consumer", "Accepted, without effect.", old=True),
    flag("delete-consumer-offsets", "Accepted, without effect.", old=True),
)


def consume(args: Arguments) -> int:
    if args.has("topic") == args.has("include"):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    if args.has("partition") and not args.has("topic"):
        raise UsageError("The topic is required when partition is specified.")
    if args.has("offset") and not args.has("partition"):
        raise UsageError("The partition is required when offset is specified.")
    if args.has("from-beginning") and args.has("offset"):
        raise UsageError("Options from-beginning and offset cannot be specified together.")
    settings = consumer_settings(args)
    group = args.find("group") or settings.get("group.id")
    if args.has("group") and settings.get("group.id", group) != group:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match."
        )
    if args.has("partition") and args.has("group"):
        raise UsageError("Options group and partition cannot be specified together.")
    from penstock.kafka_tools import consume_run

    return consume_run.start(args, settings, None if args.has("partition") else group)


def consumer_settings(args: Arguments) -> dict[str, str]:
    """The consumer's settings from files and properties; old names get a hint."""
    properties = ("consumer-property", "command-property")
    settings = command_settings(args, "consumer.config", properties=properties)
    hint(settings, "consumer settings")
    given = settings.get("auto.offset.reset", "latest")
    if given in OLD_RESETS:
        print(
            f"consumer settings: auto.offset.reset={given}; did you mean {OLD_RESETS[given]}?",
            file=sys.stderr,
        )
        settings["auto.offset.reset"] = OLD_RESETS[given]
    return settings


TOOL = Tool(
    Table(
        "kafka-console-consumer",
        "This tool helps to read data from Kafka topics and outputs it to standard output.",
        OPTIONS,
    ),
    consume,
    lambda error, _: f"{error}",
)
