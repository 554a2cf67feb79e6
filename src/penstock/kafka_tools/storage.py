"""`kafka-storage.sh`: generates cluster ids, and formats log directories."""

import secrets
from pathlib import Path

from penstock.kafka_tools.connection import read_properties
from penstock.kafka_tools.options import Table, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool, ToolError


def storage(args: Arguments) -> int:
    match args.command:
        case "random-uuid":
            print(random_id())
            return 0
        case "format":
            return _format(args)
        case "info":
            return _info(args)
        case "version-mapping" | "feature-dependencies":
            raise ToolError(f"{args.command}: Penstock has no metadata versions")
        case _:
            raise UsageError("kafka-storage: error: too few arguments")


def random_id() -> str:
    """Sixteen random bytes in base64url without a leading dash, which would look like an option."""
    from penstock.types import Uuid, uuid_text

    while True:
        found = uuid_text(Uuid(secrets.token_bytes(16)))
        if not found.startswith("-"):
            return found


def _settings(args: Arguments) -> dict[str, str]:
    args.require("config")
    return read_properties(args.text("config"), "--config")


def log_directories(settings: dict[str, str]) -> list[Path]:
    """The log.dirs in a broker's settings."""
    given = settings.get("log.dirs") or settings.get("log.dir") or "/tmp/kafka-logs"  # noqa: S108
    return [Path(each.strip()) for each in given.split(",") if each.strip()]


def _format(args: Arguments) -> int:
    from penstock.log.meta_properties import FILE_NAME, MetaProperties, encode_meta_properties
    from penstock.types import parse_uuid

    settings, cluster = _settings(args), args.text("cluster-id")
    try:
        parse_uuid(cluster)
    except ValueError:
        raise ToolError(
            f"Cluster ID string {cluster} does not appear to be a valid UUID: make one with "
            "kafka-storage.sh random-uuid"
        ) from None
    broker = settings.get("node.id") or settings.get("broker.id")
    if args.has("add-scram"):
        raise ToolError("--add-scram: create users with kafka-configs.sh once the broker runs")
    directories = log_directories(settings)
    formatted = [each for each in directories if (each / FILE_NAME).exists()]
    if formatted and not args.has("ignore-formatted"):
        raise ToolError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore "
            "this directory and format the others."
        )
    if len(formatted) == len(directories):
        print("All of the log directories are already formatted.")
    identity = MetaProperties(None if broker is None else int(broker), cluster)
    for each in directories:
        if each not in formatted:
            print(f"Formatting metadata directory {each} with cluster id {cluster}.")
            each.mkdir(parents=True, exist_ok=True)
            (each / FILE_NAME).write_bytes(encode_meta_properties(identity))
    return 0


def _info(args: Arguments) -> int:
    from penstock.log.meta_properties import FILE_NAME, decode_meta_properties

    directories = log_directories(_settings(args))
    print("Found log directories:" if len(directories) > 1 else "Found log directory:")
    for each in directories:
        print(f"  {each}")
    print()
    problems = [each for each in directories if not (each / FILE_NAME).exists()]
    for each in directories:
        if each not in problems:
            print(f"Found metadata: {decode_meta_properties((each / FILE_NAME).read_bytes())}")
    if problems:
        print("Found problem:" if len(problems) == 1 else "Found problems:")
        for each in problems:
            print(f"  {each} is not formatted.")
    return 1 if problems else 0


CONFIG = text("config", "FILE", "The broker's server.properties.", also=("c",), required=True)
TOOL = Tool(
    Table(
        "kafka-storage",
        "The Kafka storage tool.",
        (),
        {
            "info": Table("info", "Get information about log directories.", (CONFIG,)),
            "format": Table(
                "format",
                "Format the log directories of a broker.",
                (
                    CONFIG,
                    text("cluster-id", "ID", "The id of the cluster.", also=("t",)),
                    flag("ignore-formatted", "Skip formatted directories.", also=("g",)),
                    flag("standalone", "Accepted; a broker alone needs no quorum.", also=("s",)),
                    flag("no-initial-controllers", "Accepted.", also=("N",)),
                    text("initial-controllers", "LIST", "Accepted.", also=("I",)),
                    text("release-version", "VERSION", "Accepted.", also=("r",)),
                    text("feature", "F=LEVEL", "Accepted.", also=("f",), repeats=True),
                    text("add-scram", "CREDENTIAL", "Not offered.", also=("S",), repeats=True),
                ),
            ),
            "version-mapping": Table("version-mapping", "Not offered.", ()),
            "feature-dependencies": Table("feature-dependencies", "Not offered.", ()),
            "random-uuid": Table("random-uuid", "Print a random id.", ()),
        },
    ),
    storage,
)
