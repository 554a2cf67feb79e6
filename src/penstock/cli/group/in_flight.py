"""The records that a share group has in flight, read from the HTTP servers of the brokers that lead
its partitions: Kafka's protocol has no request for them.
"""

import click

from penstock.broker.pages.share_groups import InFlightRun
from penstock.cli.output import is_data, print_json, print_table
from penstock.cli.partition import warned
from penstock.cli.remote import Remote
from penstock.client.address import Address
from penstock.client.broker_page import http_address, read_page
from penstock.client.cluster import Client
from penstock.client.groups import describe_group
from penstock.client.share_groups import SHARE

COLUMNS = ("TOPIC", "PARTITION", "OFFSETS", "STATE", "DELIVERIES", "MEMBER", "SECONDS LEFT")


def show_records(remote: Remote, group: str) -> None:
    found = read_records(remote, group)
    if is_data():
        print_json(found)
    elif not found:
        click.echo(f"{group}: no records in flight")
    else:
        print_table(COLUMNS, [row(each) for each in found])


def read_records(remote: Remote, group: str) -> list[InFlightRun]:
    found: list[InFlightRun] = []
    for address in remote.run(lambda client: addresses(client, group)):
        with warned():
            found += read_page(
                address,
                "/groups/in-flight",
                {"group": group},
                list[InFlightRun],
                timeout_ms=remote.timeout_ms,
            )
    return sorted(found, key=lambda each: (each.topic, each.partition, each.first))


async def addresses(client: Client, group: str) -> list[Address]:
    """The HTTP addresses of all brokers, because any may lead a partition that the group reads."""
    described = await describe_group(client, group)
    if described.type != SHARE:
        raise click.UsageError(f"--records is for share groups; {group} is not one")
    found: list[Address] = []
    for broker in (await client.cluster()).brokers.values():
        with warned():
            found.append(await http_address(client, broker))
    return found


def row(each: InFlightRun) -> tuple[object, ...]:
    left_ms = each.lock_ms if each.lock_ms is not None else each.invisible_ms
    return (
        each.topic,
        each.partition,
        f"{each.first}-{each.last}" if each.last > each.first else f"{each.first}",
        each.state,
        each.deliveries,
        each.member or "-",
        "-" if left_ms is None else f"{left_ms / 1000:.1f}",
    )
