"""`kafka-groups.sh`: lists groups of all types."""

from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Table, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.groups import GroupListing

TYPES = ("classic", "consumer", "share", "streams")
OPTIONS = (
    *CLUSTER,
    flag("list", "List the groups."),
    text("group-type", "TYPE", f"Only groups of this type: {', '.join(TYPES)}."),
    text("protocol", "PROTOCOL", "Only groups of this protocol type."),
    flag("consumer", "Only groups of consumers, of both protocols."),
    flag("share", "Only share groups."),
    flag("streams", "Only streams groups."),
)


def groups(args: Arguments) -> int:
    if not args.has("list"):
        raise UsageError("Command must include exactly one action: --list.")
    wanted = args.find("group-type")
    if wanted is not None and wanted.lower() not in TYPES:
        raise UsageError("--group-type must be a valid group type.")
    run(args, partial(_list, args))
    return 0


async def _list(args: Arguments, client: "Client") -> None:
    from penstock.client.groups import list_groups

    found = [each for each in await list_groups(client) if _passes(args, each)]
    width = max([20, *(len(each.id) for each in found)])
    print(f"{'GROUP':<{width}} {'TYPE':<20} {'PROTOCOL':<20}")
    for each in found:
        print(f"{each.id:<{width}} {each.type.capitalize():<20} {each.protocol_type:<21}")


def _passes(args: Arguments, group: "GroupListing") -> bool:
    kind = group.type.lower()
    wanted, protocol = args.find("group-type"), args.find("protocol")
    return (
        (wanted is None or kind == wanted.lower())
        and (protocol is None or group.protocol_type == protocol)
        and (
            not args.has("consumer")
            or kind == "consumer"
            or (kind == "classic" and group.protocol_type in {"consumer", ""})
        )
        and (not args.has("share") or kind == "share")
        and (not args.has("streams") or kind == "streams")
    )


TOOL = Tool(Table("kafka-groups", "This tool helps to list groups of all types.", OPTIONS), groups)
