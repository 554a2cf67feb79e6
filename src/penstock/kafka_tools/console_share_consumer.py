"""`kafka-console-share-consumer.sh`: prints records as a member of a share group."""

from collections.abc import Sequence

from penstock.kafka_tools.connection import command_settings
from penstock.kafka_tools.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option,
    Table,
    flag,
    number,
    text,
)
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool

DEFAULT_GROUP = "console-share-consumer"
OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    text("topic", "TOPIC", "The topic."),
    text("group", "GROUP", f"The share group. [{DEFAULT_GROUP}]"),
    number("max-messages", "N", "Stop after so many records."),
    number("timeout-ms", "MS", "Stop when no record comes for so long."),
    flag("reject", "Reject records as they are printed: the group does not deliver them again."),
    flag("release", "Release records as they are printed: the group gives them out again."),
    flag("reject-message-on-error", "Reject a record that cannot be printed, and go on."),
    text("formatter", "CLASS", "How records are printed."),
    text("formatter-property", "NAME=VALUE", "A property of the formatter.", repeats=True),
    text("formatter-config", "FILE", "Properties of the formatter."),
    text("property", "NAME=VALUE", "As --formatter-property.", repeats=True),
    text("command-property", "NAME=VALUE", "A consumer setting.", repeats=True),
    text("consumer-property", "NAME=VALUE", "As --command-property.", repeats=True),
    text("consumer-config", "FILE", "As --command-config."),
    text("key-deserializer", "CLASS", "Reads keys."),
    text("value-deserializer", "CLASS", "Reads values."),
    flag("enable-systest-events", "Print shutdown_complete at the end."),
)


def consume(args: Arguments) -> int:
    args.require("bootstrap-server")
    if not args.has("topic"):
        raise UsageError("--topic is a required argument")
    if args.has("reject") and args.has("release"):
        raise UsageError("At most one of --reject and --release may be specified.")
    for new, old in (
        ("command-property", "consumer-property"),
        ("command-config", "consumer-config"),
    ):
        if args.has(new) and args.has(old):
            raise UsageError(f"Options --{old} and --{new} cannot be specified together.")
    properties = ("consumer-property", "command-property")
    settings = command_settings(args, "consumer-config", properties=properties)
    group = args.find("group") or settings.get("group.id") or DEFAULT_GROUP
    if settings.get("group.id", group) != group:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer-config') do not match. Detected group ids: "
            f"'{group}', '{settings['group.id']}'"
        )
    from penstock.kafka_tools.share_consume_run import start

    return start(args, settings, group)


TOOL = Tool(
    Table(
        "kafka-console-share-consumer",
        "This tool helps to read data from Kafka topics using share groups and outputs it to "
        "standard output.",
        OPTIONS,
    ),
    consume,
    lambda error, _: f"{error}",
)
