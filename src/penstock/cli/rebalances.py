"""`penstock group describe --rebalances`: read from the HTTP port of the group's coordinator.

Kafka's protocol has no request for it.
"""

import click

from penstock.cli.broker_page import http_address, read_page
from penstock.cli.output import iso_time, print_table
from penstock.cli.remote import Remote
from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.client.groups import describe_group, find_coordinator
from penstock.coordinator.group.rebalance_log import Rebalances


def read_rebalances(remote: Remote, group: str) -> Rebalances:
    where = remote.run(lambda client: coordinator_address(client, group))
    return read_page(
        where, "/groups/rebalances", {"group": group}, Rebalances, timeout_ms=remote.timeout_ms
    )


async def coordinator_address(client: Client, group: str) -> Address:
    await describe_group(client, group)  # refused here if there is no such group
    return await http_address(client, await find_coordinator(client, group))


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
