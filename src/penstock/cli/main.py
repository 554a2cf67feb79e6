"""`penstock`: the group of all commands. A command's code is imported when it is called.

Whatever is wrong with the call or a setting ends with one line and exit code 2, whatever fails
with one line and 1. A traceback is a bug's alone.
"""

from importlib import import_module
from typing import Any

import click

from penstock import __version__
from penstock.errors import ConfigError, KafkaError, ProtocolError, StorageError

COMMANDS = {
    "serve": "Run a broker.",
    "stop": "Stop a broker that runs in a directory.",
    "log": "Look into log directories: dump, verify, adopt.",
    "metadata": "Save and restore a single broker's metadata.",
}
"""Name and what `penstock --help` says of it; its code is `penstock.cli.<name>`."""


class Failure(click.ClickException):
    """An error as the user sees it; exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"penstock: {self.message}", file=file, err=file is None)


class Refusal(Failure):
    """What cannot even be tried."""

    exit_code = 2


class Commands(click.Group):
    """Knows its commands by name, so that `--help` imports none of them."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"penstock.cli.{name}"), name)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            raise Refusal(str(error)) from error
        except (KafkaError, ProtocolError, StorageError) as error:
            raise Failure(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """A Kafka-compatible streaming platform."""
