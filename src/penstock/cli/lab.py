"""`penstock lab`: scenarios that show replication at work."""

import logging

import click

from penstock.cli.frame.command import Noun, Verb
from penstock.cli.output import is_data, print_json
from penstock.local.lab.narration import Narrator
from penstock.local.lab.scenarios import BY_HAND, SCENARIOS


class Scenarios(Noun):
    """One command for each scenario."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(SCENARIOS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        run = SCENARIOS.get(cmd_name)
        if run is None:
            return None
        needs = (
            "Two replicas in one process, moved step by step; needs nothing else."
            if cmd_name in BY_HAND
            else "On three brokers and a ZooKeeper (needs Java), which run only for the scenario."
        )

        def narrated() -> None:
            # Truncation is part of the story: no warnings about it.
            logging.getLogger("penstock.replication").setLevel(logging.ERROR)
            run(Narrator(said))

        return Verb(
            cmd_name,
            callback=narrated,
            help=f"{run.__doc__}\n\n{needs}",
            example=f"penstock lab {cmd_name}",
        )


def said(line: str = "") -> None:
    if is_data():
        print_json({"line": line})
    else:
        click.echo(line)


@click.command(cls=Scenarios)
def lab() -> None:
    """Run a scenario of replication, with LEO and HW of each replica at each step."""
