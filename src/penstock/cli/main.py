"""`penstock`: the group of all commands. A command's module is imported when it is called.

Here errors become a line and an exit code; see `failure`. Users see no traceback.
"""

from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from penstock import __version__
from penstock.cli.failure import (
    FORMAT_KEY,
    ExitCode,
    cause,
    exit_code,
    fill_closed_streams,
    flush_output,
    is_closed_pipe,
    report_error,
    ungrouped,
)

COMMANDS = {
    "serve": "Run a broker.",
    "stop": "Stop the broker of a data directory.",
    "topic": "List, describe, create, alter and delete topics.",
    "partition": "Show the replicas of partitions.",
    "group": "List, describe, reset and delete consumer groups.",
    "produce": "Write records to a topic.",
    "consume": "Read records from a topic.",
    "log": "Inspect log directories: dump, verify, adopt.",
    "pipeline": "Run data pipelines on Spark.",
    "sql": "Query topics by SQL.",
    "shell": "Open PySpark with topics as DataFrames.",
    "cluster": "Run brokers and ZooKeeper on this machine; rebalance a cluster.",
    "lab": "Run scenarios of replication: high watermark, ISR, epochs, truncation.",
    "metadata": "Save and restore a single broker's metadata.",
}
"""Names and descriptions in `penstock --help`; the code is `penstock.cli.<name>`."""


class Commands(click.Group):
    """Knows commands by name, so that `--help` imports none."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"penstock.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from difflib import get_close_matches  # late: only needed for a mistake

            nearest = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        fill_closed_streams()
        try:
            return super().main(*args, **kwargs)
        except OSError as error:  # help and version print before `invoke`
            report_error(error, as_json=False)
            raise SystemExit(exit_code(error)) from None
        finally:
            with suppress(OSError):
                flush_output()

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt:  # click would print "Aborted!" and exit with 1
            raise SystemExit(ExitCode.INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        """The boundary: whatever a command raises becomes a sentence and an exit code."""
        try:
            result = super().invoke(ctx)
            flush_output()
            return result
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            raise SystemExit(ExitCode.INTERRUPTED) from None
        except Exception as raised:  # noqa: BLE001  the boundary around every command
            error, as_json = cause(ungrouped(raised)), ctx.meta.get(FORMAT_KEY) == "json"
            if isinstance(error, click.ClickException) and not as_json:
                raise error from None  # click also shows the command's usage
            if not is_closed_pipe(error):
                report_error(error, as_json=as_json)
            raise SystemExit(exit_code(error)) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """A Kafka-compatible streaming platform."""
