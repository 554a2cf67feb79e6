"""Selects the groups of a command."""

from collections.abc import Collection, Sequence

import click

from penstock.cli.names import GROUP_NAME
from penstock.client.groups import GroupListing
from penstock.errors import ConfigError

GROUPS = click.argument("names", metavar="GROUP...", nargs=-1, required=True, type=GROUP_NAME)
NAME = click.argument("name", metavar="GROUP", type=GROUP_NAME)
STATE = click.option(
    "--state",
    "states",
    multiple=True,
    help="Only groups in this state, such as Stable or Empty; repeatable.",
)
STATES = (
    "Assigning",
    "CompletingRebalance",
    "Dead",
    "Empty",
    "NotReady",
    "PreparingRebalance",
    "Reconciling",
    "Stable",
)


def in_states(groups: Sequence[GroupListing], states: Collection[str]) -> list[GroupListing]:
    """The groups in these states, ignoring case. An unknown state is an error, not no groups."""
    known = {each.lower(): each for each in STATES}
    for each in states:
        if each.lower() not in known:
            raise ConfigError(f"--state {each}: must be one of {', '.join(STATES)}")
    wanted = {each.lower() for each in states}
    return [each for each in groups if not wanted or each.state.lower() in wanted]
