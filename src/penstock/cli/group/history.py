"""A group's last rebalances, read from the HTTP server of its coordinator: Kafka's protocol has no
request for them.
"""

import click

from penstock.cli.output import is_data, iso_time, print_json, print_table
from penstock.cli.remote import Remote
from penstock.client.address import Address
from penstock.client.broker_page import http_address, read_page
from penstock.client.cluster import Client
from penstock.client.groups import describe_group, find_coordinator
from penstock.client.route import ToCoordinator
from penstock.coordinator.group.rebalance_log import Rebalances


def read_rebalances(remote: Remote, group: str) -> Rebalances:
    address = remote.run(lambda client: coordinator_address(client, group))
    return read_page(
        address, "/groups/rebalances", {"group": group}, Rebalances, timeout_ms=remote.timeout_ms
    )


async def coordinator_address(client: Client, group: str) -> Address:
    await describe_group(client, group)  # fails if there is no such group
    return await http_address(client, await find_coordinator(client, ToCoordinator(group)))


def print_rebalances(history: Rebalances) -> None:
    if not history.rebalances and history.under_way is None:
        click.echo(f"{history.group}: no rebalance since its coordinator loaded it")
        return
    rows: list[tuple[object, ...]] = [
        (
            iso_time(each.ended_ms) or "-",
            each.generation,
            each.members,
            f"{each.duration_ms / 1000:.3f}",
            each.reason,
        )
        for each in history.rebalances
    ]
    if history.under_way is not None:
        seconds = f"{history.under_way.for_ms / 1000:.3f}"
        rows.append(("in progress", "-", "-", seconds, history.under_way.reason))
    print_table(("ENDED", "GENERATION", "MEMBERS", "SECONDS", "REASON"), rows)


def show_rebalances(remote: Remote, group: str) -> None:
    history = read_rebalances(remote, group)
    if is_data():
        print_json(history)
    else:
        print_rebalances(history)
