"""`penstock serve`: its options. The work is in `serving`, to keep --help fast."""

import os
from pathlib import Path
from typing import Any

import click

from penstock.cli.directory import DIRECTORY
from penstock.cli.frame.command import Verb
from penstock.cli.log_level import LEVELS

MOST_WORKERS = 256
REGISTRY = "127.0.0.1:8081"
CONSOLE_PORT = 8080


class WorkerCount(click.ParamType[int]):
    """A number, or `auto` for the number of usable cores."""

    name = "workers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return min(usable_cores(), MOST_WORKERS)
        try:
            count = int(value)
        except ValueError:
            count = 0
        if not 1 <= count <= MOST_WORKERS:
            self.fail(
                f"{value!r} is neither auto nor a number from 1 to {MOST_WORKERS}", param, ctx
            )
        return count


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@click.command(
    cls=Verb,
    example=[
        "penstock serve --dir penstock-data",
        "penstock serve config/server.properties --daemon",
    ],
)
@click.argument(
    "properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the client listener. [9092]")
@click.option("--host", help="Address of the client listener. [127.0.0.1]")
@click.option(
    "--dir",
    "directory",
    type=DIRECTORY,
    default=Path("penstock-data"),
    show_default=True,
    help="Data directory: metadata, state and, unless log.dirs is set, logs.",
)
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting; overrides all others."
)
@click.option(
    "--profile",
    help="A set of defaults. classic: what older Kafka documentation teaches; it turns unclean "
    "leader election on, by which acknowledged records can be lost.",
)
@click.option("--strict", is_flag=True, help="Reject unknown settings instead of warning.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="info",
    show_default=True,
)
@click.option("--log-format", type=click.Choice(["plain", "json"]), default="plain")
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Log to this file instead of standard error, and leadership changes to state-change.log "
    "beside it; both are rotated by size. [with --daemon: penstock.log in --dir]",
)
@click.option(
    "--daemon", is_flag=True, help="Return when the broker is ready; stop it by `penstock stop`."
)
@click.option(
    "--workers",
    type=WorkerCount(),
    metavar="N|auto",
    help="How many processes, each a broker on the ports behind --port; auto: one for each core. "
    "[as many as the directory was last started with, or 1]",
)
@click.option(
    "--registry",
    is_flag=True,
    help=f"Serve schemas too, at {REGISTRY}: the setting penstock.registry.listen.",
)
@click.option(
    "--console",
    "console_port",
    type=click.IntRange(1, 65535),
    is_flag=False,
    flag_value=CONSOLE_PORT,
    metavar="PORT",
    help="Serve the web console too, on 127.0.0.1, in a process of its own: the setting "
    f"penstock.console.listen. --console alone: port {CONSOLE_PORT}.",
)
def serve(
    properties: Path | None,
    port: int | None,
    host: str | None,
    directory: Path,
    pairs: tuple[str, ...],
    profile: str | None,
    strict: bool,
    log_level: str,
    log_format: str,
    log_file: Path | None,
    workers: int | None,
    daemon: bool,
    registry: bool,
    console_port: int | None,
) -> None:
    """Run a broker until SIGTERM, SIGINT or SIGHUP.

    When it accepts requests, it prints `ready HOST:PORT`; DIR/broker.json then has its process,
    listeners and HTTP address.
    """
    if host is not None or port is not None:
        address = f"{host or '127.0.0.1'}:{9092 if port is None else port}"
        pairs = (f"listeners=PLAINTEXT://{address}", *pairs)
    if registry:
        pairs = (f"penstock.registry.listen={REGISTRY}", *pairs)
    if console_port is not None:
        pairs = (f"penstock.console.listen=127.0.0.1:{console_port}", *pairs)
    from penstock.cli.serving import Start, start  # late: imports the whole broker

    start(
        Start(
            properties,
            directory,
            pairs,
            profile,
            strict,
            log_level,
            log_format,
            log_file,
            workers,
            daemon,
        )
    )
