"""`kafka-broker-api-versions.sh`: the APIs and versions that each broker offers."""

from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Table
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.wire.messages.api_versions import ApiVersion


def versions(args: Arguments) -> int:
    run(args, _print_versions)
    return 0


async def _print_versions(client: "Client") -> None:
    from penstock.client.admin import describe_cluster
    from penstock.client.broker_versions import broker_versions
    from penstock.client.route import ToBroker
    from penstock.wire.apis import APIS

    for broker in (await describe_cluster(client)).brokers.values():
        offered = {
            each.api_key: each
            for each in (await broker_versions(client, ToBroker(broker.id))).api_keys
        }
        print(
            f"{broker.address} (id: {broker.id} rack: {broker.rack or 'null'} isFenced: false) -> ("
        )
        keys = sorted({*offered, *APIS})
        rows = [_row(key, offered.get(key)) for key in keys]
        print(",\n".join(f"\t{row}" for row in rows))
        print(")")


def _row(key: int, offered: "ApiVersion | None") -> str:
    from penstock.wire.apis import APIS

    api = APIS.get(key)
    name = f"{api.name}({key})" if api else f"UNKNOWN({key})"
    if offered is None:
        return f"{name}: UNSUPPORTED"
    low, high = offered.min_version, offered.max_version
    text = f"{name}: {low} to {high}" if low != high else f"{name}: {low}"
    if api is None:
        return text
    usable = min(api.high, high)
    return f"{text} [usable: {usable if usable >= max(api.low, low) else 'none'}]"


TOOL = Tool(
    Table(
        "kafka-broker-api-versions",
        "This tool helps to retrieve broker version information.",
        CLUSTER,
    ),
    versions,
)
