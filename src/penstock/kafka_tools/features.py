"""`kafka-features.sh`: describes and changes the feature levels of a cluster."""

import sys
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Option, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client

DONE = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}


def features(args: Arguments) -> int:
    if args.has("bootstrap-controller"):
        raise ToolError("--bootstrap-controller: there is no KRaft; use --bootstrap-server")
    if args.command == "describe":
        run(args, _describe)
        return 0
    if args.command is None:
        raise UsageError("Command line error: too few arguments. Type --help for help.")
    if args.command not in DONE:
        raise ToolError(f"{args.command}: Penstock has no metadata versions")
    return run(args, partial(_update, args, _levels(args)))


def _levels(args: Arguments) -> dict[str, int]:
    if args.has("metadata", "release-version"):
        raise ToolError("--release-version: Penstock has no metadata versions; use --feature")
    if not args.has("feature"):
        raise ToolError(f"You must specify at least one feature to {args.command}")
    levels: dict[str, int] = {}
    for given in args.all("feature"):
        name, equals, level = given.partition("=")
        if args.command == "disable":
            name, level = given, "0"
        elif not equals:
            raise ToolError(f"Can't parse feature=level string {given}: equals sign not found.")
        if not level.isdigit():
            raise ToolError(
                f"Can't parse feature=level string {given}: unable to parse {level} as a short."
            )
        if name in levels:
            raise ToolError(f"Feature {name} was specified more than once.")
        levels[name] = int(level)
    return levels


async def _describe(client: "Client") -> None:
    from penstock.client.features import describe_features

    found = await describe_features(client)
    for each in found.features.values():
        epoch = "-" if found.epoch is None else str(found.epoch)
        print(
            f"Feature: {each.name:<42}SupportedMinVersion: {each.low:<17}"
            f"SupportedMaxVersion: {each.high:<17}FinalizedVersionLevel: {each.level:<17}"
            f"Epoch: {epoch}"
        )


async def _update(args: Arguments, levels: dict[str, int], client: "Client") -> int:
    from penstock.client.errors import BrokerRefused
    from penstock.client.features import update_features
    from penstock.kafka_tools.messages import refusal_text
    from penstock.wire.enums import UpgradeType

    upgrade = UpgradeType.UPGRADE
    if args.command != "upgrade":
        upgrade = UpgradeType.UNSAFE_DOWNGRADE if args.has("unsafe") else UpgradeType.SAFE_DOWNGRADE
    verb, done = args.command or "", DONE[args.command or ""]
    tried = args.has("dry-run")
    try:
        errors = dict(await update_features(client, levels, upgrade, validate_only=tried))
    except BrokerRefused as refused:
        errors = dict.fromkeys(levels, refused)
    failures = 0
    for name in sorted(levels):
        to = "" if verb == "disable" else f" to {levels[name]}"
        error = errors[name]
        if error is None:
            print(f"{name} {'can be' if tried else 'was'} {done}{to}.")
        else:
            failures += 1
            print(f"{'Can not' if tried else 'Could not'} {verb} {name}{to}. {refusal_text(error)}")
    if failures:
        print(f"{failures} out of {len(levels)} operation(s) failed.", file=sys.stderr)
    return 1 if failures else 0


FEATURE = text("feature", "FEATURE=LEVEL", "A feature and its level; repeatable.", repeats=True)
DRY_RUN = flag("dry-run", "Only validate.")
UNSAFE = flag("unsafe", "Also where metadata may be lost.")
RELEASE: tuple[Option, ...] = (
    text("metadata", "VERSION", "Not offered."),
    text("release-version", "VERSION", "Not offered."),
)
TOOL = Tool(
    Table(
        "kafka-features",
        "This tool manages feature flags in Kafka.",
        (*CLUSTER, text("bootstrap-controller", "HOST:PORT", "KRaft controllers.")),
        {
            "describe": Table(
                "describe",
                "Describes the current active feature flags.",
                (number("node-id", "ID", "Accepted; the controller is asked."),),
            ),
            "upgrade": Table(
                "upgrade", "Upgrade one or more feature flags.", (FEATURE, DRY_RUN, *RELEASE)
            ),
            "downgrade": Table(
                "downgrade",
                "Downgrade one or more feature flags.",
                (FEATURE, DRY_RUN, UNSAFE, *RELEASE),
            ),
            "disable": Table(
                "disable", "Disable one or more feature flags.", (FEATURE, DRY_RUN, UNSAFE)
            ),
            "version-mapping": Table("version-mapping", "Not offered.", RELEASE),
            "feature-dependencies": Table("feature-dependencies", "Not offered.", (FEATURE,)),
        },
    ),
    features,
)
