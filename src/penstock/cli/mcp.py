"""`penstock mcp`: tools for an assistant, on standard input and output."""

import asyncio
import getpass
import sys
from pathlib import Path

import click

from penstock.cli.frame.command import Verb
from penstock.cli.log_level import LEVELS
from penstock.cli.logging import start_logging
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.config.extra import install
from penstock.errors import ConfigError


@click.command(cls=Verb, example="penstock mcp --bootstrap-server kafka1:9092")
@remote
@click.option("--allow-changes", is_flag=True, help="Also offer tools that change the cluster.")
@click.option(
    "--audit-log",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append a JSON line for each call: who, what, and the outcome.",
)
@click.option(
    "--registry",
    metavar="URL",
    envvar="PENSTOCK_REGISTRY",
    help="Schema registry, for schemas and values with a schema id. [$PENSTOCK_REGISTRY]",
)
@click.option("--log-level", type=click.Choice(LEVELS, case_sensitive=False), default="info")
def mcp(
    remote: Remote,
    allow_changes: bool,
    audit_log: Path | None,
    registry: str | None,
    log_level: str,
) -> None:
    """Offer what the console shows as tools, by the Model Context Protocol, until the input ends.

    An AI assistant starts it, and can do what the client settings allow. It only reads, unless
    --allow-changes is given. Each call is logged. Needs the extra `console`.
    """
    try:
        from penstock.console.audit import Audit
        from penstock.console.jobs import Jobs
        from penstock.console.mcp import Tools
        from penstock.console.messages.service import Messages
        from penstock.console.watch import ClusterWatch
        from penstock.record_view.registry import SchemaRegistry
    except ModuleNotFoundError as missing:
        text = f"tools need {missing.name}: {install('console')}"
        raise ConfigError(text) from None
    schemas = None if registry is None else SchemaRegistry(registry)
    clock = SystemClock()
    audit = Audit(audit_log, clock)
    start_logging(log_level, "plain", None)

    async def serving(client: Client) -> None:
        messages, jobs = Messages(client, clock, schemas), Jobs(clock)
        watch = ClusterWatch(client, clock, schemas)
        user = getpass.getuser()
        tools = Tools(watch, messages, jobs, audit, user=user, allow_changes=allow_changes)
        async with messages.client, asyncio.TaskGroup() as tasks:
            working = tasks.create_task(jobs.run())
            while line := await asyncio.to_thread(sys.stdin.buffer.readline):
                response = await tools.answer(line)
                if response is not None:
                    sys.stdout.buffer.write(response + b"\n")
                    sys.stdout.buffer.flush()
            working.cancel()

    remote.run(serving)
