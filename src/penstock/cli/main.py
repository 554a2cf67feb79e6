"""`penstock`: the group of all commands. A command's module is imported when it is called.

Errors become one line and an exit code here; see `failure`. Users see no traceback.
"""

import gc
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, ClassVar

import click

from penstock import __version__
from penstock.cli.failure import (
    ExitCode,
    cause,
    exit_code,
    fill_closed_streams,
    flush_output,
    is_closed_pipe,
    report_error,
    ungrouped,
)
from penstock.cli.frame.command import Noun
from penstock.cli.frame.option import FORMAT_KEY, IS_DATA, named_format

COMMANDS = {
    "serve": "Run a broker.",
    "stop": "Stop the broker of a data directory.",
    "status": "Show the broker of a data directory.",
    "logs": "Print the log of a broker in the background.",
    "cluster": "Run a cluster on this machine; show, check and rebalance any cluster.",
    "broker": "List, describe, configure and decommission brokers.",
    "topic": "List, describe, create, alter, empty, trim, clone and delete topics.",
    "produce": "Write records to a topic.",
    "consume": "Read records from a topic.",
    "group": "List, describe, watch, reset and delete consumer groups.",
    "delay": "Deliver records when they are due; list and cancel those that wait.",
    "dlq": "List, peek at, redrive and purge dead letters.",
    "registry": "Serve schemas over Confluent's REST API.",
    "partition": "Show the replicas of partitions.",
    "config": "Show, compare, change and check settings.",
    "reassign": "Move partitions between brokers.",
    "leader": "Elect leaders.",
    "txn": "List and describe transactions; abort one that hangs.",
    "acl": "List, create, delete and explain access rules.",
    "user": "List, create and delete users that log in by SCRAM.",
    "quota": "List, describe, set and unset quotas of clients.",
    "producer": "Show the producers that write to partitions.",
    "token": "Create, renew, expire and list delegation tokens.",
    "log": "Inspect log directories: dump, verify, adopt.",
    "rest": "Accept records over HTTP.",
    "backup": "Copy a single node's metadata and logs while it runs.",
    "restore": "Create a data directory from a backup.",
    "metadata": "Save and restore a single broker's metadata.",
    "pipeline": "Run data pipelines on Spark.",
    "sql": "Query topics by SQL.",
    "shell": "Open PySpark with topics as DataFrames.",
    "lab": "Run scenarios of replication: high watermark, ISR, epochs, truncation.",
    "bench": "Measure producing, consuming and end-to-end latency.",
    "verify": "Write records, read them back, and compare.",
    "plan": "Plan disks, network and partitions of a workload.",
    "console": "Show a cluster in the browser, and as JSON.",
    "mcp": "Offer a cluster as tools for an AI assistant.",
    "doctor": "Say what is wrong with a cluster or a folder, and what to do.",
    "bundle": "Write diagnostics to a file, without secrets.",
    "profile": "Keep client settings under a name.",
    "completion": "Print the completion of commands for a shell.",
}
"""Names and descriptions in `penstock --help`; the code is `penstock.cli.<name>`."""

ALIASES = {
    "t": "topic",
    "g": "group",
    "p": "produce",
    "c": "consume",
    "b": "broker",
    "r": "reassign",
    "cfg": "config",
}
"""Short names of commands."""


class Commands(Noun):
    """Knows commands by name, so that `--help` imports none."""

    aliases: ClassVar[Mapping[str, str]] = ALIASES

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        gc.disable()  # imports leave no garbage, and collecting would take a tenth of their time
        try:
            command: click.Command = getattr(import_module(f"penstock.cli.{name}"), name)
        finally:
            gc.enable()
        return command

    def summary(self, _ctx: click.Context, name: str) -> str:
        short = next((alias for alias, full in ALIASES.items() if full == name), None)
        return COMMANDS[name] + (f" [{short}]" if short else "")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Before anything is parsed, so that an error about any option has the right format.
        ctx.meta[FORMAT_KEY] = named_format(args) or "text"
        return super().parse_args(ctx, args)

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
        """The error boundary: whatever a command raises becomes a sentence and an exit code."""
        try:
            result = super().invoke(ctx)
            flush_output()
            return result
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            raise SystemExit(ExitCode.INTERRUPTED) from None
        except Exception as raised:  # noqa: BLE001  the boundary around every command
            error, style = cause(ungrouped(raised)), ctx.meta[FORMAT_KEY]
            if isinstance(error, click.ClickException) and style not in IS_DATA:
                raise error from None  # click also shows the command's usage
            if not is_closed_pipe(error):
                report_error(error, as_json=style in IS_DATA)
            raise SystemExit(exit_code(error)) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """A Kafka-compatible streaming platform."""
