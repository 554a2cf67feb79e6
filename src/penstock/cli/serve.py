"""`penstock serve`: runs a broker in the foreground, or with --daemon in the background."""

import asyncio
import logging
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import click

from penstock.broker.app import new_event_loop
from penstock.broker.machine import make_directory
from penstock.broker.startup.banner import starting
from penstock.broker.startup.state_file import (
    BrokerState,
    hold_directory,
    remove_state,
    write_state,
)
from penstock.broker.until_stopped import Stop, until_stopped
from penstock.cli.daemon import start_daemon
from penstock.cli.directory import DIRECTORY
from penstock.cli.frame.command import Verb
from penstock.cli.logging import LEVELS, start_logging
from penstock.cli.output import notice
from penstock.config.sources import Resolved, resolve
from penstock.errors import ConfigError
from penstock.local.delay_process import DelayProcess
from penstock.local.workers.prepare import prepare
from penstock.local.workers.serve import check_start, serve_workers

logger = logging.getLogger(__name__)

MOST_WORKERS = 256


class WorkerCount(click.ParamType[int]):
    """A number, or `auto` for the cores that this process may use."""

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
) -> None:
    """Run a broker until SIGTERM, SIGINT or SIGHUP.

    When it accepts requests, it prints `ready HOST:PORT`; DIR/broker.json then has its process,
    listeners and HTTP address.
    """
    if host is not None or port is not None:
        address = f"{host or '127.0.0.1'}:{9092 if port is None else port}"
        pairs = (f"listeners=PLAINTEXT://{address}", *pairs)
    own_logs = str((directory / "logs").absolute())
    resolved = resolve(
        # By default a broker serves this machine only, from its data directory.
        defaults={
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "log.dir": own_logs,
        },
        file=properties,
        profile=profile,
        environ=os.environ,
        pairs=pairs,
        strict=strict,
    )
    if "," in own_logs and resolved.config.identity.log_dirs is None:
        raise ConfigError(
            f"--dir {directory}: {own_logs} would be read as several directories, since a comma "
            "separates them: use a path without a comma, or set log.dirs"
        )
    if daemon:
        start_daemon(directory, log_file, resolved.warnings)
        return
    start_logging(log_level, log_format, log_file)
    for warning in resolved.warnings:
        if log_format == "plain" and log_file is None:
            click.echo(f"penstock: warning: {warning}", err=True)
        else:
            logger.warning("%s", warning)
    for line in starting(resolved, directory):
        logger.info("%s", line)
    make_directory(directory)
    release = hold_directory(directory)
    try:
        count = prepare(directory, resolved.config, workers, partial(check_start, resolved))
        if count == 1:
            run(resolved, directory)
            return
        serve_workers(
            resolved,
            directory,
            count,
            stopping_signals(),
            lambda name: start_logging(log_level, log_format, log_file, process=name),
            lambda state: notice(f"ready {state.bootstrap}"),
        )
        logger.info("stopped")
    finally:
        release()


def run(resolved: Resolved, directory: Path) -> None:
    state = None

    def listen(stop: Stop) -> None:
        for number in stopping_signals():
            asyncio.get_running_loop().add_signal_handler(number, stop, f"got {number.name}")

    def on_ready(ready: BrokerState) -> None:
        nonlocal state
        state = ready
        write_state(directory, state)
        notice(f"ready {state.bootstrap}")

    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(
                until_stopped(
                    resolved,
                    directory,
                    listen,
                    on_ready,
                    beside=DelayProcess(resolved.config, directory).beside,
                )
            )
    finally:
        if state is not None:
            remove_state(directory, state)


def stopping_signals() -> list[signal.Signals]:
    """SIGHUP too, so that closing the terminal stops the broker cleanly, except under `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT, *([] if ignored else [signal.SIGHUP])]
