"""`penstock`: the group of all commands. A command's code is imported when it is called.

Here failures turn into a line and an exit code; see `failure`. A traceback is a bug's alone.
"""

from importlib import import_module
from typing import Any

import click

from penstock import __version__
from penstock.cli.failure import FAILURES, FORMAT_KEY, ExitCode, alone, exit_code, tell

COMMANDS = {
    "serve": "Run a broker.",
    "stop": "Stop a broker that runs in a directory.",
    "topic": "List, describe, create, alter and delete topics.",
    "partition": "Look at the replicas of partitions.",
    "group": "List, describe, reset and delete consumer groups.",
    "produce": "Write records to a topic.",
    "consume": "Read records of a topic.",
    "log": "Look into log directories: dump, verify, adopt.",
    "pipeline": "Run data pipelines on Spark.",
    "sql": "Ask topics a question in SQL.",
    "shell": "Open PySpark with topics at hand.",
    "cluster": "Run brokers and ZooKeeper on this machine; rebalance a cluster.",
    "lab": "Run scenarios of replication: high watermark, ISR, epochs, truncation.",
    "metadata": "Save and restore a single broker's metadata.",
}
"""Name and what `penstock --help` says of it; its code is `penstock.cli.<name>`."""


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
        except (*FAILURES, ExceptionGroup) as raised:
            error = alone(raised)
            if not isinstance(error, FAILURES):
                raise
            tell(error, as_json=ctx.meta.get(FORMAT_KEY) == "json")
            raise SystemExit(exit_code(error)) from None
        except KeyboardInterrupt:
            raise SystemExit(ExitCode.INTERRUPTED) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """A Kafka-compatible streaming platform."""
