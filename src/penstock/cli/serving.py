"""Runs a broker for `penstock serve`: checks, data directory, workers, signals."""

import asyncio
import logging
import os
import random
import signal
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from penstock.broker.app import new_event_loop, refuse_unserved
from penstock.broker.machine import make_directory
from penstock.broker.net.protection import protections, security_between_brokers
from penstock.broker.startup.banner import starting
from penstock.broker.startup.state_file import (
    LOCK_NAME,
    BrokerState,
    hold_directory,
    remove_state,
    was_killed,
    write_state,
)
from penstock.broker.until_stopped import Stop, until_stopped
from penstock.cli.daemon import start_daemon
from penstock.cli.logging import start_logging
from penstock.cli.output import notice
from penstock.cli.service_manager import notify
from penstock.clock import SystemClock
from penstock.config.sources import Resolved, resolve
from penstock.errors import ConfigError
from penstock.local.console_process import check_console
from penstock.local.registry_process import check_registry
from penstock.local.rest_process import check_rest
from penstock.local.services import LocalServices, check_free
from penstock.local.workers.layout import PREFIX
from penstock.local.workers.prepare import prepare
from penstock.local.workers.serve import check_start, serve_workers
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.naming import parse_dir_name
from penstock.metadata.tree import FILE_NAME as STORE_FILE
from penstock.security.principal import super_users

logger = logging.getLogger(__name__)

LEVELS_OF_LOGS = 3
"""The depth of a log below the data directory: logs/worker.0/topic-0."""


class Start(NamedTuple):
    """The options of `penstock serve`."""

    properties: Path | None
    directory: Path
    pairs: tuple[str, ...]
    profile: str | None
    strict: bool
    log_level: str
    log_format: str
    log_file: Path | None
    workers: int | None
    daemon: bool


def start(options: Start) -> None:
    """Run until a signal; with --daemon, until the broker is ready."""
    directory, log_file, log_format = options.directory, options.log_file, options.log_format
    own_logs = str((directory / "logs").absolute())
    resolved = resolve(
        # By default a broker serves only this machine, from its data directory.
        defaults={
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "log.dir": own_logs,
        },
        file=options.properties,
        profile=options.profile,
        environ=os.environ,
        pairs=options.pairs,
        strict=options.strict,
    )
    if (home := home_of(directory)) is not None:
        raise ConfigError(
            f"--dir {directory} has logs of the data directory {home}: start with --dir {home}"
        )
    if is_foreign(directory) and directory.absolute() not in map(
        Path.absolute, map(Path, resolved.config.identity.directories)
    ):
        raise ConfigError(
            f"--dir {directory} is a log directory of another broker, whose records would not be "
            f"served: use another --dir, and --set log.dirs={directory} after `penstock log adopt`"
        )
    check_registry(resolved.config.services)
    check_rest(resolved.config.services)
    check_console(resolved.config.services)
    check_free(resolved.config.services, was_killed=was_killed(directory))
    check_security(resolved)
    if "," in own_logs and resolved.config.identity.log_dirs is None:
        raise ConfigError(
            f"--dir {directory}: {own_logs} would be read as several directories, since a comma "
            "separates them: use a path without a comma, or set log.dirs"
        )
    if options.daemon:
        start_daemon(directory, log_file, resolved.warnings)
        return
    start_logging(options.log_level, log_format, log_file)
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
        count = prepare(directory, resolved.config, options.workers, partial(check_start, resolved))
        if count == 1:
            run(resolved, directory)
            return
        serve_workers(
            resolved,
            directory,
            count,
            stopping_signals(),
            lambda name: start_logging(options.log_level, log_format, log_file, process=name),
            announce,
        )
        logger.info("stopped")
    finally:
        release()


def announce(state: BrokerState) -> None:
    notice(f"ready {state.bootstrap}")
    notify("READY=1")


def home_of(directory: Path) -> Path | None:
    """The data directory above a log folder that was given as --dir by mistake."""
    if is_home(directory) or not directory.is_dir():
        return None
    if not has_logs(directory) and parse_dir_name(directory.absolute().name) is None:
        return None
    above = list(Path(os.path.normpath(directory)).absolute().parents)[:LEVELS_OF_LOGS]
    return next(filter(is_home, above), None)


def is_home(path: Path) -> bool:
    return (path / LOCK_NAME).exists() or (path / STORE_FILE).exists()


def has_logs(path: Path) -> bool:
    return (path / META_PROPERTIES).exists() or any(path.glob(f"{PREFIX}*/"))


def is_foreign(directory: Path) -> bool:
    """Whether this is a log directory, such as Kafka's, that never was a data directory."""
    return not is_home(directory) and has_logs(directory)


def check_security(resolved: Resolved) -> None:
    """Refuse unusable keys, certificates and users before anything is created."""
    config, texts = resolved.config, resolved.texts()
    refuse_unserved(config)
    endpoints, chance = config.listener.endpoints(), random.SystemRandom()
    protected = protections(endpoints, texts, SystemClock(), chance, resolved.provided)
    if config.zookeeper.zookeeper_connect is not None:
        security_between_brokers(config.listener, texts, protected)
    if config.authorization.is_on:
        super_users(config.authorization.super_users)


def run(resolved: Resolved, directory: Path) -> None:
    state = None

    def listen(stop: Stop) -> None:
        for number in stopping_signals():
            asyncio.get_running_loop().add_signal_handler(number, stop, f"got {number.name}")

    def on_ready(ready: BrokerState) -> None:
        nonlocal state
        state = ready
        write_state(directory, state)
        announce(state)

    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(
                until_stopped(
                    resolved,
                    directory,
                    listen,
                    on_ready,
                    alongside=LocalServices(resolved.config, directory).run_alongside,
                )
            )
    finally:
        if state is not None:
            remove_state(directory, state)


def stopping_signals() -> list[signal.Signals]:
    """The signals that stop the broker. SIGHUP, from a closed terminal, is one unless
    `nohup` ignores it.
    """
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT, *([] if ignored else [signal.SIGHUP])]
