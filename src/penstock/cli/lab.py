"""`penstock lab`: replication before one's eyes."""

import logging

import click

from penstock.local.lab.narration import Narrator
from penstock.local.lab.scenarios import BY_HAND, SCENARIOS


class Scenarios(click.Group):
    """One command for each scenario."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(SCENARIOS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        run = SCENARIOS.get(name)
        if run is None:
            return None
        where = (
            "Two replicas, moved by hand in one process; nothing else is needed."
            if name in BY_HAND
            else "On three brokers and a ZooKeeper (needs Java), started for it and gone after it."
        )

        def told() -> None:
            # Records that are cut are the story itself, and no warning.
            logging.getLogger("penstock.replication").setLevel(logging.ERROR)
            run(Narrator(click.echo))

        return click.Command(name, callback=told, help=f"{run.__doc__}\n\n{where}")


@click.command(cls=Scenarios)
def lab() -> None:
    """Run a scenario of replication: what happens, and LEO and HW of each replica at each step."""
