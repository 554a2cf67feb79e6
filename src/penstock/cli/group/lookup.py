"""Groups with the lag of each of their partitions."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from penstock.cli.group.chosen import in_states
from penstock.cli.group.view import held_by, lag_row, partition_lags, share_row
from penstock.client.cluster import Client
from penstock.client.group_description import GroupDescription
from penstock.client.groups import describe_group, list_groups
from penstock.client.offsets import known_ends
from penstock.client.share_groups import SHARE, share_offsets
from penstock.clock import SystemClock


class DescribedGroup(NamedTuple):
    """A group, and a row for each of its partitions."""

    group: GroupDescription
    rows: list[dict[str, Any]]


async def described(client: Client, name: str) -> DescribedGroup:
    group = await describe_group(client, name)
    holders = held_by(group.members)
    if group.type == SHARE:
        shared = await share_offsets(client, name)
        ends = await known_ends(client, shared)
        rows = [share_row(tp, shared[tp], ends.get(tp), group.members) for tp in sorted(shared)]
        return DescribedGroup(group, rows)
    lags = await partition_lags(client, name, holders)
    now_ms = SystemClock().now_ms()
    return DescribedGroup(group, [lag_row(each, holders, now_ms) for each in lags])


async def described_groups(
    client: Client, names: Sequence[str], states: Collection[str]
) -> list[DescribedGroup]:
    """These groups, or all if none is named, filtered by state."""
    if not names:
        names = [each.id for each in in_states(await list_groups(client), states)]
    else:
        in_states((), states)  # raises for an unknown state
    found = [await described(client, each) for each in names]
    wanted = {each.lower() for each in states}
    return [each for each in found if not wanted or each.group.state.lower() in wanted]


def only_with_lag(found: Sequence[DescribedGroup]) -> list[DescribedGroup]:
    """The groups with lag, reduced to their lagging partitions."""
    behind = [each._replace(rows=[row for row in each.rows if row["lag"] != 0]) for each in found]
    return [each for each in behind if each.rows]
