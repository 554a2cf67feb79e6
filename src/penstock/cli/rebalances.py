"""`penstock group describe --rebalances`: read from the HTTP port of the group's coordinator.

Kafka's protocol has no request for it.
"""

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

import click
import msgspec

from penstock.cli.output import iso_time, print_table
from penstock.cli.remote import Remote
from penstock.client.address import Address, parse_addresses
from penstock.client.cluster import Client
from penstock.client.configs import Resource, ResourceType, describe_configs
from penstock.client.groups import describe_group, find_coordinator
from penstock.client.refusal import ConnectionFailed, NoAnswer
from penstock.coordinator.group.rebalance_log import Rebalances
from penstock.errors import ConfigError, ProtocolError

SETTING = "penstock.http.listen"
WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - where it listens, not where we do


def read_rebalances(remote: Remote, group: str) -> Rebalances:
    where = remote.run(lambda client: http_address(client, group))
    path = f"/groups/rebalances?{urlencode({'group': group})}"
    connection = HTTPConnection(where.host, where.port, timeout=remote.timeout_ms / 1000)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except TimeoutError:
        raise NoAnswer(f"{where} ({SETTING} of the coordinator) did not answer in time") from None
    except (OSError, HTTPException) as error:
        raise ConnectionFailed(
            f"{where} ({SETTING} of the coordinator) cannot be reached: {error}"
        ) from None
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        raise ProtocolError(f"{where}{path}: {response.status} {body.decode(errors='replace')}")
    try:
        return msgspec.json.decode(body, type=Rebalances)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"{where}{path}: {error}") from None


async def http_address(client: Client, group: str) -> Address:
    await describe_group(client, group)  # refused here if there is no such group
    coordinator = await find_coordinator(client, group)
    resource = Resource(ResourceType.BROKER, str(coordinator.id))
    entry = (await describe_configs(client, resource, names=[SETTING])).get(SETTING)
    if entry is None or not entry.value:
        raise ConfigError(
            f"broker {coordinator.id} coordinates {group} and serves no HTTP, where its rebalances "
            f"are read: set {SETTING} on it"
        )
    (told,) = parse_addresses(entry.value)
    return Address(coordinator.address.host, told.port) if told.host in WILDCARDS else told


def print_rebalances(told: Rebalances) -> None:
    if not told.rebalances and told.under_way is None:
        click.echo(f"{told.group}: no rebalance since its coordinator has it")
        return
    rows: list[tuple[object, ...]] = [
        (
            iso_time(each.ended_ms) or "-",
            each.generation,
            each.members,
            f"{each.duration_ms / 1000:.3f}",
            each.reason,
        )
        for each in told.rebalances
    ]
    if told.under_way is not None:
        seconds = f"{told.under_way.for_ms / 1000:.3f}"
        rows.append(("under way", "-", "-", seconds, told.under_way.reason))
    print_table(("ENDED", "GENERATION", "MEMBERS", "SECONDS", "REASON"), rows)
